"""Blocks of the loop along which the last nest of a chain has its results side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from opgen.machine import Machine
from opgen.schedule.auto.chain.blocks import Blocks
from opgen.schedule.auto.cuts import divisors
from opgen.schedule.auto.nests import Nest, contiguous_loop, depends
from opgen.schedule.auto.site import lanes_of
from opgen.schedule.auto.sources import Sources
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import BLOCKS_ALIKE, CHAIN_VECTORS, FOUND_SUMS, KEPT
from opgen.schedule.cost.memory import Memory, Shares
from opgen.schedule.steps import ComputeAt, Parallel, Reorder, Split


@dataclass(frozen=True)
class LaneBlocks(Blocks):
    """The last nest of a chain, and the loop of its lanes alone: what all blocks share is made before."""

    room: ClassVar[float] = KEPT

    @staticmethod
    def of(nest: Nest, sources: Sources, machine: Machine) -> LaneBlocks | None:
        """The blocks of a nest, if no input is then read in pieces of its lines."""
        vector = contiguous_loop(nest)
        found = None if vector is None else LaneBlocks(nest, (vector,), sources, machine)
        return None if found is None or found._along_inputs() else found

    def _along_inputs(self) -> bool:
        """Whether an input of which blocks read a part each lies along the loop."""
        loops = {buffer: self._followers[buffer][self.loops[0]] for buffer in self._movable}
        reads = [(e, loop) for b, loop in loops.items() for e in self.sources.reads(self.sources.writers[b])]
        return any(e.buffer not in self.sources.local and depends(e.indices[-1:], loop) for e, loop in reads)

    def run(self, trial: Trial) -> bool:
        if self.best is None:
            return False
        (loop,), (_, size) = self.loops, self.best
        block, inner = trial.fresh(f"{loop}_b"), trial.fresh(f"{loop}_t")
        others = [n for n in self.last.names if n != loop]
        return trial.take(
            Reorder((loop, *others)),
            Parallel(loop),
            Split(loop, size, "exact", block, inner),
            Reorder((*others, inner)),
            *(ComputeAt(buffer, block) for buffer in self._moved),
        )

    def _best(self, moved: tuple[str, ...], depth: int) -> tuple[float, tuple[int, int]]:
        extent = self._extents[0]
        step = CHAIN_VECTORS * lanes_of(self.last, self.machine, None)
        sizes = [n for n in divisors(extent) if n % step == 0 and n < extent]
        found = [(self._seconds(moved, extent // n), (0, n)) for n in sizes]
        least = min((seconds for seconds, _ in found), default=0)
        alike = (f for f in found if f[0] <= BLOCKS_ALIKE * least)
        return next(alike, (self._seconds(moved, 1), (-1, 1)))

    @cached_property
    def _memory(self) -> Memory:
        """As for other blocks, beside what passes through."""
        return Memory(self.machine, Shares(0, KEPT, KEPT * FOUND_SUMS))
