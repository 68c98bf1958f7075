"""Short forms of loop IR for formulas of floats and integer elements, in as many lanes as their operands."""

from __future__ import annotations

from collections.abc import Sequence

from opgen.loop import build as b
from opgen.loop.nodes import Binary, Call, Compare, CompareOp, Expr, Function, Select


def number(value: float, like: Expr) -> Expr:
    return b.const(value, like.type.dtype, like.type.lanes)


def call(function: Function, x: Expr) -> Expr:
    return Call(function, (x,))


def add(x: Expr, y: Expr) -> Expr:
    return Binary("add", x, y)


def sub(x: Expr, y: Expr) -> Expr:
    return Binary("sub", x, y)


def mul(x: Expr, y: Expr) -> Expr:
    return Binary("mul", x, y)


def div(x: Expr, y: Expr) -> Expr:
    return Binary("div", x, y)


def where(op: CompareOp, x: Expr, bound: float, then: Expr, otherwise: Expr) -> Expr:
    return Select(Compare(op, x, number(bound, x)), then, otherwise)


def fma(x: Expr, y: Expr, z: Expr) -> Expr:
    return Call("fma", (x, y, z))


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Return the polynomial of x with these coefficients, that of its constant first, from the highest power down."""
    value = number(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        value = fma(value, x, number(c, x))
    return value
