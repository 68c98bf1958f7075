"""Blocks for a reduction that sums intermediates of a chain."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod

from opgen.locks import cached_property
from opgen.loop.nodes import For
from opgen.loop.walk import loops_in
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.chain.blocks import Blocks
from opgen.schedule.auto.nests import Nest, contiguous_loop, depends, is_contiguous
from opgen.schedule.auto.site import lanes_of
from opgen.schedule.auto.sources import Sources
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import (
    BACK,
    CHAIN_BLOCKS,
    KEPT,
    OWN_SUMS,
    PARTS,
    START,
)
from opgen.schedule.steps import Carry, ComputeAt, Divide, Parallel, Split, Step, Vectorize


@dataclass(frozen=True)
class SumBlocks(Blocks):
    """A loop nest that reduces intermediates, and the loops of its reduction.

    Each block makes its part of the intermediates and updates all results, which are smaller.  Blocks run one after
    another; threads share the loop nests in each.
    """

    @staticmethod
    def of(nest: Nest, sources: Sources, machine: Machine) -> SumBlocks | None:
        """Return the blocks of a loop nest, if it is one sum for each result; else None."""
        inside = nest.inner_loops
        nested = all(any(p is inner for p in loops_in(outer)) for outer, inner in pairwise(inside))
        if not inside or not nested or len(nest.allocations) != 1 or len(nest.results) != 1:
            return None
        return SumBlocks(nest, tuple(s.var for s in inside), sources, machine)

    def run(self, trial: Trial) -> bool:
        if self.best is None:
            return False
        level, size = self.best
        first, loops, steps = self.last.names[0], [*self.loops], list[Step]()
        if self._parts > 1:
            loops[0], divided = self._apart_for_threads(trial)
            steps += divided
        loop = loops[level]
        block = trial.fresh(f"{loop}_b") if size > 1 else loop
        steps += [Split(loop, size, "exact", block, trial.fresh(f"{loop}_t"))] if size > 1 else []
        steps += [Carry(n, first) for n in (*loops[:level], block)]
        steps += [ComputeAt(buffer, block) for buffer in self._moved]
        return trial.take(*steps)

    @cached_property
    def _parts(self) -> int:
        """Return the number of parts of the terms that have sums of their own, one for each core.

        Threads then synchronise once, not after each loop nest of each block, and use their own intermediates.  The
        number is 1 if blocks are few, or sums fill the second cache.
        """
        assert self.best is not None
        (level, size), cores = self.best, self.machine.cores
        each, left = divmod(self._extents[0], cores)
        even = left == 0 and (level > 0 or each % size == 0)
        blocks = prod(self._extents[: level + 1]) // size
        near = OWN_SUMS * self._size(self.last.results[0].buffer) <= self.machine.l2.size
        width = self.last.extent(contiguous_loop(self.last) or "") or 0
        whole = width > 0 and width % self._lanes == 0
        enough = blocks >= CHAIN_BLOCKS * cores
        return cores if self._is_outer and even and near and whole and enough and cores <= PARTS else 1

    def _apart_for_threads(self, trial: Trial) -> tuple[str, list[Step]]:
        """Divide the outermost loop among threads; return the rest of it, and the steps."""
        loop, vector = self.loops[0], contiguous_loop(self.last)
        part, rest, sums = trial.fresh(f"{loop}_p"), trial.fresh(f"{loop}_r"), trial.fresh("sums")
        across, lane = trial.fresh(f"{sums}_v"), trial.fresh(f"{sums}_l")
        return rest, [
            Split(loop, self._extents[0] // self._parts, "exact", part, rest),
            Divide(part, self.last.names[0], sums),
            Parallel(part),
            Split(f"{sums}_{vector}", self._lanes, "exact", across, lane),
            Vectorize(lane),
            Parallel(f"{sums}_{self.last.names[0]}"),
        ]

    @property
    def _lanes(self) -> int:
        return lanes_of(self.last, self.machine, None)

    @cached_property
    def _extents(self) -> tuple[int, ...]:
        loops: dict[str, For] = {s.var: s for s in self.last.inner_loops}
        return tuple(constant_extent(loops[n]) or 0 for n in self.loops)

    def _seconds(self, moved: tuple[str, ...], blocks: int) -> float:
        """Return the time of memory as other blocks do, plus reading and writing results and synchronising threads."""
        piece, results = sum(map(self._size, moved)) / blocks, self._size(self.last.results[0].buffer)
        sums = 0 if blocks == 1 else 2 * results / self._rate_kept(results + piece)
        second = self.machine.l2.size
        far = piece > KEPT * second
        rate = self._rate_of_made(max(piece, second + 1)) / BACK if far else self._rate(piece)
        each = 2 * piece / rate + sums + START * (1 + len(moved))
        return blocks * each

    def _rate_kept(self, size: float) -> float:
        """Return the bandwidth for data that is read again, if the second cache holds it."""
        second = self.machine.l2.size
        return self._rate(size if size <= KEPT * second else max(size, second + 1))

    @cached_property
    def _is_outer(self) -> bool:
        """Return True if each term is an outer product of two intermediates: a tile reads pieces of many lines of
        both.
        """
        nest, loads = self.last, self.last.outside_loads
        shared = all(any(not depends(e.indices, n) for n in nest.names) for e in loads)
        apart = not any(is_contiguous(e, nest.inner_loops[-1].var, nest.shapes) for e in loads)
        return shared and apart and len({e.buffer for e in loads}) == len(self._movable) == 2
