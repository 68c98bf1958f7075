"""Tensors in the memory of a CUDA device: found, described, and borrowed for the time of a call.

This module never calls a driver, so that checking for such tensors costs nothing where there is no device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, cast

import numpy as np

from opgen.diagnostics.calls import ArgumentTypeError
from opgen.diagnostics.describe import describe
from opgen.dtypes import BFLOAT16
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.runtime.memory.dlpack import CUDA_DEVICES, SupportsDLPack, check_layout, take
from opgen.runtime.memory.foreign import device_of, has, hidden, reading, speaks_dlpack

NumpyType: TypeAlias = "np.dtype[np.generic]"

_HOSTS = (np.ndarray, np.generic, list, tuple, int, float, str)
_LEGACY_STREAM = 1
_BFLOAT16_NAMES = ("<V2", "|V2")
"""Names of bfloat16 in `__cuda_array_interface__`, which has no name of its own for it."""


class SupportsCudaArrayInterface(Protocol):
    """A tensor of another library in the memory of a CUDA device."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]: ...


def is_device_array(value: object) -> bool:
    """Return True if a value says that it is in the memory of a CUDA device."""
    if value is None or isinstance(value, _HOSTS):
        return False
    if speaks_dlpack(value):
        try:
            return device_of(value)[0] in CUDA_DEVICES
        except Exception:  # foreign code may raise anything: reading reports it
            return False
    return has(value, "__cuda_array_interface__")


@dataclass(frozen=True)
class DeviceTensor:
    """A tensor in device memory.

    `strides` are in bytes; None is row-major.  `ordinal` is its device, if its owner reports it.  Its contents may
    still be computed on the stream `made_on`; `release`, if it is set, must be called after the tensor's last use.
    """

    address: int
    dtype: NumpyType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    read_only: bool = False
    ordinal: int | None = None
    made_on: int | None = None
    release: Callable[[], None] | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_row_major(self) -> bool:
        """True if the elements are contiguous in row-major order."""
        if self.strides is None or 0 in self.shape:
            return True
        size = self.dtype.itemsize
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != size:
                return False
            size *= extent
        return True

    def overlaps(self, other: DeviceTensor) -> bool:
        """Return True if two row-major tensors share memory."""
        return self.address < other.address + other.nbytes and other.address < self.address + self.nbytes


def borrowed(op: str, argument: str, value: object, stream: int) -> DeviceTensor:
    """Return a device array in place, to be used on a stream.

    It is read by DLPack if it supports that, else by `__cuda_array_interface__`.  Raises `ArgumentTypeError` for a
    value with neither, and for one that its owner does not lend.
    """
    if isinstance(value, DeviceTensor):
        return value
    with reading(op, argument, value):
        if (more := hidden(value)) is not None:
            raise ArgumentTypeError(op, argument, *more)
        if is_lent_by_interface(value):
            return _by_interface(cast("SupportsCudaArrayInterface", value))
        if speaks_dlpack(value) and is_device_array(value):
            return _by_dlpack(value, stream)
    raise ArgumentTypeError(op, argument, "a device array", describe(value))


def is_lent_by_interface(value: object) -> bool:
    """Return True if `__cuda_array_interface__` is to be used: for opgen's arrays, and for values without DLPack."""
    own = getattr(type(value), "lends_by_interface", False) is True
    return own or (not speaks_dlpack(value) and has(value, "__cuda_array_interface__"))


def _by_interface(value: SupportsCudaArrayInterface) -> DeviceTensor:
    found = value.__cuda_array_interface__
    if not isinstance(found, Mapping):
        raise TypeError("its __cuda_array_interface__ is no mapping")
    if found.get("mask") is not None:
        raise TypeError("it has a mask")
    address, read_only = _data(found.get("data"))
    dtype = _interface_type(found.get("typestr"))
    shape, strides = _integers(found.get("shape"), "shape"), found.get("strides")
    steps = None if strides is None else _integers(strides, "strides")
    check_layout(shape, steps, dtype.itemsize)
    if not address and 0 not in shape:
        raise ValueError("no memory")
    stream = found.get("stream")
    if stream is not None and (not isinstance(stream, int) or not 0 < stream < 2**64):
        raise ValueError("its stream is none")
    return DeviceTensor(address, dtype, shape, steps, read_only, made_on=stream)


def _data(data: object) -> tuple[int, bool]:
    """Return the address, and True if it is read-only."""
    if not isinstance(data, tuple | list) or len(data) != 2 or not isinstance(data[0], int | None):
        raise TypeError("its data are no address")
    address = data[0] or 0
    if not 0 <= address < 2**63:
        raise ValueError("its data are at no address")
    return address, bool(data[1])


def _integers(values: object, what: str) -> tuple[int, ...]:
    if not isinstance(values, tuple | list) or not all(isinstance(n, int) for n in values):
        raise TypeError(f"its {what} are no integers")
    return tuple(map(int, values))


def _interface_type(typestr: object) -> NumpyType:
    if not isinstance(typestr, str):
        raise TypeError("its typestr is no string")
    if typestr in _BFLOAT16_NAMES:
        return numpy_dtype(BFLOAT16)
    found: NumpyType = np.dtype(typestr)
    if not found.isnative:
        raise TypeError("not in the machine's byte order")
    return found


def _by_dlpack(value: SupportsDLPack, stream: int) -> DeviceTensor:
    place = device_of(value)
    shared = take(value, place, stream)
    read_only = shared.read_only is True
    return DeviceTensor(
        shared.address, shared.dtype, shared.shape, shared.strides, read_only, place[1], release=shared.release
    )


@dataclass
class Loans:
    """The tensors that a call has borrowed so far.

    `close` gives them back.  Before, it waits (by `wait`, once a device is known) until their users are done, if their
    owners cannot know that by themselves.
    """

    taken: list[DeviceTensor] = field(default_factory=list)
    wait: Callable[[], None] | None = None

    def take(self, op: str, argument: str, value: object) -> DeviceTensor:
        """Borrow a device array, to be used on the default stream."""
        found = borrowed(op, argument, value, 0)
        self.taken.append(found)
        return found

    def __enter__(self) -> Loans:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.wait is not None and any(t.release or t.made_on not in (None, _LEGACY_STREAM) for t in self.taken):
                self.wait()
        finally:
            for t in self.taken:
                if t.release is not None:
                    t.release()
            self.taken.clear()


@dataclass(frozen=True)
class Loan:
    """A device array among the arguments of a call, before its checks borrow it."""

    value: object
    loans: Loans

    def take(self, op: str, argument: str) -> DeviceTensor:
        """Return the tensor, borrowed until the call is over."""
        return self.loans.take(op, argument, self.value)
