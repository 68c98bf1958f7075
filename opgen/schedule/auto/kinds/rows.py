"""Reductions along what lies consecutively: partial results in lanes, then a tree.

    parallel for i: for j.o: unroll for 4 vectors: vector for j.l: partial[j.l] += x[i, j]; a tree of partial

A sum over a row has one chain of additions; as many partial sums as hide the latency of an addition, a register of
lanes each, run at the speed of memory.  Where results share what they read, a sum is a contraction, which keeps it in
registers: partial sums are there for want of such a nest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

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
        threads, shared = nest.names[:PARALLEL], _shared(nest)

        def plan(term: str, terms: int | None, joins: tuple[str, ...] = ()) -> Iterator[Plan]:
            private = Private(term, terms, sums, lanes, machine.latency)
            if partial_sums(terms, lanes, private.chains) > 1:
                yield Plan(
                    self.name, None, joins, order=nest.names, private=(private,), threads=threads, otherwise=shared
                )

        for term, terms, joins in _joined(nest, lanes * machine.latency):
            yield from plan(term, terms, joins)
        yield from plan(loop.var, constant_extent(loop))


def _joined(nest: Nest, full: int) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """The innermost loops of the sum as one, most of them first, where the last one fills no `full` vectors."""
    loops = [(s.var, constant_extent(s) or 0) for s in nest.inner_loops]
    if loops[-1][1] % full == 0:
        return
    for count in range(len(loops), 1, -1):
        joined = loops[-count:]
        names = [n for n, _ in joined]
        handles = tuple("*".join(names[k:]) for k in range(count - 2, -1, -1))
        terms = prod(e for _, e in joined)
        if terms:
            yield handles[-1], terms, handles


def _shared(nest: Nest) -> bool:
    """Whether several results use an element that is read."""
    several = [n for n in nest.names if nest.extent(n) != 1]
    return any(not depends(e.indices, n) for e in nest.summed for n in several)
