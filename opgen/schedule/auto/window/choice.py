"""Which tile of results a window gets: the one that reads least for what it computes, and whose lines a cache holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.nodes import Load
from opgen.machine import Machine
from opgen.schedule.auto.cuts import Cut, largest_divisor, sizes
from opgen.schedule.auto.nests import Nest, depends, read_bytes, touched_bytes
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.walks import Walk
from opgen.schedule.cost.calibration import (
    ALL,
    COPIED_PLACE,
    COPIED_VECTORS,
    KEPT_WINDOW,
    PLACE_LINES,
    READ_TWICE,
    RESULTS,
    RESULTS_CONFLICTING,
    SEVERAL_VECTORS,
    SLOW_MAPS,
    STREAMS,
    TAPS,
    WINDOWS_ALIKE,
)
from opgen.schedule.cost.memory import Memory


@dataclass(frozen=True)
class Tile:
    """The tiles of a loop of rows, if there is one, and of columns."""

    high: Cut | None
    wide: Cut
    rows: int
    columns: int
    cost: float

    @property
    def results(self) -> int:
        return self.wide.size * (1 if self.high is None else self.high.size)


@dataclass(frozen=True)
class TileChoice:
    nest: Nest
    machine: Machine
    row: Walk | None
    column: Walk
    beside: int = 1
    """How many results there are at each place."""

    @property
    def terms(self) -> Mapping[str, int]:
        return Roles.of(self.nest).counts

    @cached_property
    def unrolled(self) -> Mapping[str, int]:
        """The loops of taps that are unrolled."""
        if prod(self.terms.values()) <= TAPS:
            return self.terms
        names = list(self.terms)
        own = {n: self.terms[n] for n in names[names.index(self.column.term) :]}
        return own if prod(own.values()) <= TAPS else {}

    @property
    def rows_unrolled(self) -> bool:
        return self.row is not None and self.row.term in self.unrolled

    @cached_property
    def taps(self) -> list[Load]:
        """Reads that are the same for all results of a tile."""
        tile = [self.column.result] + ([] if self.row is None else [self.row.result])
        return [e for e in dict.fromkeys(self.nest.summed) if not any(depends(e.indices, n) for n in tile)]

    @cached_property
    def lines(self) -> int:
        """How many places of one row of the map the first cache holds at once."""
        return self.machine.l1.lines_at(self.column.stride(self.nest))

    @cached_property
    def tiles(self) -> list[Tile]:
        """The best, and then the others by what they cost.

        One of more results than usual is the best only if it is better than others by what is not as good.
        """
        steps = self.nest.phases
        wide, high = self.column.result, None if self.row is None else self.row.result
        unit, unit_down = steps.get(wide, 1), 1 if high is None else steps.get(high, 1)
        most = max(1, (self._most if unit * unit_down == 1 else RESULTS_CONFLICTING // 2) // self.beside)
        across, down = self._extent(wide), 1 if high is None else self._extent(high)
        tiles = [
            self._tile(None if high is None else Cut(down, h), Cut(across, w), unit_down, unit)
            for h in sizes(down, unit_down, most)
            for w in sizes(across, unit, most)
            if h // unit_down * (w // unit) <= most and (not self._streamed or self._in_order(h, w, unit_down, unit))
        ]
        few = RESULTS_CONFLICTING * unit * unit_down
        usual = _best(t for t in tiles if t.results <= few)
        large = [t for t in tiles if t.results > few and 2 * t.rows * t.columns <= self.lines and self._several(t)]
        best = _best(large) if any(WINDOWS_ALIKE * t.cost < usual.cost for t in large) else usual
        return [best, *sorted((t for t in tiles if t is not best), key=lambda t: t.cost)]

    @cached_property
    def _streamed(self) -> bool:
        """Whether what is read and written comes from memory, many lines at each place."""
        place = self.column.stride(self.nest)
        return Memory(self.machine).is_far(touched_bytes(self.nest)) and place > PLACE_LINES * self.machine.l1.line

    def _in_order(self, high: int, wide: int, unit_down: int, unit: int) -> bool:
        """Whether a tile reads few rows, or as few as it can, and these as they lie: one column after the other."""
        if wide != unit or self.row is None or high == unit_down:
            return wide == unit
        return self.row.places(high // unit_down, self.terms[self.row.term], unit_down) <= STREAMS

    @cached_property
    def small(self) -> bool:
        """Whether the map of one vector of lanes stays in the first cache, and all maps in the second: the taps are
        read once for all of a map.
        """
        fits = Memory(self.machine).holds(self._results * self.machine.vector_bytes, 1)
        held = self._places <= self.lines
        return fits and held and Memory(self.machine).holds(self._touched, 2, ALL)

    def copied(self, vectors: int) -> int:
        """How many vectors of the map are copied together: so many that the first cache holds them, if it holds two."""
        room = self.machine.l1.size // (self._places * self.machine.vector_bytes)
        return largest_divisor(vectors, min(COPIED_VECTORS, room) if room > 1 else COPIED_VECTORS)

    def together(self, tile: Tile, vectors: int) -> int:
        """How many vectors, tile by tile, leave what they read in the first cache for the next tile; all if they nearly
        do and the taps are kept in registers, or if the second cache does not hold what is touched.
        """
        each = self._each(tile)
        if self.resident(tile):
            each += tile.results * self.machine.vector_bytes
            whole = vectors * each <= self.machine.l1.size or self._touched > self.machine.l2.size
        else:
            whole = not Memory(self.machine).holds(read_bytes(self.nest), 2, KEPT_WINDOW)
        if whole:
            return vectors
        return largest_divisor(vectors, max(1, min(vectors, int(Memory(self.machine).usable(1)) // each)))

    def _several(self, tile: Tile) -> bool:
        """Whether the first cache holds what a tile reads for several vectors, if taps are read again for each."""
        return self.resident(tile) or Memory(self.machine).holds(SEVERAL_VECTORS * self._each(tile), 1)

    def _each(self, tile: Tile) -> int:
        """The bytes that a tile reads for one vector."""
        return (tile.rows * tile.columns + prod(self.terms.values())) * self.machine.vector_bytes

    def conflicts(self, tile: Tile) -> bool:
        """Whether the lines that a tile reads and writes push each other out of the first cache."""
        return tile.rows * tile.columns + tile.results > self.lines

    def resident(self, tile: Tile) -> bool:
        """Whether what the taps read stays in registers beside the results and a row of the map."""
        needed = self.beside * (prod(self.terms.values()) + tile.results) + tile.columns
        return len(self.taps) == 1 and needed < self.machine.registers

    @cached_property
    def _touched(self) -> float:
        """The bytes that one map reads and writes, or those of all maps if these had better be read in order: they come
        from memory, or from a last cache that takes longer than the arithmetic by far.
        """
        touched = touched_bytes(self.nest)
        memory = Memory(self.machine)
        if memory.is_far(touched) or memory.exposed(memory.seconds(touched), self._arithmetic, SLOW_MAPS):
            return touched
        first = min(self.nest.names.index(w.result) for w in self._walks)
        return touched / prod(self._extent(n) for n in self.nest.names[:first])

    @property
    def _walks(self) -> list[Walk]:
        return [self.column] if self.row is None else [self.row, self.column]

    @cached_property
    def _results(self) -> int:
        """The results of one map."""
        return prod(self._extent(w.result) for w in self._walks)

    @cached_property
    def _places(self) -> int:
        """The places of one map that are read."""
        return prod(self._read(w) for w in self._walks)

    def _read(self, walk: Walk) -> int:
        """How many places along a walk all results read."""
        unit = self.nest.phases.get(walk.result, 1)
        return walk.places(self._extent(walk.result) // unit, self.terms[walk.term], unit)

    @property
    def _arithmetic(self) -> float:
        """The seconds that all multiply-adds take."""
        lanes = self.machine.vector_bytes // min(s.value.type.dtype.bytes for s in self.nest.results)
        done = prod(self._extent(n) for n in self.nest.names) * prod(self.terms.values()) / lanes
        return done / self.machine.fma_per_second

    @cached_property
    def _most(self) -> int:
        """Most results of a tile: the taps, some if they are many, and a row of the map stay in registers too, and its
        rows in the cache.
        """
        if self.row is not None and self.machine.l1.lines_at(self.row.stride(self.nest)) < RESULTS:
            return RESULTS_CONFLICTING
        taps = min(prod(self.terms.values()), RESULTS_CONFLICTING)
        room = self.machine.registers - taps - self.terms[self.column.term]
        return max(RESULTS_CONFLICTING, min(RESULTS, room))

    def _extent(self, loop: str) -> int:
        return Roles.of(self.nest).extents[loop]

    def _tile(self, high: Cut | None, wide: Cut, unit_down: int, unit: int) -> Tile:
        tall = 1 if high is None else high.size
        columns = self.column.places(wide.size // unit, self.terms[self.column.term], unit)
        rows, taps = tall, prod(self.unrolled.values())
        if self.rows_unrolled and self.row is not None:
            rows = self.row.places(tall // unit_down, self.terms[self.row.term], unit_down)
        tile = Tile(high, wide, rows, columns, 0)
        reads = taps * max(1, tall // unit_down)
        if self.resident(tile):
            reads = 0 if self.small else taps
        work = tall * wide.size * taps / (unit * unit_down)
        waste = wide.waste * (1 if high is None else high.waste)
        copies = COPIED_PLACE * tile.results * self._places / self._results if self.conflicts(tile) else 0
        return Tile(high, wide, rows, columns, (READ_TWICE * rows * columns + reads + copies) / work * waste)


def _best(tiles: Iterable[Tile]) -> Tile:
    """Of those that are as good as any the narrowest, as rows at the border cost no code."""
    found = list(tiles)
    least = min(t.cost for t in found)
    return min((t for t in found if t.cost <= WINDOWS_ALIKE * least), key=lambda t: (t.wide.size, t.cost))
