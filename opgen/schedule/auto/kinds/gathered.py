"""Gathers whose positions do not depend on some loop: lanes go along that loop.

    x_packed = x with the dimension of c last
    parallel n, y: for x: for c.o: vector for c.l: rows[x, c] = sum[t](w[t, y, x] * x_packed[n, place[t, y, x], c])
                   y[n, c, y, x] = rows[x, c]

A position, its weight and whether it is inside are computed once for all lanes, which read contiguous elements.  Along
the contiguous loop of the results, each lane would gather its own element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from opgen.loop.nodes import Load, Var
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.cuts import tails_of
from opgen.schedule.auto.nests import Nest, count_of_terms, depends, is_told, own_axis, places_read, with_last
from opgen.schedule.auto.plan import Cut, Operand, Plan, Result
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import PARALLEL, TERMS_UNROLLED
from opgen.schedule.cost.sizes import elements_of


@dataclass(frozen=True)
class Gathered:
    name: str = "gathered"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        nest, along = site.nest, site.roles.lanes
        given = {i.name for i in site.trial.kernel.inputs}
        gathers = [] if along is None else [e for e in nest.summed if is_told(e, along)]
        if along is None or not gathers or len(nest.results) != 1 or not {e.buffer for e in gathers} <= given:
            return
        moved = {e.buffer for e in gathers} | {nest.results[0].buffer}
        if count_of_terms(nest) < sum(elements_of(nest.shapes[buffer]) for buffer in moved):
            return  # copies would take longer than gathers
        for loop in nest.names:
            if loop != along and _walks(nest, loop, gathers):
                yield from self._across(nest, loop, gathers, machine)

    def _across(self, nest: Nest, loop: str, gathers: list[Load], machine: Machine) -> Iterator[Plan]:
        extent, lanes = nest.extent(loop), lanes_of(nest, machine, None, loop)
        others = tuple(n for n in nest.names if n != loop)
        axis = own_axis(nest.results[0], loop)
        if lanes < 2 or extent is None or extent < lanes or len(others) < 2 or axis is None:
            return
        outer, lane = f"{loop}.o", f"{loop}.l"
        terms = tuple(s.var for s in nest.inner_loops)
        count = prod(constant_extent(s) or TERMS_UNROLLED + 1 for s in nest.inner_loops)
        unrolled = terms if count <= TERMS_UNROLLED else ()
        vectors = (outer,) if count * -(-extent // lanes) <= TERMS_UNROLLED else ()
        copies = {e.buffer: with_last(len(e.indices), own_axis(e, loop) or 0) for e in gathers}
        for tail in tails_of(extent, lanes):
            yield Plan(
                self.name,
                lane,
                cuts=(Cut(loop, lanes, outer, lane, tail),),
                order=(*others, *(() if vectors else (outer,))),
                tile=(*vectors, *unrolled),
                operands=tuple(Operand(buffer, "copy", order) for buffer, order in copies.items()),
                results=(Result(nest.results[0].buffer, with_last(len(nest.results[0].indices), axis), others[-2]),),
                threads=others[:-1][:PARALLEL],
                otherwise=tail != tails_of(extent, lanes)[0],
            )


def _walks(nest: Nest, loop: str, gathers: list[Load]) -> bool:
    """Return True if a loop alone indexes a dimension of every gathered load, and no position depends on it."""
    axes = [own_axis(e, loop) for e in gathers]
    own = all(axis is not None and e.indices[axis] == Var(loop) for e, axis in zip(gathers, axes, strict=True))
    return own and not any(depends(e.indices, loop) for e in places_read(nest))
