"""Updates at places that values tell, which fall on an element in their order: each thread owns what it updates.

    parallel j.b: for k: for j.o: vector for j.l: y[at[k], j] = y[at[k], j] + v[k, j]
    parallel i: vectors of j: y[i, j] = x[i, j]
                k.o: 4 times: y[i, at[i, k]] = y[i, at[i, k]] + v[i, k]

Lanes go along rows that are updated as a whole.  Where each row has places of its own, it is updated right after it was
made, while it is in the first cache; an update is less work than an iteration of its loop, so some are done at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opgen.loop.nodes import Store, Var
from opgen.machine import Machine
from opgen.schedule.auto.cuts import tails_of
from opgen.schedule.auto.nests import Nest, nests, reduces, updates, worth_lanes
from opgen.schedule.auto.owners import by_owner
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
            yield from self._in_lanes(nest, loop, lanes, machine)
        elif isinstance(nest.core, Store):
            yield from self._one_by_one(nest, _makers(site), machine)

    def _in_lanes(self, nest: Nest, loop: str, lanes: int, machine: Machine) -> Iterator[Plan]:
        owners = by_owner(self.name, nest, loop, loop, lanes, machine)
        yield from [] if owners is None else [owners]
        tails = tails_of(nest.extent(loop), lanes)
        for tail in tails:
            cut = Cut(loop, lanes, f"{loop}.o", f"{loop}.l", tail)
            order = (*(n for n in nest.names if n != loop), cut.outer)
            late = owners is not None or tail != tails[0]
            yield Plan(self.name, cut.inner, cuts=(cut,), order=order, otherwise=late)

    def _one_by_one(self, nest: Nest, makers: Sequence[str], machine: Machine) -> Iterator[Plan]:
        """Threads own what a loop alone walks along: rows, or parts of them."""
        own = [n for n in nest.names if all(Var(n) in s.indices for s in nest.results)]
        last = nest.names[-1]
        if own[:1] == [nest.names[0]]:
            plan = Plan(self.name, order=nest.names, threads=(nest.names[0],))
            plan = plan if own == [last] else _some_at_once(plan, last, nest.extent(last))
            yield from (replace(plan, merged=(maker,)) for maker in makers)
            yield plan
        else:
            for loop in own:
                found = by_owner(self.name, nest, loop, loop, 1, machine)
                if found is not None:
                    extent = found.cuts[0].size if loop == last else nest.extent(last)
                    yield _some_at_once(found, found.order[-1], extent)


def _some_at_once(plan: Plan, loop: str, extent: int | None) -> Plan:
    """Some iterations of the innermost loop at once, those left over in a loop of their own."""
    if extent is None or extent < 2 * UPDATES_UNROLLED:
        return plan
    cut = Cut.even(loop, extent, UPDATES_UNROLLED)
    return replace(plan, cuts=(*plan.cuts, cut), order=(*plan.order[:-1], cut.outer), tile=(cut.inner,))


def _makers(site: Site) -> list[str]:
    """The outermost loop of the nest before, if it makes what is updated."""
    before: Nest | None = None
    for nest in nests(site.trial.kernel):
        if nest.names[0] == site.nest.names[0]:
            break
        before = nest
    made = set() if before is None else {s.buffer for s in before.results}
    return [before.names[0]] if before is not None and made & {s.buffer for s in site.nest.results} else []
