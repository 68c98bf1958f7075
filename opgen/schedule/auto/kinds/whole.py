"""A reduction of all there is to one number: partial results in lanes along the innermost loop, then a tree.

for i: for j.o: unroll for 4 vectors: vector for j.l: partial[j.l] += x[i, j]; a tree of partial
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from opgen.loop.nodes import Store
from opgen.machine import Machine
from opgen.schedule.auto.nests import depends, in_steps, mostly_consecutive
from opgen.schedule.auto.partial import partial_sums
from opgen.schedule.auto.plan import Plan, Private
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import REDUCED_AT_ONCE


@dataclass(frozen=True)
class Whole:
    name: str = "whole"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        nest = site.nest
        if site.roles.lanes is not None or len(nest.results) != 1 or not isinstance(nest.core, Store):
            return
        (result,), loop = nest.results, nest.names[-1]
        once = not in_steps(site.trial.kernel, loop)
        few = once and prod(nest.extent(n) or REDUCED_AT_ONCE for n in nest.names) < REDUCED_AT_ONCE
        if few or any(depends(result.indices, n) for n in nest.names) or not mostly_consecutive(nest, loop):
            return
        private = Private(loop, nest.extent(loop), result.buffer, lanes_of(nest, machine, None), machine.latency)
        if partial_sums(private.terms, private.lanes, private.chains) > 1:
            yield Plan(self.name, order=nest.names, private=(private,))
