"""Which tile of results a window gets: the one that reads least for what it computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from math import prod

from opgen.loop.nodes import Load
from opgen.machine import Machine
from opgen.schedule.auto.cuts import Cut, largest_divisor, sizes
from opgen.schedule.auto.nests import Nest, depends, touched_bytes
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.walks import Walk
from opgen.schedule.cost.calibration import (
    ALL,
    READ_TWICE,
    RESULTS_CONFLICTING,
    TAPS,
    WINDOWS_ALIKE,
)
from opgen.schedule.cost.memory import Memory


@dataclass(frozen=True)
class Tile:
    """The tiles of a loop of rows, if there is one, and of columns; how many places of the map one reads."""

    high: Cut | None
    wide: Cut
    places: int
    resident: bool
    """Whether what the taps read stays in registers beside the results and a row of the map."""
    cost: float


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
    def tiles(self) -> list[Tile]:
        """By what they cost; first, of those that are as good as any, the narrowest, as rows at the border cost no
        code.
        """
        steps, extents = self.nest.phases, Roles.of(self.nest).extents
        wide, high = self.column.result, None if self.row is None else self.row.result
        unit, unit_down = steps.get(wide, 1), 1 if high is None else steps.get(high, 1)
        most = max(1, RESULTS_CONFLICTING // (self.beside * (1 if unit * unit_down == 1 else 2)))
        across, down = extents[wide], 1 if high is None else extents[high]
        tiles = [
            self._tile(None if high is None else Cut(down, h), Cut(across, w), unit_down, unit)
            for h in sizes(down, unit_down, most)
            for w in sizes(across, unit, most)
            if h // unit_down * (w // unit) <= most
        ]
        alike = WINDOWS_ALIKE * min(t.cost for t in tiles)
        return sorted(tiles, key=lambda t: (t.cost > alike, t.wide.size if t.cost <= alike else 0, t.cost))

    @property
    def _is_far(self) -> bool:
        """Whether what is touched comes from memory."""
        return Memory(self.machine).is_far(touched_bytes(self.nest))

    def together(self, tile: Tile, vectors: int) -> int:
        """How many vectors, tile by tile, leave what they read in the first cache for the next tile; all if the second
        does not hold what a map touches.
        """
        outside = takewhile(lambda n: n not in (self.column.result, self.row and self.row.result), self.nest.names)
        maps = prod(Roles.of(self.nest).extents[n] for n in outside)
        if self._is_far or not Memory(self.machine).holds(touched_bytes(self.nest) / maps, 2, ALL):
            return vectors
        results = tile.wide.size * (1 if tile.high is None else tile.high.size)
        each = (tile.places + prod(self.terms.values()) + results) * self.machine.vector_bytes
        return largest_divisor(vectors, max(1, min(vectors, self.machine.l1.size // each)))

    def _rows(self, high: int, unit: int) -> int:
        """How many rows of the map so many rows of results read."""
        return 1 if self.row is None else self.row.places(high // unit, self.terms[self.row.term], unit)

    def _tile(self, high: Cut | None, wide: Cut, unit_down: int, unit: int) -> Tile:
        """A tile of loops in so many phases."""
        tall, taps = 1 if high is None else high.size, prod(self.unrolled.values())
        columns = self.column.places(wide.size // unit, self.terms[self.column.term], unit)
        rows = self._rows(tall, unit_down) if self.rows_unrolled else tall
        needed = self.beside * (prod(self.terms.values()) + tall * wide.size) + columns
        resident = len(self.taps) == 1 and needed < self.machine.registers
        reads = READ_TWICE * rows * columns + taps * (1 if resident else max(1, tall // unit_down))
        waste = wide.waste * (1 if high is None else high.waste)
        work = tall * wide.size * taps / (unit * unit_down)
        return Tile(high, wide, rows * columns, resident, reads / work * waste)
