"""A CUDA driver for tests, what it takes for compiled code, and tensors as other libraries lend them."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

from opgen.runtime.devices import emulation
from opgen.runtime.devices.arrays import DeviceArray
from opgen.runtime.memory import dlpack


def fake_library(folder: Path) -> ctypes.CDLL:
    """`fake_cuda.cpp` compiled and loaded; its path is in `.path`."""
    path = folder / "libfakecuda.so"
    source = Path(__file__).with_name("fake_cuda.cpp")
    command = [str(emulation.compiler()), "-std=c++17", "-shared", "-fPIC", "-O1", str(source), "-o", str(path), "-ldl"]
    subprocess.run(command, check=True)
    fake = ctypes.CDLL(str(path))
    fake.fake_log.restype = ctypes.c_char_p
    fake.path = str(path)
    return fake


def build(source: str, capability: tuple[int, int]) -> bytes:
    """What the fake driver loads: the path of a library for the CPU."""
    assert capability == (9, 0)
    functions = re.findall(r'extern "C" __global__ void [^\n]*\n(\w+)\(', source)
    text = '#include "emulation.h"\n' + emulation.wrapped(0, source, functions)
    return str(emulation.build(text)).encode()


class Shared:
    """A tensor that lends its memory by DLPack."""

    def __init__(
        self, address: int, shape: tuple[int, ...], code: int, bits: int, strides: tuple[int, ...] | None = None
    ) -> None:
        self.released = 0
        self.streams: list[int | None] = []
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self._deleter = dlpack.Deleter(self._release)
        tensor = dlpack.Tensor(address, 2, 0, len(shape), code, bits, 1, self._shape, self._strides, 0)
        self._managed = dlpack.Managed(tensor, None, ctypes.cast(self._deleter, ctypes.c_void_p))

    def _release(self, _: object) -> None:
        self.released += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: int | None = None) -> object:
        self.streams.append(stream)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self._managed), b"dltensor", None)


class Foreign:
    """An array of another library with an interface of the test's making."""

    def __init__(self, array: DeviceArray, **changes: object) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}
