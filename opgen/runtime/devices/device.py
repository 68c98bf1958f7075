"""Kernels on a CUDA device: compiled for it, loaded once, and called with host or device arrays."""

from __future__ import annotations

import ctypes
import hashlib
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from ctypes import c_void_p
from dataclasses import dataclass, field

import numpy as np

from opgen.codegen.cuda.program import Launch
from opgen.compiler.artifact import Artifact
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, Cuda
from opgen.diagnostics.calls import ArgumentTypeError
from opgen.diagnostics.describe import tensor
from opgen.dtypes import DType
from opgen.loop.nodes import Buffer, Kernel
from opgen.runtime.devices.arrays import DeviceArray, Expected, borrow
from opgen.runtime.devices.borrowed import DeviceTensor, is_device_array
from opgen.runtime.devices.cuda_driver import Device, cuda_available, device
from opgen.runtime.devices.host import Scalar, Sizes, check_parameters, execute, shape_of
from opgen.runtime.devices.scalars import c_scalar
from opgen.runtime.memory.buffers import AnyArray, numpy_dtype

__all__ = ["CudaKernel", "DeviceArray", "cuda_available"]

Compile = Callable[[str, tuple[int, int]], bytes]
"""A function from CUDA C and a compute capability to an image that the driver can load."""


class CudaKernel:
    """A program, compiled for a device and loaded.

    A call takes the input arrays and the parameters by name.  Numpy arrays (and values that numpy converts to arrays)
    are copied to the device.  Device arrays (`__cuda_array_interface__`, or DLPack on CUDA) are used in place and must
    be C-contiguous.  A `DeviceTensor` is one that the caller has borrowed and gives back itself.  The outputs come as
    numpy arrays, or as `DeviceArray`s if any argument is a device array.  An output given in `out` (a device array) is
    written in place and returned itself.

    With numpy results the call returns when they are complete.  With device results it may return before: the work is
    ordered on `stream` (a CUstream as an integer; 0 is the default stream).
    """

    def __init__(self, made: Artifact | Kernel, on: Device | None = None, *, compiler: Compile | None = None) -> None:
        """Load a request's artifact, or a legal kernel; by `compiler`, if one is given.

        Raises `DeviceUnavailableError` if there is no device or no compiler for it.
        """
        self.device = device(0) if on is None else on
        if isinstance(made, Kernel):
            made = artifact(Compilation(made, Cuda(self.device.capability), schedule="finished"))
        self.program = made.program
        image = made.code if compiler is None else compiler(self.program.source, self.device.capability)
        self.code_hash = hashlib.sha256(image).hexdigest()
        with self.device.current():
            module = self.device.load(image)
            self._unload = weakref.finalize(self, _unload, self.device, module)
            self._unload.atexit = False
            names = [launch.function for launch in self.program.launches]
            self._functions = {name: self.device.function(module, name) for name in names}

    def __call__(
        self,
        arrays: Mapping[str, object],
        parameters: Mapping[str, Scalar],
        *,
        out: Mapping[str, object] | None = None,
        stream: int = 0,
    ) -> dict[str, object]:
        """Return the outputs by name.  Every argument is checked before anything is copied or launched."""
        kernel, given = self.program.kernel, {} if out is None else out
        scalars = check_parameters(kernel, parameters)
        _check_names(kernel, arrays, given)
        on_device = bool(given) or any(isinstance(v, DeviceTensor) or is_device_array(v) for v in arrays.values())
        with self.device.current(), ExitStack() as stack:
            call = _Call(self.device, self._functions, stream, stack)
            hosted = [(b, call.input(kernel.name, b, arrays[b.name], scalars)) for b in kernel.inputs]
            results = {b.name: call.output(kernel.name, b, given.get(b.name), scalars) for b in kernel.outputs}
            for buffer, array in hosted:
                if array is not None:
                    call.upload(buffer.name, array)
            execute(self.program, scalars, call)
            if on_device:
                return {name: given.get(name, result) for name, result in results.items()}
            return {name: result.to_numpy() for name, result in results.items() if result is not None}


def _unload(on: Device, module: c_void_p) -> None:
    with on.current():
        on.unload(module)


def _check_names(kernel: Kernel, arrays: Mapping[str, object], out: Mapping[str, object]) -> None:
    for given, buffers, missing_is_wrong in ((arrays, kernel.inputs, True), (out, kernel.outputs, False)):
        known = [b.name for b in buffers]
        for name in known:
            if missing_is_wrong and name not in given:
                raise ArgumentTypeError(kernel.name, name, "an array", "none")
        for name in given:
            if name not in known:
                raise ArgumentTypeError(kernel.name, name, f"one of {', '.join(known)}", "an unknown array")


@dataclass(frozen=True)
class _Call:
    """One call: the addresses of its buffers, and the resources to release when it ends (on `stack`)."""

    device: Device
    functions: Mapping[str, c_void_p]
    stream: int
    stack: ExitStack
    addresses: dict[str, int] = field(default_factory=dict)

    def input(self, kernel: str, buffer: Buffer, value: object, scalars: Mapping[str, Scalar]) -> AnyArray | None:
        """Borrow a device array, or return the checked array that is to be uploaded."""
        expected = Expected(kernel, buffer.name, buffer.dtype, shape_of(buffer, scalars), written=False)
        if isinstance(value, DeviceTensor) or is_device_array(value):
            self._borrow(value, expected)
            return None
        array = np.asarray(value)
        if array.dtype != numpy_dtype(buffer.dtype):
            raise ArgumentTypeError(kernel, buffer.name, str(buffer.dtype), tensor(array))
        expected.check(buffer.dtype.name, array.shape)
        return np.ascontiguousarray(array).reshape(array.shape)

    def output(
        self, kernel: str, buffer: Buffer, given: object | None, scalars: Mapping[str, Scalar]
    ) -> DeviceArray | None:
        """Borrow the array given for an output, or create one."""
        expected = Expected(kernel, buffer.name, buffer.dtype, shape_of(buffer, scalars), written=True)
        if given is not None:
            self._borrow(given, expected)
            return None
        made = DeviceArray(self.device, expected.shape, buffer.dtype, self.stream)
        self.addresses[buffer.name] = made.address
        return made

    def _borrow(self, value: object, expected: Expected) -> None:
        lent = borrow(self.device, value, expected, self.stream)
        if lent.release is not None and lent is not value:
            self.stack.callback(self._give_back, lent.release)
        self.addresses[expected.name] = lent.address

    def _give_back(self, release: Callable[[], None]) -> None:
        """Return memory to its owner when the work on it is done."""
        try:
            self.device.synchronize(self.stream)
        finally:
            release()

    def upload(self, name: str, array: AnyArray) -> None:
        """Copy a host array to device memory, for the time of the call."""
        self.allocate_bytes(name, array.nbytes)
        self.stack.callback(self.release, name)
        self.device.copy_in(self.addresses[name], array.ctypes.data, array.nbytes, self.stream)

    def allocate(self, buffer: str, dtype: DType, elements: int) -> None:
        self.allocate_bytes(buffer, elements * dtype.bytes)

    def allocate_bytes(self, buffer: str, size: int) -> None:
        self.addresses[buffer] = self.device.allocate(size)

    def release(self, buffer: str) -> None:
        """Free a buffer when the work on it is done."""
        address = self.addresses.pop(buffer)
        try:
            self.device.synchronize(self.stream)
        finally:
            self.device.free(address)

    def only(self, buffer: str) -> int:
        found = ctypes.c_int64()
        self.device.copy_out(ctypes.addressof(found), self.addresses[buffer], ctypes.sizeof(found), self.stream)
        self.device.synchronize(self.stream)
        return found.value

    def launch(self, launch: Launch, grid: Sizes, block: Sizes, scalars: Mapping[str, Scalar]) -> None:
        held = [
            ctypes.c_uint64(self.addresses[a.name]) if a.pointer else c_scalar(a.dtype, scalars[a.name])
            for a in launch.arguments
        ]
        arguments = (c_void_p * max(1, len(held)))(*(ctypes.addressof(value) for value in held))
        self.device.launch(self.functions[launch.function], grid, block, arguments, self.stream)
