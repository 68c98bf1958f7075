"""Reductions along what lies consecutively: partial results in lanes, then a tree.

    parallel for i: for j.o: unroll for 4 vectors: vector for j.l: partial[j.l] += x[i, j]; a tree of partial

A sum over a row has one chain of additions; as many partial sums as hide the latency of an addition, a register of
lanes each, run at the speed of memory.  Where results share what they read, a sum is a contraction, which keeps it in
registers: partial sums are there for want of such a nest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, consecutive_terms, depends
from opgen.schedule.auto.partial import partial_sums
from opgen.schedule.auto.plan import Plan, Private
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import PARALLEL


@dataclass(frozen=True)
class Rows:
    name: str = "rows"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        nest, loop = site.nest, consecutive_terms(site.nest)
        if loop is None:
            return
        sums, lanes = nest.allocations[0].name, lanes_of(nest, machine, None)
        private = Private(loop.var, constant_extent(loop), sums, lanes, machine.latency)
        if partial_sums(private.terms, lanes, private.chains) > 1:
            threads = nest.names[:PARALLEL]
            yield Plan(self.name, order=nest.names, private=(private,), threads=threads, otherwise=_shared(nest))


def _shared(nest: Nest) -> bool:
    """Whether several results use an element that is read."""
    several = [n for n in nest.names if nest.extent(n) != 1]
    return any(not depends(e.indices, n) for e in nest.summed for n in several)
