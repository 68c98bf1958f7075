"""Scatter updates, which reach an element in their order: each thread owns the elements that it updates.

    parallel j.b: for k: for j.o: vector for j.l: y[at[k], j] = y[at[k], j] + v[k, j]
    parallel i: vectors of j: y[i, j] = x[i, j]
                k.o: 4 times: y[i, at[i, k]] = y[i, at[i, k]] + v[i, k]

Lanes go along rows that are updated as a whole.  If each row has positions of its own, it is updated right after it was
made, while it is in L1.  An update is less work than an iteration of its loop, so some updates are unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from opgen.loop.nodes import Store, Var
from opgen.machine import Machine
from opgen.schedule.auto.nests import nests, reduces, updates, worth_lanes
from opgen.schedule.auto.owners import by_owner, in_lanes
from opgen.schedule.auto.plan import Cut, Plan
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import UPDATES_UNROLLED


@dataclass(frozen=True)
class Updates:
    name: str = "updates"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        nest = site.nest
        if not updates(nest) or reduces(nest):
            return
        loop = site.roles.lanes
        lanes = 1 if loop is None or not worth_lanes(nest, loop) else lanes_of(nest, machine, nest.extent(loop), loop)
        if loop is not None and lanes > 1:
            shared = by_owner(self.name, nest, loop, machine, lanes)
            yield from in_lanes(Plan(self.name, order=nest.names), nest, loop, lanes, shared)
        elif isinstance(nest.core, Store):
            yield from self._one_by_one(site, machine)

    def _one_by_one(self, site: Site, machine: Machine) -> Iterator[Plan]:
        """Yield plans in which each thread owns rows along a loop, or parts of rows.

        Rows that an earlier loop makes are updated in that loop.
        """
        nest, (first, *_, last) = site.nest, (site.nest.names[0], *site.nest.names)
        own = [n for n in nest.names if all(Var(n) in s.indices for s in nest.results)]
        if first in own:
            plan = Plan(self.name, order=nest.names, threads=(first,))
            plan = plan if first == last else _some_at_once(plan, last, nest.extent(last))
            yield from (replace(plan, merged=(maker,)) for maker in _makers(site))
            yield plan
        for plan in (p for n in own if n != first and (p := by_owner(self.name, nest, n, machine)) is not None):
            inner = plan.cuts[0].size if plan.cuts[0].loop == last else nest.extent(last)
            yield _some_at_once(plan, plan.order[-1], inner)


def _some_at_once(plan: Plan, loop: str, extent: int | None) -> Plan:
    """Return the plan with some iterations of the innermost loop at once, the remainder in its own loop."""
    if extent is None or extent < 2 * UPDATES_UNROLLED:
        return plan
    cut = Cut.even(loop, extent, UPDATES_UNROLLED)
    return replace(plan, cuts=(*plan.cuts, cut), order=(*plan.order[:-1], cut.outer), tile=(cut.inner,))


def _makers(site: Site) -> Iterator[str]:
    """Yield the outermost loop of the nest before, if it makes the updated buffer."""
    updated = {s.buffer for s in site.nest.results}
    for made, nest in pairwise(nests(site.trial.kernel)):
        if nest.names[0] == site.nest.names[0] and updated & {s.buffer for s in made.results}:
            yield made.names[0]
