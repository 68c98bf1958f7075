"""Counters of kernels made for certain sizes and for any, of the kinds of calls that took each, and of failures.

`opgen.counters()` returns them; with OPGEN_COUNTERS=1 a process prints them when it ends.
"""

from __future__ import annotations

import atexit
import sys
from dataclasses import astuple, dataclass

from opgen.cache.settings import word

VARIABLE = "OPGEN_COUNTERS"


@dataclass
class Counters:
    """Counters of an op.

    They count kernels built (or found in the cache) for a combination of integers, and for any; plans that took each;
    and schedules that failed, so that a plainer one was built (a defect of opgen: OPGEN_DEBUG=1 shows it).  A plan is
    made for each kind of call: types, shapes, attributes.
    """

    specialized: int = 0
    generic: int = 0
    specialized_plans: int = 0
    generic_plans: int = 0
    fallbacks: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


_ops: list[tuple[str, Counters]] = []


def register(op: str) -> Counters:
    """Return new counters of an op."""
    if not _ops and word(VARIABLE) == "1":
        atexit.register(lambda: print(table(), file=sys.stderr))
    made = Counters()
    _ops.append((op, made))
    return made


def counters() -> dict[str, Counters]:
    """Return the counters of each op that this process has called, by name; modules with equal names are added up."""
    found: dict[str, Counters] = {}
    for op, counted in _ops:
        if counted != Counters():
            found[op] = found.get(op, Counters()) + counted
    return found


def table() -> str:
    """Return the counters as text."""
    found = counters()
    width = max(map(len, found), default=2) + 2
    lines = [
        f"{'op':{width}}{'special kernels':>16}{'generic':>9}{'calls on special':>18}{'on generic':>12}{'broken':>8}"
    ]
    for op, c in found.items():
        lines.append(
            f"{op:{width}}{c.specialized:16}{c.generic:9}{c.specialized_plans:18}{c.generic_plans:12}{c.fallbacks:8}"
        )
    return "\n".join(lines)
