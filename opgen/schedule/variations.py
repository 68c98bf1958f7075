"""Schedules near a schedule: one step changed, two loops exchanged, one step left out.

Nothing here knows whether a variation is legal: applying it tells.  They are what a search by measuring walks over
(`opgen.runtime.measuring.tuner`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opgen.loop.nodes import For, Stmt, Store
from opgen.loop.walk import parts
from opgen.passes.unroll import constant_extent
from opgen.schedule.schedule import Schedule
from opgen.schedule.split import Tail
from opgen.schedule.steps import Partition, Reorder, Split, Step

_TAILS: tuple[Tail, ...] = ("exact", "overlap", "guard")


def variations(schedule: Schedule) -> Iterator[Schedule]:
    """All schedules that differ from one in one step."""
    steps = schedule.steps
    for k, step in enumerate(steps):
        for other in _instead(step):
            yield Schedule((*steps[:k], other, *steps[k + 1 :]))
        yield Schedule((*steps[:k], *steps[k + 1 :]))


def _instead(step: Step) -> Iterator[Step]:
    match step:
        case Split():
            for factor in _factors(step.factor):
                for tail in dict.fromkeys((step.tail, *_TAILS)):
                    yield replace(step, factor=factor, tail=tail, span=None)
        case Reorder():
            for k in range(len(step.loops) - 1):
                loops = (*step.loops[:k], step.loops[k + 1], step.loops[k], *step.loops[k + 2 :])
                yield replace(step, loops=loops, span=None)
        case Partition():
            for at in ((1,), (-1,), (1, -1), (2, -2)):
                if at != step.at:
                    yield replace(step, at=at, span=None)


def _factors(factor: int) -> list[int]:
    """Other sizes of a tile: near ones, halves and doubles."""
    near = (factor // 2, factor * 2, factor - 1, factor + 1, factor - 2, factor + 2, factor * 3 // 2, factor * 4)
    return [f for f in dict.fromkeys(near) if f > 1 and f != factor]


def copies(s: Stmt) -> int:
    """How many stores a statement has once its loops are unrolled: what building it costs."""
    if isinstance(s, Store):
        return 1
    inside = sum(map(copies, parts(s)))
    return inside * (constant_extent(s) or 1) if isinstance(s, For) and s.kind == "unroll" else inside
