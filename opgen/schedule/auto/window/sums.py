"""Windows of few results, each a sum of many terms: all sums in registers, the terms in tiles.

parallel for vectors: for y: for x in tiles: for r, x, s: sum[r, s]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.schedule.auto.cuts import Tiles, sizes
from opgen.schedule.auto.ends import ends_of
from opgen.schedule.auto.plan import Plan
from opgen.schedule.auto.window.nest import WindowNest
from opgen.schedule.cost.calibration import SUM_OPERANDS, TAPS, TERMS_SHARED


@dataclass(frozen=True)
class SumTile(WindowNest):
    @property
    def proven(self) -> bool:
        return self.few_results

    def plan(self) -> Plan:
        """Vectors outermost; within the other results where they are not whole."""
        column, lanes, tiled = self.column, self.in_lanes, self.column.term
        rows = [n for n in self._sums if n not in (column.result, *self.beside)]
        tile = (*rows, f"{tiled}.i", column.result, *self.beside)
        others = [n for n in self.nest.names if n not in (self.vector, *self._sums)]
        exact, inside = lanes.tail == "exact", self.roles.terms[self.roles.terms.index(tiled) + 1 :]
        return Plan(
            "window_sums",
            lanes.inner,
            cuts=(self._tiles.cut(tiled), lanes),
            order=(lanes.outer, *others) if exact else (*others, lanes.outer),
            regrouped=tuple((f"{tiled}.i", n) for n in inside),
            terms=tuple(f"{tiled}.o" if n == tiled else n for n in self.roles.terms),
            tile=tile,
            threads=(lanes.outer,) if exact else tuple(others[:1]),
            ends=ends_of(self.nest, tiled, self._tiles, column.reach_of_terms(self._extent(column.result))),
        )

    @cached_property
    def _tiles(self) -> Tiles:
        """As many terms as leave registers for what they read; 4 are enough to share that."""
        length = self.roles.counts[self.column.term]
        room = max(1, self.machine.registers - SUM_OPERANDS - prod(self._extent(n) for n in self._sums))
        most = min(room, TERMS_SHARED if length % TERMS_SHARED == 0 else 2 * TERMS_SHARED - 1)
        return Tiles(length, max(sizes(length, 1, most)))

    @cached_property
    def _sums(self) -> tuple[str, ...]:
        """The loops of results that are kept in registers: those of the taps, or the columns alone."""
        wanted = {w.result for w in (self.row, self.column) if w is not None} | set(self.beside)
        if prod(self._extent(n) for n in wanted) <= TAPS:
            return tuple(n for n in self.nest.names if n in wanted)
        return (self.column.result, *self.beside)
