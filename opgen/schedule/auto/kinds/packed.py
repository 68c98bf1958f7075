"""Lanes along results, with strided reads packed before, as a whole or in panels.

x_packed = x with the dimension of c last; parallel n, y: for c.o: vector for c.l: y[n, y, c] = f(x_packed[n, y, c])
"""

from __future__ import annotations

from dataclasses import dataclass

from opgen.schedule.auto.copies.panel import Marks, panelled_across
from opgen.schedule.auto.copies.prepare import pack_shared
from opgen.schedule.auto.cuts import tails_of
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import copies_rows, reduces, worth_lanes
from opgen.schedule.auto.non_temporal import store_non_temporally
from opgen.schedule.cost.calibration import PARALLEL
from opgen.schedule.steps import Parallel, Reorder, Split, Vectorize


@dataclass(frozen=True)
class Packed(LaneNest):
    @property
    def legal(self) -> bool:
        """True if there is anything to be packed."""
        return self.lanes > 1 and not worth_lanes(self.nest, self.vector)

    def take(self) -> bool:
        trial, vector, start = self.trial, self.vector, len(self.trial.steps)
        before = trial.kernel
        nest = pack_shared(self.nest, vector, trial, self.machine.vector_bytes)
        marks = Marks(before, start, len(trial.steps), len(trial.steps))
        if not worth_lanes(nest, vector) or not self._in_vectors():
            return False
        panelled_across(trial, marks, vector, self.machine)
        if not reduces(self.nest):
            store_non_temporally(self.nest, vector, trial, self.machine)
        return True

    def _in_vectors(self) -> bool:
        outer, inner = self.trial.fresh(f"{self.vector}_o"), self.trial.fresh(f"{self.vector}_l")
        others = [n for n in self.nest.names if n != self.vector]
        order = () if self.vector == self.nest.names[-1] else (Reorder((*others, outer, inner)),)
        for tail in tails_of(self.nest.extent(self.vector), self.lanes):
            if self.trial.take(Split(self.vector, self.lanes, tail, outer, inner), *order, Vectorize(inner)):
                whole = tail == "overlap" or copies_rows(self.nest, self.vector)
                self.trial.fused_prefix((others if whole else [*others, outer])[:PARALLEL], Parallel)
                return True
        return False
