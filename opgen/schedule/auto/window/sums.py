"""Windows of few results, each a sum of many terms: all sums in registers, the terms in tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.schedule.auto.copies.held import stage_in_registers, stage_on_stack
from opgen.schedule.auto.cuts import Cut, largest_divisor, sizes
from opgen.schedule.auto.ends import set_apart
from opgen.schedule.auto.nests import depends, read_bytes
from opgen.schedule.auto.window.nest import Lanes, WindowNest
from opgen.schedule.cost.calibration import (
    COPIED_BESIDE,
    COPIED_VECTORS,
    KEPT_WINDOW,
    ROW_OPERANDS,
    SUM_OPERANDS,
    TAPS,
    TERMS_SHARED,
)
from opgen.schedule.steps import Parallel, Regroup, Reorder, Split, Step, Unroll, Vectorize


@dataclass(frozen=True)
class SumTile(WindowNest):
    @property
    def proven(self) -> bool:
        return self.few_results

    def tile(self) -> bool:
        cut, lanes = self._cut, self._lanes
        tiled = self.column.term
        t_o, t_i = self.trial.fresh(f"{tiled}_o"), self.trial.fresh(f"{tiled}_i")
        long = [t_o if n == tiled else n for n in self.roles.counts]
        rows = [n for n in self._sums if n not in (self.column.result, *self.beside)]
        tile = (*rows, t_i, self.column.result, *self.beside)
        within = self.roles.terms[self.roles.terms.index(tiled) + 1 :]
        if not self.trial.take(
            Split(tiled, cut.size, cut.tail, t_o, t_i),
            *(Regroup(t_i, n) for n in within),
            *lanes.splits,
            Reorder((*self._around, *long, *tile, lanes.lane)),
        ):
            return False
        copies = self._copies(long[-1])
        if not self.trial.take(*(Unroll(n) for n in tile), Vectorize(lanes.lane), *copies):
            return False
        exact = self._extent(self.vector) % self.lanes == 0
        self.trial.fused_prefix([n for n in self._around if n != lanes.vectors or exact][:1], Parallel)
        set_apart(self.trial, self.nest, self.column, t_o, cut)
        return True

    @cached_property
    def _cut(self) -> Cut:
        """As many terms as leave registers for what they read; 4 are enough to share that."""
        length = self.roles.counts[self.column.term]
        room = max(1, self.machine.registers - SUM_OPERANDS - self._kept)
        most = min(room, TERMS_SHARED if length % TERMS_SHARED == 0 else 2 * TERMS_SHARED - 1)
        return Cut(length, max(sizes(length, 1, most)))

    @cached_property
    def _lanes(self) -> Lanes:
        return self.split(self._block)

    @property
    def _around(self) -> tuple[str, ...]:
        """Vectors outermost; in blocks where the lines of a row evict each other; within, where they are not whole."""
        lanes = self._lanes
        others = [n for n in self.nest.names if n not in (self.vector, *self._sums)]
        if self.width % self.lanes:
            return (*others, lanes.vectors)
        if lanes.block is None:
            return (lanes.vectors, *others)
        return (lanes.block, lanes.vectors, *others)

    @cached_property
    def _block(self) -> int:
        """How many vectors are done together: 1 where one by one is as well."""
        vectors, rest = divmod(self._extent(self.vector), self.lanes)
        if rest:
            return 1
        return largest_divisor(vectors, COPIED_VECTORS) if self._conflicts and not self._in_place else 1

    @property
    def _in_place(self) -> bool:
        """Whether lines far apart are as good as neighbours: the second cache holds them, and one core multiplies and
        adds as fast as it brings them.
        """
        return self._held and not self.execution.hides_loads

    @cached_property
    def _conflicts(self) -> bool:
        """Whether the lines that a tile reads push each other out of the first cache."""
        rows = self._kept // self._extent(self.column.result)
        return rows * self._columns + self._cut.size > self._lines

    @cached_property
    def _bytes(self) -> int:
        return read_bytes(self.nest)

    @property
    def _held(self) -> bool:
        """Whether all that is read stays in the second cache, where lines far apart are as good as neighbours."""
        return self.memory.holds(self._bytes, 2, KEPT_WINDOW)

    @property
    def _columns(self) -> int:
        return self.column.places(self._extent(self.column.result), self._cut.size)

    @cached_property
    def _lines(self) -> int:
        return self.machine.l1.lines_at(self.column.stride(self.nest))

    @cached_property
    def _sums(self) -> tuple[str, ...]:
        """The loops of results that are kept in registers: those of the taps, or the columns alone."""
        wanted = [*(walk.result for walk in (self.row, self.column) if walk is not None), *self.beside]
        if prod(self._extent(n) for n in wanted) <= TAPS:
            return tuple(n for n in self.nest.names if n in wanted)
        return (self.column.result, *self.beside)

    @cached_property
    def _kept(self) -> int:
        """How many sums are kept in registers."""
        return prod(self._extent(n) for n in self._sums)

    def _copies(self, at: str) -> list[Step]:
        """What a block of vectors reads, where lines evict each other; what does not depend on the sums, once a tile.

        Gives the steps still to be taken for the copies.
        """
        steps: list[Step] = []
        reads = list(dict.fromkeys(self.nest.summed))
        beside = [e for e in reads if not any(depends(e.indices, n) for n in self._sums)]
        if self._lanes.block is not None and self._conflicts:
            for load in (e for e in reads if e not in beside or not self._held):
                most = self.memory.usable(2, COPIED_BESIDE)
                steps += stage_on_stack(self.trial, load, self._lanes.block, self.vector, self.lanes, most)
        in_memory = bool(steps) and not self._held
        if in_memory or self._cut.tail != "exact" or len(beside) != 1:
            return steps
        if self._kept + self._cut.size + ROW_OPERANDS > self.machine.registers:
            return steps
        return steps + stage_in_registers(self.trial, beside[0], at, self.vector)
