"""Decisions from known facts: conditions, minima and maxima, quotients within their divisor."""

from __future__ import annotations

from opgen.dtypes import BOOL
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.intervals import Intervals
from opgen.loop.analysis.polynomial import Polynomial, expression, polynomial
from opgen.loop.nodes import INDEX, Binary, Compare, Const, Expr, Var
from opgen.loop.walk import walk_expr
from opgen.passes.fold import fold

EFFORT = 25
"""Limit on the steps of a proof.

A condition that is hard to prove is kept: deeper in the program, among more facts, an access may need it and could not
prove it again.  The limit also keeps simplification fast.
"""


def _sure(condition: Expr, context: Context) -> bool:
    return context.proves(condition, EFFORT)


def decide(e: Expr, context: Context) -> Expr:
    """Return the expression decided by known facts, or the same object."""
    if isinstance(e, Compare):
        return e if _rests_on_quotient(e, context) else _condition(e, context)
    if isinstance(e, Binary) and e.type == INDEX:
        if e.op in ("min", "max"):
            return _extreme(e, context)
        if e.op in ("floordiv", "mod"):
            return _quotient(e, context)
    return e


def _rests_on_quotient(e: Expr, context: Context) -> bool:
    """Return True if a condition is about a name for a quotient by a non-constant.

    Such a condition is easy to prove where the name is new, and hard once more facts are about it, so it stays as a
    fact.
    """
    for n in walk_expr(e):
        value = context.values.get(n.name) if isinstance(n, Var) else None
        if isinstance(value, Binary) and value.op == "floordiv" and not isinstance(value.right, Const):
            return True
    return False


def _condition(e: Compare, context: Context) -> Expr:
    if e.left.type.dtype != INDEX.dtype:
        return e
    if e.type.lanes == 1:
        if _sure(e, context):
            return b.TRUE
        return b.FALSE if _sure(fold(b.negate(e)), context) else e
    lanes = context.with_lanes(e.type.lanes)
    for truth in (True, False):
        if _sure(e if truth else fold(b.negate(e)), lanes):
            return b.const(truth, BOOL, e.type.lanes)
    return e


def _extreme(e: Binary, context: Context) -> Expr:
    if _sure(b.compare("le", e.left, e.right), context):
        return e.left if e.op == "min" else e.right
    if _sure(b.compare("ge", e.left, e.right), context):
        return e.right if e.op == "min" else e.left
    return e


def _quotient(e: Binary, context: Context) -> Expr:
    if _sure(b.compare("ge", e.left, 0), context) and _sure(b.compare("lt", e.left, e.right), context):
        return Const(0) if e.op == "floordiv" else e.left
    if not isinstance(e.right, Const) or e.right.value <= 1:
        return e
    divisor = int(e.right.value)
    low, high = Intervals(dict(context.ranges)).of(polynomial(e.left))
    if low is not None and high is not None and low // divisor == high // divisor:
        whole = low // divisor
        return Const(whole) if e.op == "floordiv" else expression(polynomial(e.left) - whole * divisor)
    return _part(e, divisor, context) if isinstance(e.left, Binary) else e


def _part(e: Binary, divisor: int, context: Context) -> Expr:
    """Return the quotient or remainder of `divisor * q + r`, for a provably smaller r: q, or r."""
    terms = polynomial(e.left).terms
    whole = Polynomial({m: c // divisor for m, c in terms.items() if c // divisor and (c % divisor == 0 or not m)})
    if not whole.terms:
        return e
    rest = expression(polynomial(e.left) - whole * divisor)
    if _sure(b.compare("ge", rest, 0), context) and _sure(b.compare("lt", rest, divisor), context):
        return expression(whole) if e.op == "floordiv" else rest
    return e
