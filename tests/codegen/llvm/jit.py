"""Kernels compiled to object code, loaded into this process and called with numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence

import llvmlite.binding as llvm
import numpy as np

from opgen.codegen.llvm.compile import object_code
from opgen.codegen.llvm.emit import emit, entry_name
from opgen.codegen.llvm.target import Target
from opgen.loop.nodes import Kernel

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Compiled:
    """A kernel, loaded as the run-time loads it: from the bytes of its object file."""

    def __init__(self, kernel: Kernel, target: Target | None = None) -> None:
        self.kernel = kernel
        self.target = target or Target.host()
        self.ir = self.edited(emit(kernel, self.target))
        self._load(object_code(self.ir, self.target, kernel.is_bound))

    def edited(self, ir: str) -> str:
        """The text that is compiled; a test may replace parts of it."""
        return ir

    def _load(self, code: bytes) -> None:
        # The engine needs a module and a machine of its own; the code is that of the object file.
        machine = llvm.Target.from_triple(self.target.triple).create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        address = self._engine.get_function_address(entry_name(self.kernel))
        self.function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(address)

    def words(
        self,
        buffers: Sequence[int],
        parameters: Mapping[str, int | float | bool],
        parallel_for: int = 0,
        threads: int = 1,
    ) -> np.ndarray:
        """The argument block for buffer addresses and parameters."""
        values = [np.array([parallel_for, threads, *buffers], dtype=np.int64)]
        for p in self.kernel.parameters:
            value = parameters[p.name]
            kind = np.float64 if p.dtype.is_float else np.int64
            values.append(np.array([value], dtype=kind).view(np.int64))
        return np.concatenate(values)

    def __call__(
        self,
        *arrays: np.ndarray,
        parallel_for: Callable[..., None] | None = None,
        threads: int = 1,
        **parameters: int | float | bool,
    ) -> int:
        """Run on the arrays (inputs, then outputs); the status."""
        for array in arrays:
            assert array.flags.c_contiguous
        callback = PARALLEL_FOR(parallel_for) if parallel_for else None
        address = ctypes.cast(callback, ctypes.c_void_p).value if callback else 0
        block = self.words([a.ctypes.data for a in arrays], parameters, address or 0, threads)
        return int(self.function(block.ctypes.data))
