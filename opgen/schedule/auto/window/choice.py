"""Which tile of results a window gets: the one that reads least for what it computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.nodes import Load
from opgen.machine import Machine
from opgen.schedule.auto.cuts import Cut, sizes
from opgen.schedule.auto.nests import Nest, depends
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.walks import Walk
from opgen.schedule.cost.calibration import (
    READ_TWICE,
    RESULTS_CONFLICTING,
    TAPS,
)


@dataclass(frozen=True)
class Tile:
    """The tiles of a loop of rows, if there is one, and of columns."""

    high: Cut | None
    wide: Cut
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
        """The one that costs least first."""
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
        return sorted(tiles, key=lambda t: t.cost)

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
        return Tile(high, wide, resident, reads / work * waste)
