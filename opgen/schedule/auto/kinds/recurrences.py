"""Steps that need those before: lanes and threads along what takes no part in the recurrence.

    parallel a.b: ordered t: for a.o: vector for a.l: up[t + 1, a] = x[t, a] + up[t, a]
    parallel b.o: ordered t: unroll 8 b: up[b, t + 1] = x[b, t] + up[b, t]

Several recurrences go on together where steps are short: a step of one need not wait for the step before of another.
Nests that a step holds have been scheduled by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from opgen.loop.nodes import Store
from opgen.loop.walk import loops_in, stores
from opgen.machine import Machine
from opgen.schedule.auto.cuts import tails_of
from opgen.schedule.auto.nests import Nest, contiguous_loop
from opgen.schedule.auto.owners import by_owner
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
        if isinstance(nest.core, Store) and along in inside:
            yield from self._in_lanes(nest, along, around, inside, machine)
        elif around and not inside:
            yield from self._at_once(nest, around, nest.names[steps])
        shared = around and (nest.extent(around[0]) or machine.cores) >= machine.cores
        if shared:
            yield Plan(self.name, threads=around[:1])

    def _in_lanes(
        self, nest: Nest, loop: str, around: tuple[str, ...], inside: tuple[str, ...], machine: Machine
    ) -> Iterator[Plan]:
        lanes = lanes_of(nest, machine, nest.extent(loop), loop)
        if lanes < 2:
            return
        owners = None if around else by_owner(self.name, nest, inside[0], loop, lanes, machine)
        wide = prod(nest.extent(n) or 0 for n in inside) >= STEP_SHARED
        shared = owners is not None and (wide or machine.cores >= STEP_CORES)
        yield from [] if owners is None else [replace(owners, otherwise=not shared)]
        for tail in tails_of(nest.extent(loop), lanes):
            cut = Cut(loop, lanes, f"{loop}.o", f"{loop}.l", tail)
            order = (*(n for n in nest.names if n != loop), cut.outer)
            yield Plan(self.name, cut.inner, cuts=(cut,), order=order, threads=around[:PARALLEL], otherwise=shared)

    def _at_once(self, nest: Nest, around: tuple[str, ...], steps: str) -> Iterator[Plan]:
        """Some rows go through their steps together, where steps are short."""
        rows, extent = around[-1], nest.extent(around[-1])
        short = not any(loops_in(nest.core)) and len(stores(nest.core)) <= STEP_STORES
        if not short or extent is None or extent < ROWS_AT_ONCE:
            return
        cut = Cut(rows, ROWS_AT_ONCE, f"{rows}.o", f"{rows}.l", "exact" if extent % ROWS_AT_ONCE == 0 else "guard")
        order = (*around[:-1], cut.outer)
        yield Plan(self.name, cuts=(cut,), order=(*order, steps), tile=(cut.inner,), threads=order[:1])
