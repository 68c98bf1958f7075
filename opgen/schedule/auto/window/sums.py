"""Windows of few results, each a sum of many terms: all sums in registers, the terms in tiles.

parallel for vectors: for y: for x in tiles: for r, x, s: sum[r, s]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.schedule.auto.cuts import Cut, sizes
from opgen.schedule.auto.ends import set_apart
from opgen.schedule.auto.window.nest import WindowNest
from opgen.schedule.cost.calibration import SUM_OPERANDS, TAPS, TERMS_SHARED
from opgen.schedule.steps import Parallel, Regroup, Reorder, Split, Unroll, Vectorize


@dataclass(frozen=True)
class SumTile(WindowNest):
    @property
    def proven(self) -> bool:
        return self.few_results

    def take(self) -> bool:
        """Vectors outermost; within the other results where they are not whole."""
        cut, lanes, tiled = self._cut, self.split(), self.column.term
        t_o, t_i = self.trial.fresh(f"{tiled}_o"), self.trial.fresh(f"{tiled}_i")
        long = [t_o if n == tiled else n for n in self.roles.counts]
        rows = [n for n in self._sums if n not in (self.column.result, *self.beside)]
        tile = (*rows, t_i, self.column.result, *self.beside)
        others = [n for n in self.nest.names if n not in (self.vector, *self._sums)]
        exact = self.width % self.lanes == 0
        around = (lanes.vectors, *others) if exact else (*others, lanes.vectors)
        if not self.trial.take(
            Split(tiled, cut.size, cut.tail, t_o, t_i),
            *(Regroup(t_i, n) for n in self.roles.terms[self.roles.terms.index(tiled) + 1 :]),
            lanes.split,
            Reorder((*around, *long, *tile, lanes.lane)),
            *(Unroll(n) for n in tile),
            Vectorize(lanes.lane),
        ):
            return False
        self.trial.fused_prefix([n for n in around if n != lanes.vectors or exact][:1], Parallel)
        set_apart(self.trial, self.nest, self.column, t_o, cut)
        return True

    @cached_property
    def _cut(self) -> Cut:
        """As many terms as leave registers for what they read; 4 are enough to share that."""
        length = self.roles.counts[self.column.term]
        room = max(1, self.machine.registers - SUM_OPERANDS - prod(self._extent(n) for n in self._sums))
        most = min(room, TERMS_SHARED if length % TERMS_SHARED == 0 else 2 * TERMS_SHARED - 1)
        return Cut(length, max(sizes(length, 1, most)))

    @cached_property
    def _sums(self) -> tuple[str, ...]:
        """The loops of results that are kept in registers: those of the taps, or the columns alone."""
        wanted = {w.result for w in (self.row, self.column) if w is not None} | set(self.beside)
        if prod(self._extent(n) for n in wanted) <= TAPS:
            return tuple(n for n in self.nest.names if n in wanted)
        return (self.column.result, *self.beside)
