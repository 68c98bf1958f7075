"""Emitted CUDA C run on the CPU by the C++ compiler and an emulation header.

It replaces a device in tests, and has the interpreter's interface: `run_emulated(kernel, arrays, parameters)`.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import opgen.codegen.cuda
from opgen.codegen.cuda.program import CudaProgram, Launch
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, Cuda
from opgen.diagnostics import InternalError, OpgenError
from opgen.diagnostics.calls import ArgumentTypeError
from opgen.dtypes import DType
from opgen.loop.nodes import Kernel
from opgen.runtime.devices.host import Scalar, Sizes, check_parameters, execute, shape_of
from opgen.runtime.devices.scalars import c_scalar
from opgen.runtime.memory.buffers import AnyArray, empty_aligned, numpy_dtype, poison

HEADER = Path(opgen.codegen.cuda.__path__[0]) / "emulation.h"
FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-ffp-contract=off", "-fno-fast-math", "-w")
_STATUS = {1: "a barrier was met by some threads of a block only", 2: "there was no memory for the threads' stacks"}


class NoCompilerError(OpgenError):
    """There is no C++ compiler on this machine."""


def compiler() -> str | None:
    """Return the C++ compiler: $CXX, g++, clang++ or c++."""
    wanted = [os.environ.get("CXX", ""), "g++", "clang++", "c++"]
    return next((found for name in wanted if name and (found := shutil.which(name))), None)


@dataclass(frozen=True)
class EmulatedKernel:
    """A program compiled for the CPU; called like the interpreter."""

    program: CudaProgram
    functions: Mapping[str, ctypes._NamedFuncPointer]

    def __call__(
        self, arrays: Mapping[str, AnyArray], parameters: Mapping[str, Scalar], *, reverse: bool = False
    ) -> dict[str, AnyArray]:
        """Return the outputs by name.  `reverse` runs blocks and threads in the opposite order."""
        kernel = self.program.kernel
        scalars = check_parameters(kernel, parameters)
        memory: dict[str, AnyArray] = {}
        for buffer in kernel.inputs:
            array = np.ascontiguousarray(arrays[buffer.name]).reshape(np.shape(arrays[buffer.name]))
            shape = shape_of(buffer, scalars)
            if array.dtype != numpy_dtype(buffer.dtype) or array.shape != shape:
                expected, given = f"{buffer.dtype}{list(shape)}", f"{array.dtype.name}{list(array.shape)}"
                raise ArgumentTypeError(kernel.name, buffer.name, expected, given)
            memory[buffer.name] = array
        for buffer in kernel.outputs:
            memory[buffer.name] = _poisoned(shape_of(buffer, scalars), buffer.dtype)
        execute(self.program, scalars, _Emulation(self.functions, memory, reverse))
        return {buffer.name: memory[buffer.name] for buffer in kernel.outputs}


def run_emulated(
    program: CudaProgram | Kernel, arrays: Mapping[str, AnyArray], parameters: Mapping[str, Scalar]
) -> dict[str, AnyArray]:
    """Return the outputs of a kernel by name, as `opgen.loop.interpret.interpret` does."""
    return compile_emulated([program])[0](arrays, parameters)


def compile_emulated(programs: Sequence[CudaProgram | Kernel]) -> list[EmulatedKernel]:
    """Return programs compiled together into one library, which is kept by its content for the next process."""
    emitted = [
        artifact(Compilation(p, Cuda(), schedule="finished")).program if isinstance(p, Kernel) else p for p in programs
    ]
    text = translation_unit(emitted)
    library = ctypes.CDLL(str(build(text)))
    return [
        EmulatedKernel(p, {launch.function: _entry(library, i, launch) for launch in p.launches})
        for i, p in enumerate(emitted)
    ]


def translation_unit(programs: Sequence[CudaProgram]) -> str:
    """Return C++ source with every program, each in a namespace, and an entry `pN_FUNCTION_run` for each function."""
    parts = [wrapped(i, p.source, [launch.function for launch in p.launches]) for i, p in enumerate(programs)]
    return "".join(['#include "emulation.h"\n', *parts])


def wrapped(number: int, source: str, functions: Sequence[str]) -> str:
    """Return a program's source in a namespace of its own, and its entries; its functions get unique names."""
    names = [f"p{number}_{f}" for f in functions]
    return "".join(
        [
            *(f"#define {f} {name}\n" for f, name in zip(functions, names, strict=True)),
            f"namespace p{number} {{\n{source}\n}}\n",
            *(f"#undef {f}\n" for f in functions),
            *(_ENTRY.format(name=name, space=f"p{number}") for name in names),
        ]
    )


_ENTRY = """extern "C" int {name}_run(const unsigned* sizes, void** arguments, int barriers, int reversed) {{
    return emulation::launch({space}::{name}, sizes, arguments, barriers, reversed);
}}
"""


def _entry(library: ctypes.CDLL, number: int, launch: Launch) -> ctypes._NamedFuncPointer:
    function = library[f"p{number}_{launch.function}_run"]
    sizes, arguments = ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_void_p)
    function.argtypes = [sizes, arguments, ctypes.c_int, ctypes.c_int]
    function.restype = ctypes.c_int
    return function


def build(text: str) -> Path:
    """Return the shared library of a translation unit, from the cache of such libraries or compiled now."""
    cxx = compiler()
    if cxx is None:
        raise NoCompilerError("no C++ compiler was found: install g++ or clang++, or name one in $CXX")
    key = hashlib.sha256("\0".join([text, HEADER.read_text(), cxx, *FLAGS]).encode()).hexdigest()
    path = _directory() / f"{key}.so"
    if path.exists():
        return path
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        source, target = Path(scratch) / "kernels.cpp", Path(scratch) / "kernels.so"
        source.write_text(text)
        command = [cxx, *FLAGS, f"-I{HEADER.parent}", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise InternalError(f"emitted CUDA C does not compile for the CPU:\n{done.stderr}")
        target.rename(path)
    return path


@functools.lru_cache(maxsize=1)
def _directory() -> Path:
    """Return a directory of this user alone for compiled libraries; a fresh one if the usual one is not trusted."""
    path = Path(tempfile.gettempdir()) / f"opgen-emulation-{os.geteuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o022 == 0 and path.is_dir() and not path.is_symlink():
        return path
    return Path(tempfile.mkdtemp(prefix="opgen-emulation-"))


def _poisoned(shape: tuple[int, ...], dtype: DType) -> AnyArray:
    array = empty_aligned(tuple(max(0, n) for n in shape), dtype)
    poison(array)
    return array


@dataclass(frozen=True)
class _Emulation:
    """A backend whose device memory is numpy arrays."""

    functions: Mapping[str, ctypes._NamedFuncPointer]
    memory: dict[str, AnyArray] = field(default_factory=dict)
    reverse: bool = False

    def allocate(self, buffer: str, dtype: DType, elements: int) -> None:
        self.memory[buffer] = _poisoned((elements,), dtype)

    def release(self, buffer: str) -> None:
        del self.memory[buffer]

    def only(self, buffer: str) -> int:
        return int(self.memory[buffer].reshape(-1)[0])

    def launch(self, launch: Launch, grid: Sizes, block: Sizes, scalars: Mapping[str, Scalar]) -> None:
        held = [
            ctypes.c_void_p(self.memory[a.name].ctypes.data) if a.pointer else c_scalar(a.dtype, scalars[a.name])
            for a in launch.arguments
        ]
        arguments = (ctypes.c_void_p * max(1, len(held)))(*(ctypes.addressof(value) for value in held))
        sizes = (ctypes.c_uint * 6)(*grid, *block)
        status = self.functions[launch.function](sizes, arguments, launch.barriers, self.reverse)
        if status:
            raise InternalError(f"{launch.function}: {_STATUS[status]}")
