"""Windows of few terms: a tile of results in registers, and unrolled taps inside.

The tile with the fewest reads for its arithmetic is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from math import prod

from opgen.locks import cached_property
from opgen.schedule.auto.cuts import Tiles, sizes
from opgen.schedule.auto.ends import ends_of
from opgen.schedule.auto.nests import touched_bytes
from opgen.schedule.auto.plan import Cut, Ends, Plan, Skewed
from opgen.schedule.auto.window.nest import WindowNest
from opgen.schedule.cost.calibration import (
    ALL,
    PARALLEL,
    PLACE_LINES,
    READ_TWICE,
    RESULTS_CONFLICTING,
    STREAMS,
    TAPS,
    TILES_SEARCHED,
)


@dataclass(frozen=True)
class ResultTile(WindowNest):
    @property
    def proven(self) -> bool:
        return not self.few_results

    def plan(self) -> Plan:
        """Return a plan with vectors within the tiles, so that memory is read row by row.

        Blocks of vectors go around the tiles if the first cache holds the operands of some of them.  Taps and results
        go row by row within the vectors, so that all uses of one row are together.
        """
        v, lanes, around = self.vector, self.in_lanes, [n for n in self.nest.names if n not in self._along_lanes]
        order, blocks = [f"{n}.o" if n in self._tile else n for n in around], tuple[Cut, ...]()
        if self._together:
            blocks = (Cut(v, self.lanes * self._together, f"{v}.b", f"{v}.v"),)
            lanes = replace(lanes, loop=f"{v}.v")
            order.insert(min(around.index(n) for n in self._tile), f"{v}.b")
        order.append(lanes.outer)
        inner = [f"{n}.i" for n in self._tile]
        terms = [*self.roles.terms, inner[0], *self.beside]
        if self.row is not None:
            terms.insert(terms.index(self.row.term) + 1, inner[1])
        ends = self._ends()
        stay = {f"{self.column.result}.o", *(e.loop for e in ends), *([] if lanes.tail == "exact" else [lanes.outer])}
        return Plan(
            "window",
            lanes.inner,
            cuts=(*(tiles.cut(n) for n, tiles in self._tile.items()), *blocks, lanes),
            order=tuple(order),
            terms=tuple(terms),
            skewed=self._skewed(),
            unrolled=(*self._unrolled, *inner, *self.beside),
            threads=tuple(n for n in order if n not in stay)[:PARALLEL],
            ends=ends,
        )

    @property
    def _along_lanes(self) -> tuple[str, ...]:
        """Return the loops of results that are not around the tiles."""
        return (self.vector, *self.beside)

    @cached_property
    def _together(self) -> int:
        """Return the number of vectors in a block whose operands stay in the first cache for the next tile.

        It is 0 if that is all of them, or the second cache does not hold the data of a map.
        """
        vectors, rest = divmod(self.width, self.lanes)
        outside = takewhile(lambda n: n not in self._tile, self.nest.names)
        touched = touched_bytes(self.nest)
        if rest or self.memory.is_far(touched):
            return 0
        if not self.memory.holds(touched / prod(map(self._extent, outside)), 2, ALL):
            return 0
        rows, columns = self._read(self._tile)
        terms, results = prod(self.roles.counts.values()), prod(t.size for t in self._tile.values())
        most = int(self.machine.l1.size // ((rows * columns + terms + results) * self.machine.vector_bytes))
        found = next(n for n in range(max(1, min(vectors, most)), 0, -1) if vectors % n == 0)
        return found if 1 < found < vectors else 0

    @cached_property
    def _unrolled(self) -> tuple[str, ...]:
        """Return the loops of taps that are unrolled: all, those of a row, or none."""
        names = self.roles.terms
        rows = names[names.index(self.column.term) :]
        return next((some for some in (names, rows) if prod(map(self._extent, some)) <= TAPS), ())

    # Columns and rows that are read ------------------------------------------------------------------

    def _skewed(self) -> tuple[Skewed, ...]:
        """Return the skewed loops: rows of taps run over the rows that are read.

        If the taps along a row are too many to be unrolled, they run over its columns.  The condition on a column is
        then tested once for all results that need it.
        """
        row, column = self.row, self.column
        rows = row is not None and row.factor is not None and row.term in self._unrolled
        found = [row] if row is not None and rows else []
        walks = [*found, column] if self._beyond else found
        return tuple(Skewed(w.term, f"{w.result}.i", w.factor or 1) for w in walks)

    @property
    def _beyond(self) -> int:
        """Return the columns at either end of a long row of taps that not all results of a tile need.

        It is 0 if the row is short, or has no others.
        """
        if self.column.term in self._unrolled:
            return 0
        ends = (self._tile[self.column.result].size - 1) * abs(self.column.factor or 0)
        return ends if ends < self._extent(self.column.term) else 0

    def _ends(self) -> tuple[Ends, ...]:
        """Return the peeled ends: columns at the border, or at the ends of a long row.

        Rows are peeled only if a tile exceeds the end of the results.
        """
        column = self.column
        rows = [e for n, t in self._tile.items() if n != column.result for e in ends_of(self.nest, n, t, 0)]
        if self._beyond:
            return (Ends(column.term, (self._beyond, -self._beyond)), *rows)
        reach = column.reach(self._extent(column.term))
        return (*ends_of(self.nest, column.result, self._tile[column.result], reach), *rows)

    # The tile ----------------------------------------------------------------------------------------

    @cached_property
    def _tile(self) -> dict[str, Tiles]:
        """Return the loops of columns and of rows, if there are any, in tiles."""
        found = sorted(self._tiles(), key=self._cost)
        return self.trial.decisions.choose(found[:TILES_SEARCHED])

    def _tiles(self) -> Iterator[dict[str, Tiles]]:
        """Yield all tiles that fit the registers.

        For maps from memory these are the ones that read few rows at a time, each in order.
        """
        loops = [self.column.result, *([] if self.row is None else [self.row.result])]
        units = [self._unit(n) for n in loops]
        beside = prod(map(self._extent, self.beside))
        most = max(1, RESULTS_CONFLICTING // (beside * (1 if prod(units) == 1 else 2)))
        for high in sizes(self._extent(loops[-1]), units[-1], most) if self.row is not None else (1,):
            for wide in sizes(self._extent(loops[0]), units[0], units[0] if self._in_order else most):
                tile = {n: Tiles(self._extent(n), size) for n, size in zip(loops, (wide, high), strict=False)}
                streams = high > units[-1] and self._in_order and self._read(tile)[0] > STREAMS
                if not streams and (high // units[-1] * (wide // units[0]) <= most or self.row is None):
                    yield tile

    @cached_property
    def _in_order(self) -> bool:
        """Return True if the map comes from memory, and a place has too many lines to read several places together."""
        wide = self.column.stride(self.nest) > PLACE_LINES * self.machine.l1.line
        return wide and self.memory.is_far(touched_bytes(self.nest))

    def _unit(self, loop: str) -> int:
        """Return the number of phases of a loop."""
        return self.nest.phases.get(loop, 1)

    def _cost(self, tile: dict[str, Tiles]) -> float:
        """Return the reads for each multiply-add."""
        row, column = self.row, self.column
        unit, taps = self._unit(column.result), prod(map(self._extent, self._unrolled))
        wide, high = tile[column.result], None if row is None else tile[row.result]
        rows, columns = self._read(tile)
        tall, down = (1, 1) if row is None or high is None else (high.size, self._unit(row.result))
        work = tall * wide.size * taps / (unit * down)
        kept = prod(map(self._extent, (*self.beside, *self.roles.terms))) + tall * wide.size + columns
        reads = READ_TWICE * rows * columns + taps * (1 if kept < self.machine.registers else max(1, tall // down))
        return reads / work * prod(t.waste for t in tile.values())

    def _read(self, tile: dict[str, Tiles]) -> tuple[int, int]:
        """Return the number of rows and columns of the map that a tile reads."""
        row, column = self.row, self.column
        unit, rows = self._unit(column.result), 1
        if row is not None:
            tall, down = tile[row.result].size, self._unit(row.result)
            rows = row.places(tall // down, self._extent(row.term), down) if row.term in self._unrolled else tall
        return rows, column.places(tile[column.result].size // unit, self._extent(column.term), unit)
