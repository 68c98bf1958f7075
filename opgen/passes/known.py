"""Conditions decided lane by lane, as far as the lane alone decides them."""

from __future__ import annotations

from functools import lru_cache

from opgen.loop.analysis.lanes import lane_variable, per_lane
from opgen.loop.nodes import Const, Expr
from opgen.loop.walk import substitute_expr
from opgen.passes.fold import fold_all


@lru_cache(maxsize=4096)
def decided(condition: Expr) -> tuple[bool | None, ...]:
    """Return the value of a condition in each lane, None where the lane does not decide it."""
    lanes = condition.type.lanes
    one = per_lane(condition)
    lane = lane_variable(lanes).name
    values = [fold_all(substitute_expr(one, {lane: Const(k)})) for k in range(lanes)]
    return tuple(bool(v.value) if isinstance(v, Const) else None for v in values)
