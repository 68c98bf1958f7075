"""Expressions of literals, attributes and constants, which take the type of their context."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction

from opgen.diagnostics import Span
from opgen.spec.model import model as m
from opgen.spec.model.walk import operands, with_operands


def cast_leaves(expr: m.Expr, to: str) -> m.Expr:
    """Convert a literal expression to a tensor's type: attributes are cast, numbers adapt by themselves."""
    if isinstance(expr, m.AttrValue):
        return m.Convert(to, expr, expr.span)
    if isinstance(expr, m.Operation):
        return dataclasses.replace(expr, left=cast_leaves(expr.left, to), right=cast_leaves(expr.right, to))
    if isinstance(expr, m.Negate):
        return dataclasses.replace(expr, operand=cast_leaves(expr.operand, to))
    if isinstance(expr, m.Apply):
        return dataclasses.replace(expr, argument=cast_leaves(expr.argument, to))
    if isinstance(expr, m.MultiplyAdd):
        return with_operands(expr, tuple(cast_leaves(e, to) for e in operands(expr)))
    if isinstance(expr, m.Reduce) and expr.place is None:
        return dataclasses.replace(expr, body=cast_leaves(expr.body, to))
    if isinstance(expr, m.Conditional):
        return dataclasses.replace(expr, if_true=cast_leaves(expr.if_true, to), if_false=cast_leaves(expr.if_false, to))
    return expr


def numbers(expr: m.Expr, sign: int = 1) -> Iterator[tuple[int | float | Fraction, Span]]:
    """Yield the numbers in a literal expression with their signs; of a constant, the least and the greatest.

    Conditions and subscripts are skipped: they have types of their own.
    """
    match expr:
        case m.Number(value, span) if span is not None:
            yield sign * value, span
        case m.Element(constant, _, span) if span is not None:
            yield from ((value, span) for value in sorted({sign * f(constant.values) for f in (min, max)}))
        case m.Negate():
            yield from numbers(expr.operand, -sign)
        case m.Operation():
            yield from numbers(expr.left)
            yield from numbers(expr.right)
        case m.Apply():
            yield from numbers(expr.argument)
        case m.MultiplyAdd():
            for part in operands(expr):
                yield from numbers(part)
        case m.Reduce():
            yield from numbers(expr.body)
        case m.Conditional():
            yield from numbers(expr.if_true)
            yield from numbers(expr.if_false)
