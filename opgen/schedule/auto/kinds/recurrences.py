"""Recurrences, whose steps need earlier ones: lanes and threads go along the independent loops.

    parallel a.b: ordered t: for a.o: vector for a.l: up[t + 1, a] = x[t, a] + up[t, a]
    parallel b.o: ordered t: unroll 8 b: up[b, t + 1] = x[b, t] + up[b, t]

Several recurrences advance together if steps are short: a step of one need not wait for the step before of another.
Nests within a step have been scheduled by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from opgen.loop.nodes import Store
from opgen.loop.walk import loops_in, stores
from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest, contiguous_loop
from opgen.schedule.auto.owners import by_owner, in_lanes
from opgen.schedule.auto.plan import Cut, Plan
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import PARALLEL, ROWS_AT_ONCE, STEP_CORES, STEP_SHARED, STEP_STORES


@dataclass(frozen=True)
class Recurrences:
    name: str = "recurrences"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        nest = site.nest
        steps = next((i for i, s in enumerate(nest.loops) if s.kind == "ordered"), None)
        if steps is None:
            return
        around, inside, along = nest.names[:steps], nest.names[steps + 1 :], contiguous_loop(nest)
        if isinstance(nest.core, Store) and along is not None and along in inside:
            lanes, wide = lanes_of(nest, machine, nest.extent(along), along), prod(nest.extent(n) or 0 for n in inside)
            unit = lanes if inside[0] == along else 1
            shared = None if around else by_owner(self.name, nest, inside[0], machine, unit)
            plan = Plan(self.name, order=nest.names, threads=around[:PARALLEL])
            if lanes > 1:
                worth = wide >= STEP_SHARED or machine.cores >= STEP_CORES
                yield from in_lanes(plan, nest, along, lanes, shared, worth)
        elif around and not inside:
            yield from self._at_once(nest, around, nest.names[steps])
        if around and (nest.extent(around[0]) or machine.cores) >= machine.cores:
            yield Plan(self.name, threads=around[:1])

    def _at_once(self, nest: Nest, around: tuple[str, ...], steps: str) -> Iterator[Plan]:
        """Yield a plan in which some rows go through their steps together, if steps are short."""
        rows, extent = around[-1], nest.extent(around[-1])
        short = not any(loops_in(nest.core)) and len(stores(nest.core)) <= STEP_STORES
        if not short or extent is None or extent < ROWS_AT_ONCE:
            return
        cut = Cut(rows, ROWS_AT_ONCE, f"{rows}.o", f"{rows}.l", "exact" if extent % ROWS_AT_ONCE == 0 else "guard")
        order = (*around[:-1], cut.outer)
        yield Plan(self.name, cuts=(cut,), order=(*order, steps), tile=(cut.inner,), threads=order[:1])
