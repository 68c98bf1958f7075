"""Reductions along contiguous elements: partial results in lanes, then a tree.

    parallel for i: for j.o: unroll for 4 vectors: vector for j.l: partial[j.l] += x[i, j]; a tree of partial

A sum over a row is one chain of additions.  With as many partial sums as hide the latency of an addition, a register of
lanes each, it runs at the speed of memory.  If results share reads, the sum is a contraction, which keeps them in
registers; partial sums are then only a fallback.  A sum of everything to one number is computed so by one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from opgen.loop.nodes import Store
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, consecutive_terms, depends, in_steps, mostly_consecutive
from opgen.schedule.auto.partial import partial_sums
from opgen.schedule.auto.plan import Plan, Private
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import PARALLEL, REDUCED_AT_ONCE


@dataclass(frozen=True)
class Rows:
    name: str = "rows"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        nest, loop = site.nest, consecutive_terms(site.nest)
        lanes, chains = lanes_of(nest, machine, None), machine.latency
        if loop is not None:
            sums, threads = nest.allocations[0].name, nest.names[:PARALLEL]
            for term, terms, joins in (*_joined(nest, lanes * chains), (loop.var, constant_extent(loop), ())):
                yield from self._along(nest, Private(term, terms, sums, lanes, chains), joins, threads)
        elif _is_whole(site):
            loop_of_terms = nest.names[-1]
            terms = nest.extent(loop_of_terms)
            yield from self._along(nest, Private(loop_of_terms, terms, nest.results[0].buffer, lanes, chains))

    def _along(
        self, nest: Nest, private: Private, joins: tuple[str, ...] = (), threads: tuple[str, ...] = ()
    ) -> Iterator[Plan]:
        """Yield partial sums, if there are enough terms for several.

        They are a fallback behind contractions if results share an element.
        """
        if partial_sums(private.terms, private.lanes, private.chains) > 1:
            shared = bool(nest.inner_loops) and _shared(nest)
            yield Plan(self.name, None, joins, order=nest.names, private=(private,), threads=threads, otherwise=shared)


def _is_whole(site: Site) -> bool:
    """Return True if a nest over terms adds all of them up to one number, and they are not few."""
    nest, loop = site.nest, site.nest.names[-1]
    if site.roles.lanes is not None or len(nest.results) != 1 or not isinstance(nest.core, Store):
        return False
    once = not in_steps(site.trial.kernel, loop)
    few = once and prod(nest.extent(n) or REDUCED_AT_ONCE for n in nest.names) < REDUCED_AT_ONCE
    one = not any(depends(nest.results[0].indices, n) for n in nest.names)
    return one and not few and mostly_consecutive(nest, loop)


def _joined(nest: Nest, full: int) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield the innermost loops of the sum as one, most of them first.

    Each comes with its number of terms and the joins that make it.  Nothing is yielded if the last loop has a multiple
    of `full` terms.
    """
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
    """Return True if several results use the same element."""
    several = [n for n in nest.names if nest.extent(n) != 1]
    return any(not depends(e.indices, n) for e in nest.summed for n in several)
