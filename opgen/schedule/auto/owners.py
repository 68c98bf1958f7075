"""Loops of which each thread owns a stretch, whatever other loops go through in order."""

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
    cuts, order = (Cut(loop, share, part, own, "exact" if extent % share == 0 else "min"),), (part, *others)
    if lanes == 1:
        return Plan(kind, cuts=cuts, order=(*order, own), threads=(part,))
    return Plan(kind, lane, cuts=(*cuts, Cut(own, lanes, outer, lane)), order=(*order, outer), threads=(part,))
