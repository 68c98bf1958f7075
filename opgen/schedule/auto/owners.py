"""Loops of which each thread owns a stretch, whatever other loops go through in order."""

from __future__ import annotations

from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.plan import Cut, Plan
from opgen.schedule.split import Tail


def by_owner(kind: str, nest: Nest, loop: str, along: str, lanes: int, machine: Machine) -> Plan | None:
    """A plan in which each thread has a part of a loop, outermost, with lanes along it or `along` another one, if they
    are several; None where there is nothing to share.
    """
    extent, step = nest.extent(loop), lanes if loop == along else 1
    share = 0 if extent is None else -(-extent // (machine.cores * step)) * step
    if extent is None or share >= extent:
        return None
    part, own = f"{loop}.b", f"{loop}.r"
    cut = Cut(loop, share, part, own, "exact" if extent % share == 0 else "min")
    order, vector = [own if n == loop else n for n in nest.names], own if loop == along else along
    if lanes == 1:
        return Plan(kind, cuts=(cut,), order=(part, *order), threads=(part,))
    outer, lane = f"{vector}.o", f"{vector}.l"
    tail: Tail = "exact" if loop == along or (nest.extent(along) or 1) % lanes == 0 else "guard"
    order = [part, *(n for n in order if n != vector), outer]
    return Plan(kind, lane, cuts=(cut, Cut(vector, lanes, outer, lane, tail)), order=tuple(order), threads=(part,))
