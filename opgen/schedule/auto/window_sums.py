"""Windows of few results, each a sum of many terms: all sums in registers, the terms in tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies import stage_in_registers
from opgen.schedule.auto.nests import Nest, depends
from opgen.schedule.auto.trial import Trial
from opgen.schedule.auto.walks import Walk
from opgen.schedule.auto.window_tiles import Cut, sizes
from opgen.schedule.split import Tail
from opgen.schedule.steps import Parallel, Partition, Reorder, Split, Step, Unroll, Vectorize

SUMS = 25
"""Most sums that are kept in registers."""


@dataclass(frozen=True)
class SumTile:
    nest: Nest
    trial: Trial
    vector: str
    lanes: int
    machine: Machine
    row: Walk | None
    column: Walk

    def run(self) -> bool:
        terms = {s.var: constant_extent(s) or 0 for s in self.nest.inner_loops}
        tiled = self.column.term
        cut = Cut(terms[tiled], self._size(terms[tiled]))
        width = self._extent(self.vector)
        wide: Tail = "exact" if width % self.lanes == 0 else "overlap"
        fresh = self.trial.fresh
        v_o, v_l = fresh(f"{self.vector}_o"), fresh(f"{self.vector}_l")
        t_o, t_i = fresh(f"{tiled}_o"), fresh(f"{tiled}_i")
        others = [n for n in self.nest.names if n not in (self.vector, *self._sums)]
        around = [*others, v_o] if wide == "overlap" else [v_o, *others]
        long = [t_o if n == tiled else n for n in terms]
        rows = [n for n in self._sums if n != self.column.result]
        tile = (*rows, t_i, *(n for n in self._sums if n == self.column.result))
        if not self.trial.take(
            Split(tiled, cut.size, cut.tail, t_o, t_i),
            Split(self.vector, self.lanes, wide, v_o, v_l),
            Reorder((*around, *long, *tile, v_l)),
        ):
            return False
        copies = self._kept(cut, t_o)
        if not self.trial.take(*(Unroll(n) for n in tile), Vectorize(v_l), *copies):
            return False
        self.trial.fused_prefix([n for n in around if n != v_o or wide == "exact"][:1], Parallel)
        self._set_apart(t_o, cut)
        return True

    def _extent(self, loop: str) -> int:
        extent = self.nest.extent(loop)
        assert extent is not None
        return extent

    @cached_property
    def _sums(self) -> tuple[str, ...]:
        """The loops of results that are kept in registers: those of the taps, or the columns alone."""
        wanted = [walk.result for walk in (self.row, self.column) if walk is not None]
        if prod(self._extent(n) for n in wanted) <= SUMS:
            return tuple(n for n in self.nest.names if n in wanted)
        return (self.column.result,)

    def _size(self, length: int) -> int:
        """As many terms as leave registers for what they read; 4 are enough to share that."""
        sums = prod(self._extent(n) for n in self._sums)
        most = max(1, min(4, self.machine.registers - 3 - sums))
        return max(sizes(length, 1, most if length % 2 == 0 or most < 4 else 7))

    def _kept(self, cut: Cut, at: str) -> list[Step]:
        """What does not depend on the sums, read once a tile."""
        sums = prod(self._extent(n) for n in self._sums)
        beside = [
            e for e in dict.fromkeys(self.nest.outside_loads) if not any(depends(e.indices, n) for n in self._sums)
        ]
        if cut.tail != "exact" or len(beside) != 1 or sums + cut.size + 2 > self.machine.registers:
            return []
        return stage_in_registers(self.trial, beside[0], at, self.vector)

    def _set_apart(self, tiles: str, cut: Cut) -> None:
        """Columns at the border; rows are branches."""
        if cut.tail == "exact" and not any(depends(c, self.column.term) for c in self.nest.conditions):
            return
        taps = self._extent(self.column.result)
        reach = (taps - 1) * abs(self.column.step) // (2 * abs(self.column.apart))
        at = cut.border(max(1, reach))
        if at:
            self.trial.take(Partition(tiles, at))
