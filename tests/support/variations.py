"""A small kernel, legal variations of its schedule, and entries for the file of tuned schedules."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from opgen.compiler import toolchain, tuned
from opgen.loop.nodes import Kernel
from opgen.schedule.default import default_schedule
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import Schedule, apply
from opgen.schedule.variations import variations
from tests.schedule import kernels
from tests.schedule.differential import specialised

SIZES = {"batch": 1, "height": 4, "width": 5, "channels": 3, "outputs": 32, "taps": 3}


def kernel() -> Kernel:
    generic = kernels.dense()
    return specialised(generic, {p.name: SIZES.get(p.name, 2) for p in generic.parameters})


def legal(given: Kernel, schedule: Schedule) -> Iterator[tuple[Schedule, Kernel]]:
    for other in variations(schedule):
        with contextlib.suppress(ScheduleError):
            yield other, apply(given, other)


def another(given: Kernel) -> Schedule:
    """A legal schedule that is not the default one."""
    default = default_schedule(given, "cpu", toolchain.host().machine)
    return next(legal(given, default))[0]


def entry(given: Kernel, schedule: Schedule) -> tuned.Entry:
    steps = tuple(map(str, schedule.steps))
    return tuned.Entry(tuned.key_of(given, toolchain.host()), "Op x=1", toolchain.host().cpu, 1, 2.0, 1.0, steps)
