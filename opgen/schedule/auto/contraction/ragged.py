"""Contractions whose results fill no whole number of tiles along the lanes: what is left over is a nest of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opgen.schedule.auto.contraction.products import VECTORS
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import Nest
from opgen.schedule.steps import Partition, Reorder

LEAST = 3 / 4
"""The part of the results that whole tiles must make."""


@dataclass(frozen=True)
class Ragged(LaneNest):
    """`whole` schedules a nest of whole tiles and says if it did, `rest` what is left over."""

    whole: Callable[[Nest], bool]
    rest: Callable[[Nest], None]

    def run(self) -> bool:
        width = self.nest.extent(self.vector) or 0
        left = width % (VECTORS * self.lanes)
        fits = len(self.nest.names) > 1 and 0 < left <= (1 - LEAST) * width
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
        if not self.whole(trial.nest(self.vector)):
            return False
        self.rest(trial.nest(name))
        return True
