"""Windows of few results, each a sum of many terms: all sums in registers, the terms in tiles.

    parallel for vectors: for y: for x in tiles: for r, x, s: sum[r, s]

Data from memory is read in order: vectors are inside, and accumulators are spilled until the next tile, some rows high.

    parallel for blocks: for y in tiles: for x: for vectors: for the rows that are read: for s: sum[r, s]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.locks import cached_property
from opgen.schedule.auto.cuts import Tiles, sizes
from opgen.schedule.auto.ends import ends_of
from opgen.schedule.auto.nests import read_bytes
from opgen.schedule.auto.plan import Cut, Ends, Plan, Skewed, Waiting
from opgen.schedule.auto.walks import Walk
from opgen.schedule.auto.window.nest import WindowNest
from opgen.schedule.cost.calibration import STREAMS, SUM_OPERANDS, SUM_TERMS, SUMS_WAITING, TAPS, TERMS_SHARED


@dataclass(frozen=True)
class SumTile(WindowNest):
    @property
    def proven(self) -> bool:
        return self.few_results

    def plan(self) -> Plan:
        return self._by_vectors() if self._far is None else self._in_order(*self._far)

    def _by_vectors(self) -> Plan:
        """Return a plan with vectors outermost; partial vectors go inside the other results."""
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
        """Return tiles with as many terms as leave registers for their operands; 4 share these well enough."""
        length = self.roles.counts[self.column.term]
        room = max(1, self.machine.registers - SUM_OPERANDS - prod(self._extent(n) for n in self._sums))
        most = min(room, TERMS_SHARED if length % TERMS_SHARED == 0 else 2 * TERMS_SHARED - 1)
        return Tiles(length, max(sizes(length, 1, most)))

    @cached_property
    def _sums(self) -> tuple[str, ...]:
        """Return the loops of results that are kept in registers: those of the taps, or the columns alone."""
        wanted = {w.result for w in (self.row, self.column) if w is not None} | set(self.beside)
        if prod(self._extent(n) for n in wanted) <= TAPS:
            return tuple(n for n in self.nest.names if n in wanted)
        return (self.column.result, *self.beside)

    # Data from memory -------------------------------------------------------------------------

    @cached_property
    def _far(self) -> tuple[Walk, int] | None:
        """Return the rows, and the number of vectors in a block, if all reads come from memory; else None.

        Results must be whole vectors of taps, and each core must have two or more vectors.
        """
        row, column = self.row, self.column
        if row is None or self.width % self.lanes or not self.memory.is_far(read_bytes(self.nest)):
            return None
        taps = {self.vector, row.result, column.result} == set(self.nest.names) == {self.vector, *self._sums}
        if prod(map(self._extent, self._sums)) > SUMS_WAITING:
            return None
        if not taps or self.roles.terms[-2:] != (row.term, column.term) or row.apart % row.step:
            return None
        vectors, cores = self.width // self.lanes, self.machine.cores
        together = next(n for n in range(-(-vectors // cores), 0, -1) if vectors % n == 0)
        return (row, together) if together > 1 else None

    def _in_order(self, row: Walk, vectors: int) -> Plan:
        column, v, y, x = self.column, self.vector, self._high(row).cut(row.term), self.column.term
        tile = (row.result, y.inner, column.result)
        lanes = Cut(f"{v}.v", self.lanes, f"{v}.o", f"{v}.l")
        reach = column.reach_of_terms(self._extent(column.result))
        return Plan(
            "window_sums",
            lanes.inner,
            cuts=(y, Cut(v, self.lanes * vectors, f"{v}.b", f"{v}.v"), lanes),
            order=(f"{v}.b",),
            regrouped=((y.inner, x),),
            terms=(*self.roles.terms[:-2], y.outer, x, lanes.outer),
            skewed=(Skewed(row.result, y.inner, row.apart // row.step),),
            tile=tile,
            waiting=(Waiting(self.nest.allocations[0].name, lanes.outer),),
            threads=(f"{v}.b",),
            ends=tuple(Ends(x, e.at) for e in ends_of(self.nest, x, Tiles(self.roles.counts[x], 1), reach)),
        )

    def _high(self, row: Walk) -> Tiles:
        """Return tiles of as many rows as have the fewest loads and stores for each term."""
        down, across = (self._extent(w.result) for w in (row, self.column))
        columns, length = self.column.places(across, 1), self.roles.counts[row.term]

        def cost(tiles: Tiles) -> float:
            read = row.places(down, tiles.size) * columns
            return (read + tiles.size + 2 * down * across) / tiles.size * tiles.waste

        room = max(1, min(SUM_TERMS, self.machine.registers - SUM_OPERANDS - down * across))
        found = [Tiles(length, h) for h in sizes(length, 1, room) if row.places(down, h) <= STREAMS or h == 1]
        return min(found, key=lambda t: (cost(t), -t.size))
