"""A program that measures its steps: the same steps, with the processor's counter read between them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opgen.graph.program.program_ir import Entry, entry_code
from opgen.graph.program.runnable import ENTRY
from opgen.runtime.memory.address import address
from opgen.runtime.native.library import load_library


@dataclass(frozen=True)
class ClockedRun:
    """A run: its status, the word that a failed step reports, the seconds of the whole, and those of each step."""

    status: int
    reported: int
    whole: float
    steps: Sequence[float]


class ClockedEntry:
    """The entry of a program, loaded, with a clock; `tensors` is the number of its inputs and outputs."""

    def __init__(self, name: str, entry: Entry, tensors: int) -> None:
        """Compile and load the entry.  Raises NoCompilerError if LLVM is missing."""
        self._steps = len(entry.launches)
        self._library = load_library(entry_code(ENTRY, entry, clock=tensors), ENTRY, owner=name)
        self._function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 5, ctypes.c_int64)(
            self._library.address(ENTRY)
        )

    def run(
        self, tensors: Sequence[ctypes.c_int64 | int], tables: tuple[int, int], arena: int, parallel: int, threads: int
    ) -> ClockedRun:
        """Run on tensors at these addresses.

        `tables` are of kernels and of weights, `parallel` is the parallel loop (0: none).
        """
        ticks = np.zeros(self._steps + 1, np.int64)
        words = (ctypes.c_int64 * (len(tensors) + 1))(*tensors, address(ticks))
        kernels, weights = tables
        begin = time.perf_counter()
        status = self._function(kernels, ctypes.addressof(words), weights, arena, parallel, threads)
        whole = time.perf_counter() - begin
        counts = np.diff(ticks)
        return ClockedRun(status, words[0], whole, [float(c) * whole / max(1, int(counts.sum())) for c in counts])
