"""Lanes over every second or third result, for reads indexed by quotients: each result of a group has its own vectors.

    for j: y[j] = x[j // 2]   ->   for j.o: unroll j.p in 0..2: vector j.l: y[2*j + j.p] = x[j]

Reads are then contiguous, and the stores of all `j.p` are merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.loop.nodes import Binary, Const
from opgen.loop.walk import walk_exprs
from opgen.machine import Machine
from opgen.schedule.auto.cuts import tails_of
from opgen.schedule.auto.nests import Nest, coefficient, reduces, updates
from opgen.schedule.auto.plan import Cut, Plan
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import PARALLEL, STRIDES


@dataclass(frozen=True)
class Strides:
    name: str = "strides"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        nest, vector = site.nest, site.roles.lanes
        if vector is None or updates(nest) or reduces(nest):
            return
        step, extent = _step(nest, vector), nest.extent(vector)
        if step is None or extent is None or extent % step:
            return
        lanes = lanes_of(nest, machine, extent // step, vector)
        if lanes < 2:
            return
        group, place, outer, lane = (f"{vector}.{end}" for end in "qpol")
        tail = tails_of(extent // step, lanes)[0]
        others = tuple(n for n in nest.names if n != vector)
        yield Plan(
            self.name,
            lane,
            cuts=(Cut(vector, step, group, place), Cut(group, lanes, outer, lane, tail)),
            order=(*others, outer),
            tile=(place,),
            threads=(*others, outer)[:PARALLEL],
        )


def _step(nest: Nest, loop: str) -> int | None:
    """Return the one small divisor of positions along a loop; None if there is none or several."""
    found = {
        int(e.right.value)
        for e in walk_exprs(nest.core)
        if isinstance(e, Binary) and e.op in ("floordiv", "mod") and isinstance(e.right, Const)
        if e.left.type.lanes == 1 and e.left.type.dtype.is_int and coefficient(e.left, loop) == 1
    }
    return found.pop() if len(found) == 1 and 1 < min(found) <= STRIDES else None
