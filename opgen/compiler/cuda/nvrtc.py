"""NVRTC, the CUDA C compiler as a library, through ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterator
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path

from opgen.codegen.cuda.program import COMPILE_FLAGS
from opgen.diagnostics import InternalError
from opgen.locks import cached_property

_Int, _Handle, _Size = ctypes.POINTER(c_int), ctypes.POINTER(c_void_p), ctypes.POINTER(c_size_t)
_Texts = ctypes.POINTER(c_char_p)

SIGNATURES: dict[str, tuple[type, ...]] = {
    "nvrtcVersion": (_Int, _Int),
    "nvrtcGetNumSupportedArchs": (_Int,),
    "nvrtcGetSupportedArchs": (_Int,),
    "nvrtcCreateProgram": (_Handle, c_char_p, c_char_p, c_int, _Texts, _Texts),
    "nvrtcDestroyProgram": (_Handle,),
    "nvrtcCompileProgram": (c_void_p, c_int, _Texts),
    "nvrtcGetProgramLogSize": (c_void_p, _Size),
    "nvrtcGetProgramLog": (c_void_p, c_char_p),
    "nvrtcGetCUBINSize": (c_void_p, _Size),
    "nvrtcGetCUBIN": (c_void_p, c_char_p),
    "nvrtcGetPTXSize": (c_void_p, _Size),
    "nvrtcGetPTX": (c_void_p, c_char_p),
}


class Nvrtc:
    """The loaded library.  Raises `OSError` or `AttributeError` if it is not NVRTC."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        self.path = path
        self._functions: dict[str, Callable[..., int]] = {}
        for name, arguments in SIGNATURES.items():
            function = library[name]
            function.argtypes = list(arguments)
            function.restype = c_int
            self._functions[name] = function
        library.nvrtcGetErrorString.argtypes = [c_int]
        library.nvrtcGetErrorString.restype = c_char_p
        self._error_string: Callable[[int], bytes] = library.nvrtcGetErrorString

    def _call(self, name: str, *arguments: object) -> None:
        code = self._functions[name](*arguments)
        if code:
            raise InternalError(f"{name}: {self._error_string(code).decode(errors='replace')}")

    @cached_property
    def version(self) -> tuple[int, int]:
        major, minor = c_int(), c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    @cached_property
    def capabilities(self) -> tuple[tuple[int, int], ...]:
        """Return the compute capabilities that it compiles for, in ascending order."""
        count = c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        return tuple(sorted((n // 10, n % 10) for n in numbers))

    def compile(self, source: str, architecture: str) -> bytes:
        """Compile to a cubin for a real architecture (`sm_90`), to PTX for a virtual one (`compute_90`).

        Raises `InternalError` with the compiler's log: code that opgen emits must compile.
        """
        program = c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
        try:
            options = [f"--gpu-architecture={architecture}", *COMPILE_FLAGS]
            encoded = (c_char_p * len(options))(*(o.encode() for o in options))
            if code := self._functions["nvrtcCompileProgram"](program, len(options), encoded):
                reason = self._error_string(code).decode(errors="replace")
                log = self._result(program, "nvrtcGetProgramLog").rstrip(b"\0").decode(errors="replace")
                raise InternalError(f"NVRTC for {architecture}: {reason}\n{log}")
            return self._result(program, "nvrtcGetCUBIN" if architecture.startswith("sm_") else "nvrtcGetPTX")
        finally:
            self._call("nvrtcDestroyProgram", ctypes.byref(program))

    def _result(self, program: c_void_p, getter: str) -> bytes:
        size = c_size_t()
        self._call(f"{getter}Size", program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._call(getter, program, content)
        return content.raw


@functools.lru_cache(maxsize=1)
def nvrtc() -> Nvrtc | None:
    """Return this machine's NVRTC, or None."""
    for path in candidates():
        try:
            return Nvrtc(path)
        except (OSError, AttributeError):
            continue
    return None


def candidates() -> Iterator[str]:
    """Yield the paths where NVRTC may be: CUDA_HOME, the loader's path, NVIDIA's wheels, the usual place."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for home in homes:
        yield from _libraries(Path(home))
    yield from ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2")
    for entry in sys.path:
        for package in ("cu13", "cu12", "cuda_nvrtc"):
            yield from _libraries(Path(entry) / "nvidia" / package)
    yield from _libraries(Path("/usr/local/cuda"))


def _libraries(home: Path) -> list[str]:
    found = [path for folder in ("lib64", "lib") for path in (home / folder).glob("libnvrtc.so*")]
    return [str(path) for path in sorted(found, reverse=True)]
