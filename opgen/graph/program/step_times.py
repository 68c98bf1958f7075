"""Time of each step of a program on one thread."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opgen.diagnostics import InternalError
from opgen.dtypes import DTYPES
from opgen.graph.ir.nodes import Array
from opgen.graph.program.loaded import LoadedProgram
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import empty_aligned


@dataclass(frozen=True)
class Taken:
    """Seconds of a program on one thread: `steps` has the least of each step, `whole` is the median of all runs."""

    steps: Sequence[float]
    whole: float


def step_seconds(loaded: LoadedProgram, inputs: Mapping[str, Array], runs: int = 5) -> Taken:
    """Measure a program in some runs on one thread, after one that warms the caches."""
    program = loaded.runnable
    tensors = [np.ascontiguousarray(inputs[v.name]) for v in program.inputs]
    tensors += [empty_aligned(v.shape, v.dtype) for v in program.outputs]
    arena = empty_aligned((max(1, program.arena_bytes(1)),), DTYPES["uint8"])
    entry, addresses = loaded.clocked(), [address(t) for t in tensors]
    found = [entry.run(addresses, loaded.tables, address(arena), 0, 1) for _ in range(runs + 1)]
    if any(run.status for run in found):
        raise InternalError(f"a step of '{program.name}' failed while its time was measured")
    taken = zip(*(run.steps for run in found[1:]), strict=True)
    return Taken([min(step) for step in taken], statistics.median(run.whole for run in found[1:]))
