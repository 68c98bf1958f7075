"""Schedules with a plan of a certain kind, whether or not it is the cheapest."""

from __future__ import annotations

from opgen.loop.nodes import Kernel
from opgen.machine import Machine
from opgen.schedule.auto.decisions import Decisions
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import Schedule
from opgen.schedule.why import choices


def scheduled_as(kind: str | None, kernel: Kernel, machine: Machine | None) -> tuple[Schedule, Kernel]:
    """The default schedule and the kernel after it; a plan of the kind for the first nest that has one."""
    if kind is None:
        return scheduled(kernel, "cpu", machine)
    assert machine is not None
    for choice in choices(kernel, machine):
        options = [n for n, candidate in enumerate(choice.ranked) if candidate.plan.kind == kind]
        if options:
            decisions = Decisions((*(0 for _ in range(choice.number)), options[0]), thorough=True)
            return scheduled(kernel, "cpu", machine, decisions)
    raise AssertionError(f"no nest has a plan of the kind {kind}")
