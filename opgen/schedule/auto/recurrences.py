"""Recurrences that are each by itself, several at once: a step of one need not wait for the step before of another.

parallel b.o: ordered t: unroll 8 b: up[b, t + 1] = x[b, t] + up[b, t]
"""

from __future__ import annotations

from opgen.loop.nodes import For
from opgen.loop.walk import loops_in, stores
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import is_around_steps
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import ROWS_AT_ONCE, STEP_STORES
from opgen.schedule.split import Tail
from opgen.schedule.steps import Reorder, Split, Unroll


def rows_at_once(trial: Trial, outermost: For) -> str:
    """Some rows go through their steps together, where steps are short; the loop to be shared among threads."""
    around = [outermost]
    while isinstance(around[-1].body, For) and around[-1].body.kind == "serial" and is_around_steps(around[-1].body):
        around.append(around[-1].body)
    rows, steps = around[-1], around[-1].body
    extent = constant_extent(rows)
    if not isinstance(steps, For) or any(loops_in(steps.body)) or len(stores(steps.body)) > STEP_STORES:
        return outermost.var
    if extent is None or extent < ROWS_AT_ONCE:
        return outermost.var
    outer, inner = trial.fresh(f"{rows.var}_o"), trial.fresh(f"{rows.var}_l")
    tail: Tail = "exact" if extent % ROWS_AT_ONCE == 0 else "guard"
    taken = trial.take(
        Split(rows.var, ROWS_AT_ONCE, tail, outer, inner), Reorder((outer, steps.var, inner)), Unroll(inner)
    )
    return outer if taken and len(around) == 1 else outermost.var
