"""Fallbacks for broken schedules: a valid kernel is never refused because of a defect in the scheduler.

A part of the automatic scheduler that raises, or whose result cannot be compiled, is a defect of opgen.  It is noted,
and its loop nests stay as they were lowered: slow and correct.  `opgen.counters()` counts these notes, and
OPGEN_DEBUG=1 prints the traceback.  With OPGEN_FALLBACK=raise it is an error, as in the tests.
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
"""Raises if no code can be generated for a kernel."""

VARIABLE = "OPGEN_FALLBACK"
_noted: ContextVar[list[Fallback] | None] = ContextVar("noted", default=None)


@dataclass(frozen=True)
class Fallback:
    """The part of the scheduler that broke, and its error."""

    part: str
    error: Exception


@contextmanager
def noting() -> Iterator[list[Fallback]]:
    """Yield a list that collects the fallbacks noted within the block."""
    found: list[Fallback] = []
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def unless_broken(part: str, run: Callable[[], T]) -> T | None:
    """Return the result of `run`, or None if it broke.  A user's interrupt or a lack of memory is not a defect."""
    try:
        return run()
    except MemoryError:
        raise
    except Exception as error:  # any error here is opgen's fault, not the kernel's
        if word(VARIABLE) == "raise":
            raise
        _note(Fallback(part, error))
        return None


def built(
    kernel: Kernel,
    scheduled: Callable[[Check | None], tuple[Schedule, Kernel]],
    make: Callable[[Schedule, Kernel], T],
) -> T:
    """Return the result of `make` for a schedule and the kernel after it.

    If that breaks, the kernel is scheduled once more, with a check after each loop nest.  If that breaks, too, it is
    made as lowered.
    """

    def check(after: Kernel) -> object:
        return make(Schedule(), after)

    word(VARIABLE)  # an invalid value fails at the first kernel, not at the first one that breaks
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
