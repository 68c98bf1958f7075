"""Vector expressions: scalars given lanes; ramps stay ramps, so that contiguous accesses stay visible."""

from __future__ import annotations

from opgen.dtypes import INT64
from opgen.loop import build as b
from opgen.loop.nodes import (
    Binary,
    BinaryOp,
    BitCast,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Function,
    Ramp,
    Select,
    Type,
)
from opgen.passes.fold import fold


def widen(e: Expr, lanes: int) -> Expr:
    """Return the expression with `lanes` lanes: itself if it has them, else the scalar in every lane."""
    return e if e.type.lanes == lanes else fold(Broadcast(e, lanes))


def binary(op: BinaryOp, left: Expr, right: Expr, lanes: int) -> Expr:
    """Return a binary operation with at least one vector operand."""
    if op in ("floordiv", "mod"):
        whole = _divided(op, left, right)
        if whole is not None:
            return whole
    ramp = _ramp(op, left, right)
    return ramp if ramp is not None else fold(Binary(op, widen(left, lanes), widen(right, lanes)))


def _divided(op: BinaryOp, left: Expr, right: Expr) -> Expr | None:
    """Divide a ramp whose stride is a multiple of the divisor: the remainder is that of its base, in every lane."""
    if not isinstance(left, Ramp) or not isinstance(left.stride, Const) or not isinstance(right, Const):
        return None
    divisor, stride = int(right.value), int(left.stride.value)
    if left.type.dtype != INT64 or right.type.lanes != 1 or divisor <= 0 or stride % divisor:
        return None
    base = fold(Binary(op, left.base, right))
    return base if op == "mod" else fold(Ramp(base, Const(stride // divisor, right.type), left.lanes))


def _ramp(op: BinaryOp, left: Expr, right: Expr) -> Expr | None:
    """Return sums and multiples of ramps as ramps (int64 only: narrower integers would wrap elsewhere)."""
    if isinstance(left, Ramp) and isinstance(right, Ramp) and op in ("add", "sub"):
        combined = b.binary(op, left.stride, right.stride)
        return fold(Ramp(fold(Binary(op, left.base, right.base)), fold(combined), left.lanes))
    if isinstance(left, Ramp) and right.type.lanes == 1:
        if op in ("add", "sub"):
            return Ramp(fold(Binary(op, left.base, right)), left.stride, left.lanes)
        if op == "mul":
            return fold(Ramp(fold(Binary(op, left.base, right)), fold(Binary(op, left.stride, right)), left.lanes))
    if isinstance(right, Ramp) and left.type.lanes == 1:
        if op == "add":
            return Ramp(fold(Binary(op, left, right.base)), right.stride, right.lanes)
        if op == "mul":
            return fold(Ramp(fold(Binary(op, left, right.base)), fold(Binary(op, left, right.stride)), right.lanes))
        if op == "sub":
            stride = fold(Binary("sub", Const(0, right.stride.type), right.stride))
            return Ramp(fold(Binary(op, left, right.base)), stride, right.lanes)
    return None


def compare(e: Compare, left: Expr, right: Expr, lanes: int) -> Expr:
    return fold(Compare(e.op, widen(left, lanes), widen(right, lanes)))


def select(condition: Expr, if_true: Expr, if_false: Expr, lanes: int) -> Expr:
    """Return a select with lanes; a scalar condition stays scalar."""
    return fold(Select(condition, widen(if_true, lanes), widen(if_false, lanes)))


def cast(e: Cast, operand: Expr) -> Expr:
    return fold(Cast(Type(e.type.dtype, operand.type.lanes), operand))


def bit_cast(e: BitCast, operand: Expr) -> Expr:
    return BitCast(Type(e.type.dtype, operand.type.lanes), operand)


def call(function: Function, arguments: tuple[Expr, ...], lanes: int) -> Expr:
    return Call(function, tuple(widen(a, lanes) for a in arguments))


def conjunction(masks: tuple[Expr, ...]) -> Expr | None:
    """Return the conjunction of all masks; None if there are none."""
    result: Expr | None = None
    for mask in masks:
        result = mask if result is None else Binary("and", result, mask)
    return result
