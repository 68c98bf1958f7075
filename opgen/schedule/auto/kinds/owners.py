"""Updates at places that are loaded, each thread for a part of the elements that lie side by side.

    parallel for j.b: for i: for j.r.o: vector for j.r.l: y[ids[i], j] = y[ids[i], j] + v[i, j]

Two updates may be of one element, so that the loops over what tells the places stay in order.
"""

from __future__ import annotations

from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.plan import Cut, Plan


def by_owner(kind: str, nest: Nest, loop: str, lanes: int, machine: Machine) -> Plan | None:
    """A plan with lanes along a loop, of which each thread has a part; None where there is nothing to share."""
    extent = nest.extent(loop)
    share = 0 if extent is None else -(-extent // (machine.cores * lanes)) * lanes
    if extent is None or share >= extent:
        return None
    part, own = f"{loop}.b", f"{loop}.r"
    outer, lane = f"{own}.o", f"{own}.l"
    others = tuple(n for n in nest.names if n != loop)
    cuts = (Cut(loop, share, part, own), Cut(own, lanes, outer, lane))
    return Plan(kind, lane, cuts=cuts, order=(part, *others, outer), threads=(part,))
