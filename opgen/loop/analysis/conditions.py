"""Decomposition of conditions into parts that must hold, and their consequences for integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from opgen.loop import build as b
from opgen.loop.analysis.polynomial import Polynomial
from opgen.loop.nodes import Binary, Compare, CompareOp, Const, Expr, Select, Unary

OPPOSITE: dict[CompareOp, CompareOp] = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}


def leaves(e: Expr, wanted: bool = True) -> list[tuple[Expr, bool]]:
    """Return parts of a condition with their truth values; all hold if the condition's truth value is `wanted`."""
    match e:
        case Unary() if e.op == "not":
            return leaves(e.operand, not wanted)
        case Binary() if e.op == ("and" if wanted else "or"):
            return leaves(e.left, wanted) + leaves(e.right, wanted)
        case Select() if wanted and e.if_false == b.FALSE:
            return leaves(e.condition) + leaves(e.if_true)
    return [(e, wanted)]


def gaps(e: Expr, wanted: bool, difference: Callable[[Compare], Polynomial]) -> list[Polynomial]:
    """Return polynomials that are not negative if a leaf has the value `wanted`; none if it compares no integers."""
    if isinstance(e, Const):
        return [] if bool(e.value) == wanted else [Polynomial.constant(-1)]
    if not is_integer_comparison(e):
        return []
    gap = difference(e)
    match e.op if wanted else OPPOSITE[e.op]:
        case "le":
            return [gap]
        case "lt":
            return [gap - 1]
        case "ge":
            return [-gap]
        case "gt":
            return [-gap - 1]
        case "eq":
            return [gap, -gap]
    return []


def is_integer_comparison(e: Expr) -> TypeGuard[Compare]:
    return isinstance(e, Compare) and e.left.type.dtype.is_int
