"""Vector expressions lane by lane: one scalar expression in a variable for the lane."""

from __future__ import annotations

from opgen.loop import build as b
from opgen.loop.nodes import INDEX, BitCast, Broadcast, Cast, Const, Expr, Ramp, Shuffle, Type, Var
from opgen.loop.walk import operands, with_operands


def lane_variable(lanes: int) -> Var:
    """Return the variable of the lane, 0 <= it < lanes (no listing can declare a name with a space)."""
    return Var(f"lane of {lanes}", INDEX)


def per_lane(e: Expr) -> Expr:
    """Return an expression's value in the lane `lane_variable(e.type.lanes)`; a scalar expression is itself."""
    match e:
        case Ramp():
            lane: Expr = lane_variable(e.lanes)
            if e.base.type != INDEX:
                lane = Cast(e.base.type, lane)
            return b.binary("add", per_lane(e.base), b.binary("mul", per_lane(e.stride), lane))
        case Broadcast():
            return per_lane(e.operand)
        case Const():
            return e if e.type.lanes == 1 else Const(e.value, Type(e.type.dtype))
        case Cast() if e.type.lanes > 1:
            return Cast(Type(e.type.dtype), per_lane(e.operand))
        case BitCast() if e.type.lanes > 1:
            return BitCast(Type(e.type.dtype), per_lane(e.operand))
        case Var() | Shuffle() if e.type.lanes > 1:
            return e
    return with_operands(e, tuple([per_lane(o) for o in operands(e)]))
