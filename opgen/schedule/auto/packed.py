"""Lanes along a loop that would read with strides: what they read is packed before, as a whole or in panels."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.machine import Machine
from opgen.schedule.auto.copies.panel import Marks, panelled_across
from opgen.schedule.auto.copies.prepare import pack_shared
from opgen.schedule.auto.nests import Nest, depends, places_read, reduces, worth_lanes
from opgen.schedule.auto.past import past_caches
from opgen.schedule.auto.site import lanes_of
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import PARALLEL
from opgen.schedule.split import Tail
from opgen.schedule.steps import Parallel, Reorder, Split, Vectorize


@dataclass(frozen=True)
class Packed:
    nest: Nest
    trial: Trial
    machine: Machine

    def along(self, vector: str) -> bool:
        """Lanes along a loop, if enough of what they read and write lies consecutively; whether that was so."""
        nest = self.trial.nest(vector)
        extent = nest.extent(vector)
        lanes = lanes_of(self.nest, self.machine, extent, vector)
        before, start = self.trial.kernel, len(self.trial.steps)
        if lanes < 2 or worth_lanes(nest, vector):
            return False  # nothing to be packed
        nest = pack_shared(nest, vector, self.trial, self.machine.vector_bytes)
        if not worth_lanes(nest, vector):
            return False
        outer, inner = self.trial.fresh(f"{vector}_o"), self.trial.fresh(f"{vector}_l")
        others = [n for n in nest.names if n != vector]
        order = () if vector == nest.names[-1] else (Reorder((*others, outer, inner)),)
        marks = Marks(before, start, len(self.trial.steps), len(self.trial.steps))
        overlap = extent is not None and extent % lanes != 0
        tails: tuple[Tail, ...] = ("overlap", "guard") if overlap else ("exact",) if extent is not None else ("guard",)
        for tail in tails:
            if self.trial.take(Split(vector, lanes, tail, outer, inner), *order, Vectorize(inner)):
                whole = tail == "overlap" or self._copies_rows(vector)
                self.trial.fused_prefix((others if whole else [*others, outer])[:PARALLEL], Parallel)
                panelled_across(self.trial, marks, vector, self.machine)
                if not reduces(self.nest):
                    past_caches(self.nest, vector, self.trial, self.machine)
                return True
        return False

    def _copies_rows(self, vector: str) -> bool:
        """Whether whole rows are read at places that values tell: a place is looked up once for a row."""
        places = places_read(self.nest)
        return bool(places) and not any(depends(e.indices, vector) for e in places) and len(self.nest.names) > 1
