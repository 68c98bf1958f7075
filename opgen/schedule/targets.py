"""What a schedule is for: steps that only one kind of target can run."""

from __future__ import annotations

from typing import Literal, TypeAlias

from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import Schedule
from opgen.schedule.steps import Bind, Pair, Prefix, Share, Step, Tensorize

Target: TypeAlias = Literal["cpu", "cuda"]

_ONLY: dict[type[Step], Target] = {Bind: "cuda", Pair: "cpu", Prefix: "cpu", Tensorize: "cpu"}
_NAMES: dict[Target, str] = {"cpu": "CPUs", "cuda": "GPUs"}


def require_target(schedule: Schedule, kind: Target) -> None:
    """Raises ScheduleError, with its place if the schedule was read from a text, for a step of another target."""
    for step in schedule.steps:
        shared = isinstance(step, Share) and step.space == "shared"
        only = "cuda" if shared else _ONLY.get(type(step), kind)
        if only != kind:
            message = f"{step}: a step for {_NAMES[only]}, and the target is one of the {_NAMES[kind]}"
            raise ScheduleError(message, "leave it out, or choose another target", step.span)
