"""Arrays in device memory: opgen's own, and those of other libraries."""

from __future__ import annotations

import contextlib
import math
import weakref
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.devices import DeviceError
from opgen.dtypes import BFLOAT16, DType
from opgen.runtime.devices.borrowed import DeviceTensor, borrowed
from opgen.runtime.devices.cuda_driver import Device
from opgen.runtime.devices.export import capsule_of
from opgen.runtime.memory.buffers import AnyArray, numpy_dtype
from opgen.runtime.memory.dlpack import CUDA_DEVICES


class Interface(TypedDict):
    """`__cuda_array_interface__`, version 3."""

    shape: tuple[int, ...]
    typestr: str
    data: tuple[int, bool]
    strides: tuple[int, ...] | None
    version: int
    stream: int


def typestr(dtype: DType) -> str:
    """Return the interface's name of a type; bfloat16 has none, and is named by its two bytes."""
    return "<V2" if dtype == BFLOAT16 else numpy_dtype(dtype).str


class DeviceArray:
    """A row-major array in a device's memory, freed with this object.

    `address` is a device pointer, `stream` the stream on which its contents are made (0: the default stream).  Other
    libraries read it in place by `__cuda_array_interface__` and by DLPack (`torch.from_dlpack(array)`).
    """

    lends_by_interface = True

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
        """Return a copy of a numpy array on the device."""
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

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA_DEVICES[0], self.device.ordinal

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a capsule that lends the memory, for use on the consumer's stream (None is the default one, -1: any).

        Raises `BufferError` for a copy and for another device: only the array's own memory is lent.
        """
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("a DeviceArray lends its own memory only: neither a copy nor another device's")
        if stream not in (-1, self.stream, self.stream or 1) and (stream is not None or self.stream):
            with self.device.current():
                self.device.synchronize(self.stream)
        return capsule_of(self, self.address if self.nbytes else 0, self.dtype, self.shape, self.__dlpack_device__())

    def to_numpy(self) -> AnyArray:
        """Return a copy in host memory, after waiting for pending work on the contents."""
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
class Expected:
    """The required type and shape of an argument, and the kernel and name for messages."""

    kernel: str
    name: str
    dtype: DType
    shape: tuple[int, ...]
    written: bool

    def check(self, typename: str, shape: tuple[int, ...]) -> None:
        """Raise unless an array of that type name and shape fits."""
        if typename != self.dtype.name:
            raise ArgumentTypeError(self.kernel, self.name, str(self.dtype), typename)
        if shape != self.shape:
            raise ArgumentValueError(self.kernel, self.name, f"shape {list(self.shape)}", f"shape {list(shape)}")


def borrow(device: Device, value: object, expected: Expected, stream: int) -> DeviceTensor:
    """Return the memory of a device array, to be used in place on a stream.

    Raises `ArgumentTypeError` or `ArgumentValueError` unless it is as expected, contiguous, and on this device.
    """
    tensor = borrowed(expected.kernel, expected.name, value, stream)
    try:
        expected.check(tensor.dtype.name, tensor.shape)
        check_in_place(expected.kernel, expected.name, tensor, device, expected.written)
    except BaseException:
        if tensor.release is not None and tensor is not value:
            tensor.release()
        raise
    wait_for(device, tensor, stream)
    return tensor


def check_in_place(op: str, argument: str, tensor: DeviceTensor, device: Device, written: bool) -> None:
    """Raise `ArgumentValueError` unless kernels of a device can use a tensor in place."""
    if not tensor.is_row_major:
        strides = f"strides of {list(tensor.strides or ())} bytes"
        raise ArgumentValueError(op, argument, "a C-contiguous array", strides)
    if tensor.address % tensor.dtype.itemsize:
        raise ArgumentValueError(op, argument, "an aligned array", f"one at the address {tensor.address:#x}")
    if written and tensor.read_only:
        raise ArgumentValueError(op, argument, "a writeable array", "a read-only one")
    if tensor.nbytes and (owner := device.owner(tensor.address)) != device.ordinal:
        where = "other memory" if owner is None else f"device {owner}"
        raise ArgumentValueError(op, argument, f"memory of device {device.ordinal}", where)


def wait_for(device: Device, tensor: DeviceTensor, stream: int) -> None:
    """Wait for pending work on a tensor's contents, if work on the stream would not wait by itself."""
    if tensor.made_on is not None and tensor.made_on not in (stream, stream or 1):
        device.synchronize(tensor.made_on)
