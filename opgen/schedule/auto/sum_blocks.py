"""The blocks in which a reduction is computed that sums intermediates of a chain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from opgen.loop.nodes import For
from opgen.loop.walk import walk
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.chain_blocks import START, Blocks
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.sources import Sources
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Carry, ComputeAt, Split, Step


@dataclass(frozen=True)
class SumBlocks(Blocks):
    """A nest that reduces intermediates, and the loops of its reduction.

    What a block needs of the intermediates is made, and all results, which are smaller, go on with their sums.  Blocks
    come one after another; threads share the nests in each.
    """

    @staticmethod
    def of(nest: Nest, sources: Sources, machine: Machine) -> SumBlocks | None:
        """The blocks of a nest, if it is one sum for each result."""
        inside = nest.inner_loops
        nested = all(any(p is inner for p in walk(outer)) for outer, inner in pairwise(inside))
        if not inside or not nested or len(nest.allocations) != 1 or len(nest.results) != 1:
            return None
        return SumBlocks(nest, tuple(s.var for s in inside), sources, machine)

    def run(self, trial: Trial) -> bool:
        if self.best is None:
            return False
        level, size = self.best
        loop, first = self.loops[level], self.last.names[0]
        block = trial.fresh(f"{loop}_b") if size > 1 else loop
        steps: list[Step] = [Split(loop, size, "exact", block, trial.fresh(f"{loop}_t"))] if size > 1 else []
        steps += [Carry(n, first) for n in (*self.loops[:level], block)]
        steps += [ComputeAt(buffer, block) for buffer in self._moved]
        return trial.take(*steps)

    @cached_property
    def _extents(self) -> tuple[int, ...]:
        loops: dict[str, For] = {s.var: s for s in self.last.inner_loops}
        return tuple(constant_extent(loops[n]) or 0 for n in self.loops)

    def _seconds(self, moved: tuple[str, ...], blocks: int) -> float:
        """As for other blocks, and each reads the results so far and writes them; threads meet after each nest."""
        piece, results = sum(map(self._size, moved)) / blocks, self._size(self.last.results[0].buffer)
        passes = 2 if piece <= self.machine.l2.size else 4
        sums = 0 if blocks == 1 else 2 * results / self._rate(results + piece)
        return blocks * (passes * piece / self._rate(piece) + sums + START * (1 + len(moved)))
