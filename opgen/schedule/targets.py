"""Targets of schedules: some steps run on one kind of target only."""

from __future__ import annotations

from opgen.schedule.declaration import Target
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import Schedule

_NAMES: dict[Target, str] = {"cpu": "CPUs", "cuda": "GPUs"}


def require_target(schedule: Schedule, kind: Target) -> None:
    """Raise ScheduleError, with its place if the schedule was read from a text, for a step of another target."""
    for step in schedule.steps:
        if step.target not in (None, kind):
            message = f"{step}: a step for {_NAMES[step.target]}, and the target is one of the {_NAMES[kind]}"
            raise ScheduleError(message, "leave it out, or choose another target", step.span)
