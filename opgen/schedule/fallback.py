"""What is built where a schedule breaks: a valid kernel is never refused because a kind of schedule has a defect.

A part of the automatic scheduler that raises, or whose result cannot be made code, is a defect of opgen: it is noted,
and the nests that it was for are left as they were lowered, which is slow and right.  `opgen.counters()` counts what
was noted, OPGEN_DEBUG=1 prints the traceback, and with OPGEN_FALLBACK=raise it is an error, as in the tests.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from opgen.cache.settings import word
from opgen.loop.nodes import Kernel
from opgen.schedule.schedule import Schedule

T = TypeVar("T")
Check: TypeAlias = Callable[[Kernel], object]
"""Raises if a kernel cannot be made code."""

VARIABLE = "OPGEN_FALLBACK"
_noted: ContextVar[list[Fallback] | None] = ContextVar("noted", default=None)


@dataclass(frozen=True)
class Fallback:
    """The part that broke, and how."""

    part: str
    error: Exception


@contextmanager
def noting() -> Iterator[list[Fallback]]:
    """A list that holds, at the end of the block, what broke within it."""
    found: list[Fallback] = []
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def unless_broken(part: str, run: Callable[[], T]) -> T | None:
    """What `run` gives; None if it broke.  The user's interrupt and a want of memory are no defects."""
    try:
        return run()
    except MemoryError:
        raise
    except Exception as error:  # whatever it is, it is not the fault of the kernel
        if word(VARIABLE) == "raise":
            raise
        _note(Fallback(part, error))
        return None


def built(
    kernel: Kernel,
    scheduled: Callable[[Check | None], tuple[Schedule, Kernel]],
    make: Callable[[Schedule, Kernel], T],
) -> T:
    """Return what `make` makes of a schedule and the kernel after it.

    If that breaks the kernel is scheduled once more, with a check of what has become of it after each nest; and if that
    breaks, too, it is made as it is.
    """

    def check(after: Kernel) -> object:
        return make(Schedule(), after)

    word(VARIABLE)  # one without meaning is an error of the first kernel, not of the first that breaks
    made = unless_broken(f"the kernel {kernel.name}", lambda: make(*scheduled(None)))
    if made is None:
        made = unless_broken(f"the kernel {kernel.name}, nest by nest", lambda: make(*scheduled(check)))
    return make(Schedule(), kernel) if made is None else made


def _note(fallback: Fallback) -> None:
    noted = _noted.get()
    if noted is not None:
        noted.append(fallback)
    if word("OPGEN_DEBUG") == "1":
        shown = "".join(traceback.format_exception(fallback.error))
        sys.stderr.write(f"{shown}opgen: {fallback.part} is built without the schedule that broke\n")
