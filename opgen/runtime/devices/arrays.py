"""Arrays in device memory: opgen's own, and those of other libraries."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, TypeGuard

import numpy as np

from opgen.dtypes import BFLOAT16, DType
from opgen.runtime.buffers import AnyArray, numpy_dtype
from opgen.runtime.describe import describe
from opgen.runtime.devices.cuda_driver import Device
from opgen.runtime.devices.dlpack import CUDA_DEVICES, SupportsDLPack, take
from opgen.runtime.devices.errors import DeviceError
from opgen.runtime.errors import ArgumentTypeError, ArgumentValueError


class Interface(TypedDict):
    """`__cuda_array_interface__`, version 3."""

    shape: tuple[int, ...]
    typestr: str
    data: tuple[int, bool]
    strides: tuple[int, ...] | None
    version: int
    stream: int


def typestr(dtype: DType) -> str:
    """The interface's name of a type; bfloat16 has none of its own and goes by its two bytes."""
    return "<V2" if dtype == BFLOAT16 else numpy_dtype(dtype).str


class DeviceArray:
    """A row-major array in a device's memory, freed with this object.

    `address` is a device pointer, `stream` the stream on which its contents are made (0: the default stream).
    """

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: DType, stream: int = 0) -> None:
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.stream = stream
        with device.current():
            self.address = device.allocate(self.nbytes)
        self._free = weakref.finalize(self, _free, device, self.address)
        self._free.atexit = False

    @classmethod
    def from_numpy(cls, device: Device, array: AnyArray, dtype: DType, stream: int = 0) -> DeviceArray:
        """A copy of a numpy array on the device."""
        made = cls(device, array.shape, dtype, stream)
        source = np.ascontiguousarray(array)
        with device.current():
            device.copy_in(made.address, source.ctypes.data, made.nbytes, stream)
            device.synchronize(stream)
        return made

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.bytes

    @property
    def __cuda_array_interface__(self) -> Interface:
        return {
            "shape": self.shape,
            "typestr": typestr(self.dtype),
            "data": (self.address if self.nbytes else 0, False),
            "strides": None,
            "version": 3,
            "stream": self.stream or 1,
        }

    def to_numpy(self) -> AnyArray:
        """A copy in host memory, once what makes the contents is done."""
        result = np.empty(self.shape, numpy_dtype(self.dtype))
        with self.device.current():
            self.device.copy_out(result.ctypes.data, self.address, self.nbytes, self.stream)
            self.device.synchronize(self.stream)
        return result

    def free(self) -> None:
        """Give the memory back now; the array must not be used any more."""
        self._free()

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}{list(self.shape)}, device {self.device.ordinal})"


def _free(device: Device, address: int) -> None:
    with contextlib.suppress(DeviceError), device.current():
        device.free(address)


@dataclass(frozen=True)
class Lent:
    """Device memory for the time of a call; `release`, if there is one, tells its owner that the call is over."""

    address: int
    release: Callable[[], None] | None = None


def is_device_array(value: object) -> bool:
    """Whether a value says that it lies in the memory of a CUDA device."""
    return hasattr(value, "__cuda_array_interface__") or _is_dlpack(value)


def _is_dlpack(value: object) -> TypeGuard[SupportsDLPack]:
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__dlpack_device__"):
        return False
    return hasattr(value, "__dlpack__") and value.__dlpack_device__()[0] in CUDA_DEVICES


@dataclass(frozen=True)
class Expected:
    """What an argument must be, and who asks."""

    kernel: str
    name: str
    dtype: DType
    shape: tuple[int, ...]
    written: bool

    def check(self, typename: str, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
        """Raise unless an array of a type (by its name or typestr), shape and strides (in bytes) will do."""
        if typename not in (self.dtype.name, typestr(self.dtype)):
            raise ArgumentTypeError(self.kernel, self.name, str(self.dtype), typename)
        if shape != self.shape:
            raise ArgumentValueError(self.kernel, self.name, f"shape {list(self.shape)}", f"shape {list(shape)}")
        if strides is not None and not _is_row_major(shape, strides, self.dtype.bytes):
            raise ArgumentValueError(
                self.kernel, self.name, "a C-contiguous array", f"strides of {list(strides)} bytes"
            )


def _is_row_major(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> bool:
    if 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != size:
            return False
        size *= extent
    return True


def borrow(device: Device, value: object, expected: Expected, stream: int) -> Lent:
    """The memory of a device array, to be used in place on a stream.

    Raises `ArgumentTypeError` or `ArgumentValueError` unless it is what is expected, contiguous, and on this device.
    """
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        address, read_only = interface["data"]
        expected.check(interface["typestr"], tuple(interface["shape"]), interface.get("strides"))
        if read_only and expected.written:
            raise ArgumentValueError(expected.kernel, expected.name, "a writeable array", "a read-only one")
        _check_owner(device, address, expected)
        producer = interface.get("stream")
        if producer is not None and producer not in (stream, stream or 1):
            device.synchronize(producer)
        return Lent(address)
    if not _is_dlpack(value):
        raise ArgumentTypeError(expected.kernel, expected.name, "a device array", describe(value))
    shared = take(value, stream)
    size = expected.dtype.bytes
    strides = None if shared.strides is None else tuple(n * size for n in shared.strides)
    try:
        expected.check(shared.dtype.name if shared.dtype else "another type", shared.shape, strides)
        _check_owner(device, shared.address, expected)
    except BaseException:
        shared.release()
        raise
    return Lent(shared.address, shared.release)


def _check_owner(device: Device, address: int, expected: Expected) -> None:
    if 0 in expected.shape:
        return
    owner = device.owner(address)
    if owner != device.ordinal:
        where = "other memory" if owner is None else f"device {owner}"
        raise ArgumentValueError(expected.kernel, expected.name, f"memory of device {device.ordinal}", where)
