"""Schedules near a schedule: one step changed, two loops exchanged, one step left out.

Nothing here checks whether a variation is legal: applying it does.  Tuning searches among them
(`opgen.runtime.measuring.tuner`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from opgen.loop.nodes import For, Stmt, Store
from opgen.loop.walk import parts
from opgen.passes.unroll import constant_extent
from opgen.schedule.declaration import form_of
from opgen.schedule.schedule import Schedule
from opgen.schedule.steps import Step


def variations(schedule: Schedule) -> Iterator[Schedule]:
    """Yield all schedules that differ from one in one step."""
    steps = schedule.steps
    for k, step in enumerate(steps):
        for other in _instead(step):
            yield Schedule((*steps[:k], other, *steps[k + 1 :]))
        yield Schedule((*steps[:k], *steps[k + 1 :]))


def _instead(step: Step) -> Iterator[Step]:
    """Yield the step with other values in the fields for which its declaration has some."""
    varied = [(f.name, f.varied) for f in form_of(type(step)).fields if f.varied is not None]
    values = [dict.fromkeys((own, *v.others(own))) for own, v in ((getattr(step, name), v) for name, v in varied)]
    for chosen in product(*values):
        other = replace(step, **dict(zip((name for name, _ in varied), chosen, strict=True)), span=None)
        if other != step:
            yield other


def copies(s: Stmt) -> int:
    """Return the number of stores in a statement once its loops are unrolled: the cost of building it."""
    if isinstance(s, Store):
        return 1
    inside = sum(map(copies, parts(s)))
    return inside * (constant_extent(s) or 1) if isinstance(s, For) and s.kind == "unroll" else inside
