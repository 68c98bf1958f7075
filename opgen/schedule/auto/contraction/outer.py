"""Sums of outer products: each place of a map adds the product of two rows to a table of results, or to one of several
for each tap.

A tile of six scalars by four vectors loads least for what it computes.  All results wait in the second cache while
blocks of places go by: of each block the vectors' rows are copied into panels that stay in the first cache for all
tiles of scalars, and meanwhile, if it comes from afar, what the next block reads is prefetched.  Few places are one
block: no result waits, and there may be many.  The last tile of scalars is shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.contraction.outer_shape import OuterShape
from opgen.schedule.auto.contraction.products import apart, balanced
from opgen.schedule.auto.copies.panel import rows_in_lanes
from opgen.schedule.cost.calibration import PRODUCT_POSITIONS, PRODUCT_VECTORS
from opgen.schedule.steps import (
    Carry,
    Divide,
    Fill,
    Parallel,
    Partition,
    Prefetch,
    Reorder,
    Split,
    Step,
    Unroll,
    Vectorize,
)


@dataclass(frozen=True)
class OuterProducts(OuterShape):
    def take(self) -> bool:
        """All steps, or none."""
        return self.trial.attempt(self._joined) or (self._comes_apart and self.trial.attempt(self.tiled))

    @property
    def _comes_apart(self) -> bool:
        """Whether there are blocks of places: the only loop over them may have a prime number."""
        return self.block > 0 and (self.enough or len(self.places) > 1)

    def _joined(self) -> bool:
        """All steps, with one loop over all places, of which blocks of any size can be made."""
        if len(self.trial.joined([s.var for s in self.places])) > 1:
            return False
        nest = replace(self, nest=self.trial.nest(self.vector))
        return len(self.places) > 1 and nest.legal and nest.proven and nest.enough and nest.tiled()

    def tiled(self) -> bool:
        """All steps, with the loops over places as they are."""
        loop, trial, others = self.loop, self.trial, self.others
        outer, inner = trial.fresh(f"{loop}_o"), trial.fresh(f"{loop}_i")
        blocks, part = trial.fresh(f"{self.vector}_o"), trial.fresh(f"{self.vector}_i")
        across, lane = trial.fresh(f"{self.vector}_v"), trial.fresh(f"{self.vector}_l")
        shared, scalars = blocks, self.scalars
        places = [s.var for s in self.places]
        steps: list[Step] = []
        if self.parts > 1:
            steps, places = self._divided(places)
        steps += [Split(self.vector, PRODUCT_VECTORS * self.lanes, "exact", blocks, part)]
        if self.groups > 1:
            shared, rest, scalars = trial.fresh(f"{loop}_g"), trial.fresh(f"{loop}_r"), scalars // self.groups
            steps += [Split(loop, scalars, "exact", shared, rest), Reorder((shared, blocks, *others, rest, part))]
            loop = rest
        else:
            steps += [Reorder((blocks, *others, loop, part))]
        around, inside = "", places
        if not self.whole:
            *images, last = [n for n in places if len(places) == 1 or n != places[-1]]
            around, within = trial.fresh(f"{last}_o"), trial.fresh(f"{last}_i")
            steps += [Split(last, self.block, "exact", around, within), *(Carry(n, shared) for n in images)]
            steps += [Carry(around, blocks)]
            inside = [within, *places[1:][-1:]]
        steps += [
            *apart(loop, scalars, balanced(scalars, PRODUCT_POSITIONS), outer, inner),
            Split(part, self.lanes, "exact", across, lane),
            Reorder((outer, inner, across, lane)),
            Reorder((outer, *inside, inner, across, lane)),
            *(Unroll(n) for n in (inner, across)),
            Vectorize(lane),
        ]
        if not trial.take(*steps):
            return False
        if self.late and not self.whole:
            for e in self.reads:
                trial.take(Prefetch(e.buffer, around, inside[-1]))
        return self._copies(outer, blocks, shared, inside[-1])

    @cached_property
    def _part(self) -> str:
        return self.trial.fresh(f"{self.rows.var}_p")

    def _divided(self, places: list[str]) -> tuple[list[Step], list[str]]:
        """Parts of the places with results of their own, and what is left of the loop over places."""
        (loop,) = places
        size = (constant_extent(self.rows) or 1) // self.parts
        part, rest, sums = self._part, self.trial.fresh(f"{loop}_r"), self.trial.fresh("sums")
        total, across, lane = (f"{sums}_{n}" for n in (self.vector, "v", "l"))
        return [
            Split(loop, size, "exact", part, rest),
            Divide(part, self.nest.names[0], sums),
            Split(total, self.lanes, "exact", across, lane),
            Vectorize(lane),
        ], [rest]

    def _copies(self, tiles: str, blocks: str, shared: str, place: str) -> bool:
        """Panels of what a block reads, and threads."""
        trial = self.trial
        alone = self.groups == 1 and not self.even and self.parts == 1
        filled = None if alone or self.others else (tiles, place)
        if self.copied:
            name, steps = rows_in_lanes(trial, self.reads[0], blocks, self.lanes)
            if filled is not None:
                steps += [Partition(filled[0], (1,)), Fill(name, filled[1])]
            if not trial.take(*steps):
                return False
        return trial.take(Parallel(self._part if self.parts > 1 else tiles if alone else shared))
