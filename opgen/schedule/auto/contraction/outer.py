"""Sums of outer products: each place of a map adds the product of two rows to a table of results, or to one of several
for each tap.

A tile of six scalars by four vectors loads least for what it computes.  All results wait in the second cache while
blocks of places go by: of each block the vectors' rows are copied into panels that stay in the first cache for all
tiles of scalars, and meanwhile, if it comes from afar, what the next block reads is prefetched.  Few places are one
block: no result waits, and there may be many.  The last tile of scalars is shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from opgen.schedule.auto.contraction.outer_shape import OuterShape
from opgen.schedule.auto.contraction.products import balanced
from opgen.schedule.auto.plan import Ahead, Carried, Cut, Operand, Plan
from opgen.schedule.cost.calibration import PRODUCT_POSITIONS, PRODUCT_VECTORS
from opgen.schedule.steps import Divide, Split, Vectorize


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
        k, x, places, part = self.vector, self.loop, [s.var for s in self.places], ""
        if self.parts > 1:
            part, rest = (self.trial.fresh(f"{places[0]}_{end}") for end in "pr")
            if not self._divided(places[0], part, rest):
                return False
            places = [rest]
        cuts = [Cut(k, PRODUCT_VECTORS * self.lanes, f"{k}.o", f"{k}.i")]
        scalars, shared = self.scalars // self.groups, f"{k}.o"
        if self.groups > 1:
            cuts.append(Cut(x, scalars, f"{x}.g", f"{x}.r"))
            shared, x = f"{x}.g", f"{x}.r"
        carried: list[Carried] = []
        if not self.whole:
            *images, last = [n for n in places if len(places) == 1 or n != places[-1]]
            cuts.append(Cut(last, self.block, f"{last}.o", f"{last}.i"))
            carried = [*(Carried(n, shared) for n in images), Carried(f"{last}.o", f"{k}.o")]
            places = [f"{last}.i", *places[1:][-1:]]
        alone = self.groups == 1 and not self.even and self.parts == 1
        filled = self.copied and not alone and not self.others
        rows = self.reads[0]
        panel = Operand.in_rows(rows.buffer, len(rows.indices), f"{k}.o", self.lanes, places[-1] if filled else None)
        return self.realised(
            Plan(
                "outer",
                f"{k}.l",
                cuts=(
                    *cuts,
                    Cut.even(x, scalars, balanced(scalars, PRODUCT_POSITIONS), first=filled),
                    Cut(f"{k}.i", self.lanes, f"{k}.v", f"{k}.l"),
                ),
                order=(*([part] if part else []), *dict.fromkeys((shared, f"{k}.o")), *self.others, f"{x}.o"),
                carried=tuple(carried),
                terms=tuple(places),
                tile=(f"{x}.i", f"{k}.v"),
                ahead=tuple(Ahead(e.buffer, carried[-1].term, places[-1]) for e in self.reads if carried and self.late),
                operands=(panel,) if self.copied else (),
                threads=(part or (f"{x}.o" if alone else shared),),
            )
        )

    def _divided(self, place: str, part: str, rest: str) -> bool:
        """Parts of the places with results of their own, which are added up in lanes."""
        size, sums = self._extent(place) // self.parts, self.trial.fresh("sums")
        return self.trial.take(
            Split(place, size, "exact", part, rest),
            Divide(part, self.nest.names[0], sums),
            Split(f"{sums}_{self.vector}", self.lanes, "exact", f"{sums}_v", f"{sums}_l"),
            Vectorize(f"{sums}_l"),
        )
