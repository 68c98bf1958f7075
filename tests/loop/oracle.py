"""Scalar expressions over mathematical integers, evaluated independently of the analysis and the interpreter."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from opgen.loop.nodes import Binary, Compare, Const, Expr, Select, Unary, Var

_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def value(e: Expr, values: Mapping[str, int]) -> int:
    """What an expression is for given values of its variables; ZeroDivisionError where it is undefined."""
    match e:
        case Const():
            return int(e.value)
        case Var():
            return values[e.name]
        case Unary():
            return -value(e.operand, values) if e.op == "neg" else int(not value(e.operand, values))
        case Binary() | Compare():
            return int(_FUNCTIONS[e.op](value(e.left, values), value(e.right, values)))
        case Select():
            chosen = value(e.if_true, values), value(e.if_false, values)
            return chosen[0] if value(e.condition, values) else chosen[1]
    raise AssertionError(f"{e} is no scalar integer expression")
