"""Schedule transfer: a kernel with open sizes gets the schedule of one for a typical call.

The schedule is found where all numbers are known.  Its steps name loops and buffers, which both kernels have, so they
apply again where sizes are open.  A tile that divides one size gets a tail for others.  Work that the numbers proved to
be done once may be repeated.  Steps prove their preconditions before they change a kernel.  If one does not apply, the
kernel gets the schedule that it has by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from opgen.codegen.llvm.target import Target
from opgen.compiler import tuned
from opgen.loop.analysis.bounds import kept_proofs
from opgen.loop.bind import ImpossibleValueError, bind
from opgen.loop.nodes import Kernel
from opgen.loop.verify import verify
from opgen.passes.simplify import simplify
from opgen.schedule.errors import ScheduleError
from opgen.schedule.fallback import unless_broken
from opgen.schedule.focus import run
from opgen.schedule.limits import Limits
from opgen.schedule.schedule import Schedule
from opgen.schedule.split import Tail
from opgen.schedule.steps import ComputeAt, Split, Step

T = TypeVar("T")

TAILS: tuple[Tail, ...] = ("overlap", "guard")
"""Tails that replace a tile's exact end, in the order in which they are tried."""

FURTHER = (0, 1, 2, 3)
"""Increments of the sizes whose schedules are tried: a schedule for sizes that tiles divide may not transfer."""


def built(kernel: Kernel, like: Mapping[str, int], target: Target, make: Callable[[Schedule, Kernel], T]) -> T:
    """Return the result of `make` for a schedule of a (simplified) kernel and the scheduled kernel.

    `like` are typical values of its open integers.
    """

    def attempt() -> T | None:
        with kept_proofs():
            after = next(filter(None, (_carried(kernel, like, further, target) for further in FURTHER)), None)
            return None if after is None else make(*after)

    made = unless_broken(f"the kernel {kernel.name} with open sizes", attempt)
    return tuned.build(kernel, target, make) if made is None else made


def _carried(kernel: Kernel, like: Mapping[str, int], further: int, target: Target) -> tuple[Schedule, Kernel] | None:
    """Return the schedule for typical open integers plus `further`, and this kernel after it; None if that fails."""
    try:
        typical = bind(kernel, {name: value + further for name, value in like.items()})
    except ImpossibleValueError:
        return None
    return carried_over(kernel, tuned.scheduled(simplify(typical), target)[0])


def carried_over(kernel: Kernel, schedule: Schedule) -> tuple[Schedule, Kernel] | None:
    """Return the steps of a schedule for known sizes that apply, and the kernel after them.

    The result is None if a step does not apply where sizes are open.
    """
    limits = Limits.of(kernel)
    taken: list[Step] = []
    after = kernel
    try:
        for step in schedule.steps:
            form, after = _taken(after, step)
            taken.append(form)
            limits.require(after)
    except ScheduleError:
        return None
    verify(after, before=kernel)
    return Schedule(tuple(taken)), after


def _taken(kernel: Kernel, step: Step) -> tuple[Step, Kernel]:
    """Return the first form of a step that applies, and the kernel after it.  Raises ScheduleError if none does."""
    for form in _weaker(step):
        with contextlib.suppress(ScheduleError):
            return form, run(form, kernel)
    return step, run(step, kernel)


def _weaker(step: Step) -> Iterator[Step]:
    """Yield a step, and forms of it with weaker preconditions."""
    yield step
    if isinstance(step, Split) and step.tail in ("exact", "overlap"):
        yield from (replace(step, tail=tail) for tail in TAILS if tail != step.tail)
    if isinstance(step, ComputeAt) and not step.again:
        yield replace(step, again=True)
