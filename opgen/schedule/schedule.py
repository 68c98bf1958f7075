"""Schedules as data: steps that are taken in order."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.loop.analysis.bounds import kept_proofs
from opgen.loop.nodes import Kernel
from opgen.loop.verify import verify
from opgen.schedule.errors import ScheduleError
from opgen.schedule.focus import run
from opgen.schedule.limits import Limits
from opgen.schedule.parse import parse_steps
from opgen.schedule.steps import Step


@dataclass(frozen=True)
class Schedule:
    """Steps in order.  Prints one a line; `parse_schedule(str(s)) == s`."""

    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return "".join(f"{step}\n" for step in self.steps)


def parse_schedule(text: str, name: str = "<schedule>") -> Schedule:
    """Return a schedule from its text; a ScheduleError shows the place of a mistake."""
    return Schedule(parse_steps(text, name))


def apply(kernel: Kernel, schedule: Schedule, *, check: bool = True) -> Kernel:
    """Return the kernel after all steps, verified after each unless `check` is off.

    A step that is illegal, or exceeds the limits (`limits.py`), raises ScheduleError, with its place if the schedule
    was read from a text.
    """
    return snapshots(kernel, schedule, check=check)[-1][1]


def snapshots(kernel: Kernel, schedule: Schedule, *, check: bool = True) -> list[tuple[str, Kernel]]:
    """Return the kernel before all steps and after each, with the step's text."""
    with kept_proofs():
        return [("lowered", kernel), *_run(kernel, schedule, check)]


def _run(kernel: Kernel, schedule: Schedule, check: bool) -> list[tuple[str, Kernel]]:
    result: list[tuple[str, Kernel]] = []
    limits = Limits.of(kernel)
    for step in schedule.steps:
        before = kernel
        try:
            kernel = run(step, kernel)
            limits.require(kernel)
        except ScheduleError as refusal:
            if step.span is None:
                raise
            raise refusal.at(step.span) from None
        if check:
            verify(kernel, before=before if result else None)
        result.append((str(step), kernel))
    return result
