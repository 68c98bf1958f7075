"""Contractions whose results fill no whole number of tiles along the lanes: what is left over is a nest of its own.

Where they fill no whole number of vectors either, the last vector would overlap the one before: sums could not wait in
the results then, nor rows in panels.  What comes of rows from beyond the second cache is cut in any case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from opgen.machine import Machine
from opgen.schedule.auto.contraction.prepared import as_given, wide_scalars
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds.contracted import design, prepared_for
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.site import Among, Site
from opgen.schedule.cost.calibration import ALL, PRODUCT_VECTORS, WHOLE_TILES
from opgen.schedule.steps import Partition, Reorder


@dataclass(frozen=True)
class InParts:
    name: str = "ragged"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for on, late in prepared_for(site, machine, (as_given, wide_scalars)):
            made = Ragged(on.nest, on.trial, on.loop, on.lanes, machine, partial(site.schedule, on.trial))
            if made.legal:
                yield design(self.name, on, made.take, machine, late or not made.proven)


class Part(Protocol):
    """Schedules a part of the nest, in (large) tiles or in any way; whether there was a kind for it."""

    def __call__(self, nest: Nest, among: Among = "all") -> bool: ...


@dataclass(frozen=True)
class Ragged(LaneNest):
    schedule: Part

    @property
    def legal(self) -> bool:
        return len(self.nest.names) > 1 and 0 < self._left < self.width

    @property
    def proven(self) -> bool:
        """Whether little is left over."""
        return self._left <= (1 - WHOLE_TILES) * self.width

    @property
    def _left(self) -> int:
        """The results that fill no tile."""
        return self.width % (PRODUCT_VECTORS * self.lanes)

    def take(self) -> bool:
        trial, others = self.trial, [n for n in self.nest.names if n != self.vector]
        name = trial.fresh(f"{self.vector}_left")
        suffix = name.removeprefix(f"{self.vector}_")
        if not trial.take(Reorder((self.vector, *others))):
            return False
        trial.joined(others)
        if not trial.take(Partition(self.vector, (-self._left,), suffix)):
            return False
        nest, any_tiles = trial.nest(self.vector), self._overlaps and self._afar
        if not self.schedule(nest, "large tiles") and not (any_tiles and self.schedule(nest, "tiles")):
            return False
        if not self.schedule(trial.nest(name), "tiles"):
            self.schedule(trial.nest(name))
        return True

    @property
    def _overlaps(self) -> bool:
        """Whether the last vector of a row of results would reach over its end."""
        return self.width % self.lanes > 0

    @property
    def _afar(self) -> bool:
        """Whether what lanes read comes from beyond the second cache."""
        return any(not self.memory.holds(self.roles.bytes(e), 2, ALL) for e in self.roles.vectors)
