"""Contractions whose results fill no whole number of tiles along the lanes: what is left over is a nest of its own.

Where they fill no whole number of vectors either, the last vector would overlap the one before: sums could not wait in
the results then, nor rows in panels.  What comes of rows from beyond the second cache is cut in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import Nest
from opgen.schedule.cost.calibration import ALL, PRODUCT_VECTORS, WHOLE_TILES
from opgen.schedule.steps import Partition, Reorder


@dataclass(frozen=True)
class Ragged(LaneNest):
    """`whole` schedules a nest of whole large tiles and says if it did, `tiled` one of tiles of any kind, `rest` what
    is left over.
    """

    whole: Callable[[Nest], bool]
    tiled: Callable[[Nest], bool]
    rest: Callable[[Nest], None]

    def run(self) -> bool:
        width = self.nest.extent(self.vector) or 0
        left = width % (PRODUCT_VECTORS * self.lanes)
        fits = len(self.nest.names) > 1 and 0 < left <= (1 - WHOLE_TILES) * width
        return fits and self.trial.attempt(lambda: self._take(left))

    def _take(self, left: int) -> bool:
        trial, others = self.trial, [n for n in self.nest.names if n != self.vector]
        name = trial.fresh(f"{self.vector}_left")
        suffix = name.removeprefix(f"{self.vector}_")
        if not trial.take(Reorder((self.vector, *others))):
            return False
        self.trial.joined(others)
        if not trial.take(Partition(self.vector, (-left,), suffix)):
            return False
        nest = trial.nest(self.vector)
        if not self.whole(nest) and not (self._overlaps and self._afar and self.tiled(nest)):
            return False
        self.rest(trial.nest(name))
        return True

    @property
    def _overlaps(self) -> bool:
        """Whether the last vector of a row of results would reach over its end."""
        return (self.nest.extent(self.vector) or 0) % self.lanes > 0

    @property
    def _afar(self) -> bool:
        """Whether what lanes read comes from beyond the second cache."""
        return any(not self.memory.holds(self.roles.bytes(e), 2, ALL) for e in self.roles.vectors)
