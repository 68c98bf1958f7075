"""Partition of a loop among threads: each owns a contiguous range, for any order of the other loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.plan import Cut, Plan


def in_lanes(plan: Plan, nest: Nest, loop: str, lanes: int, shared: Plan | None, worth: bool = True) -> Iterator[Plan]:
    """Yield a plan with lanes along a loop, preceded by the one that threads share, if there is one."""
    # one of the two is late (`otherwise`): the shared one, unless that is worth it
    for made, late in ((shared, not worth), (plan, worth and shared is not None)):
        if made is not None:
            along = f"{loop}.r" if f"{loop}.r" in made.order else loop
            exact = (nest.extent(loop) or 1) % lanes == 0
            cut = Cut(along, lanes, f"{along}.o", f"{along}.l", "exact" if exact else "guard")
            order = (*(n for n in made.order if n != along), cut.outer)
            yield replace(made, lanes=cut.inner, cuts=(*made.cuts, cut), order=order, otherwise=late)


def by_owner(kind: str, nest: Nest, loop: str, machine: Machine, unit: int = 1) -> Plan | None:
    """Return a plan in which each thread owns a part of a loop, outermost, in multiples of `unit` iterations.

    Return None if there is nothing to share.
    """
    extent = nest.extent(loop)
    share = 0 if extent is None else -(-extent // (machine.cores * unit)) * unit
    if extent is None or share >= extent:
        return None
    cut = Cut(loop, share, f"{loop}.b", f"{loop}.r", "exact" if extent % share == 0 else "min")
    order = (cut.outer, *(cut.inner if n == loop else n for n in nest.names))
    return Plan(kind, cuts=(cut,), order=order, threads=(cut.outer,))
