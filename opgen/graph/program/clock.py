"""How long each step of a program takes: the same steps, with the processor's counter read between them."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opgen.compiler import toolchain
from opgen.diagnostics import InternalError
from opgen.dtypes import DTYPES
from opgen.graph.ir.nodes import Array
from opgen.graph.program.loaded import LoadedProgram
from opgen.graph.program.program import ENTRY
from opgen.graph.program.program_ir import entry_ir
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import empty_aligned
from opgen.runtime.native.library import load_library


@dataclass(frozen=True)
class Taken:
    """Seconds of a program by one thread: `steps` has the least of each step, `whole` is the median of all runs."""

    steps: Sequence[float]
    whole: float


def step_seconds(loaded: LoadedProgram, inputs: Mapping[str, Array], runs: int = 5) -> Taken:
    """Measure a program in some runs by one thread, after one that warms the caches."""
    program = loaded.program
    tensors = [np.ascontiguousarray(inputs[v.name]) for v in program.inputs]
    tensors += [empty_aligned(v.shape, v.dtype) for v in program.outputs]
    ticks = np.zeros(len(program.entry.launches) + 1, np.int64)
    target = toolchain.host()
    code = toolchain.object_code(entry_ir(ENTRY, program.entry, target, clock=len(tensors)), target, bound=True)
    library = load_library(code, ENTRY, owner=program.name)
    arena = empty_aligned((max(1, program.arena_bytes(1)),), DTYPES["uint8"])
    kernels, weights = loaded.tables
    table = (ctypes.c_int64 * (len(tensors) + 1))(*map(address, tensors), address(ticks))
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 5, ctypes.c_int64)(library.address(ENTRY))
    taken: list[list[float]] = []
    wholes: list[float] = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        if function(kernels, ctypes.addressof(table), weights, address(arena), None, 1):
            raise InternalError(f"a step of '{program.name}' failed while its time was measured")
        elapsed = time.perf_counter() - begin
        wholes.append(elapsed)
        counts = np.diff(ticks)
        taken.append([float(c) * elapsed / max(1, int(counts.sum())) for c in counts])
    return Taken([min(step) for step in zip(*taken[1:], strict=True)], statistics.median(wholes[1:]))
