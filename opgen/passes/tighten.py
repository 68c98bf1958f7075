"""Bounds of loops from conditions on their own variables.

    for r in 0..n:                          for r in max(0, ceildiv(p, d))..min(n, ...):
      if r*d - p >= 0 and ...: s      ->      s

The condition must be the loop's whole body and affine in its variable, with a factor of known sign.  The analysis must
see that the new bounds imply it; else it stays, so that nothing provable becomes unprovable.
"""

from __future__ import annotations

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.polynomial import expression, linear, polynomial
from opgen.loop.nodes import Binary, Compare, Const, Expr, For, If, Kernel, Stmt
from opgen.loop.walk import parts, reads_memory, with_parts
from opgen.passes.decide import EFFORT
from opgen.passes.fold import fold_all
from opgen.passes.scope import entered
from opgen.passes.simplify import simplify_expr
from opgen.passes.unroll import constant_extent


def tighten(kernel: Kernel) -> Kernel:
    """Tighten every serial loop whose body is a condition on it."""
    around: set[int] = set()
    if not _find(kernel.body, around):
        return kernel
    body = _visit(kernel.body, Context.of(kernel), around)
    if body is kernel.body:
        return kernel
    return Kernel(kernel.name, kernel.inputs, kernel.outputs, kernel.parameters, body, kernel.assumptions)


def _find(s: Stmt, around: set[int]) -> bool:
    """Return True if a statement has a loop that may be tightened; adds the identities of statements that have one."""
    found = [_find(p, around) for p in parts(s)]
    if isinstance(s, For) and s.kind == "serial" and isinstance(s.body, If):
        found.append(True)
    if any(found):
        around.add(id(s))
    return any(found)


def _visit(s: Stmt, context: Context, around: set[int]) -> Stmt:
    """Tighten the loops in the statements `around`; no facts are derived for others."""
    if id(s) not in around:
        return s
    new = with_parts(s, tuple(_visit(p, c, around) for p, c in entered(s, context)))
    return tighten_loop(new, context) if isinstance(new, For) else new


def tighten_loop(s: For, context: Context) -> Stmt:
    """Return the loop with parts of its condition turned into bounds, or the same object."""
    if s.kind != "serial" or not isinstance(s.body, If) or s.body.otherwise is not None:
        return s
    start, stop, kept = s.start, s.stop, []
    for part in conjuncts(s.body.condition):
        bounds = _tightened(part, s, start, stop, context)
        if bounds is None:
            kept.append(part)
        else:
            start, stop = bounds
    if start is s.start and stop is s.stop:
        return s
    body = s.body.then
    for part in reversed(kept):
        body = If(part, body)
    new = For(s.var, start, stop, body, s.kind)
    return b.EMPTY if constant_extent(new) == 0 else new


def conjuncts(e: Expr) -> list[Expr]:
    """Return the conditions that are and-ed, left to right."""
    if isinstance(e, Binary) and e.op == "and":
        return conjuncts(e.left) + conjuncts(e.right)
    return [e]


def _tightened(part: Expr, s: For, start: Expr, stop: Expr, context: Context) -> tuple[Expr, Expr] | None:
    form = _at_least_zero(part, s.var)
    if form is None:
        return None
    factor, rest = form
    if _positive(factor) or context.proves(b.compare("gt", factor, 0), EFFORT):
        start = simplify_expr(b.maximum(start, fold_all(b.ceildiv(negative(rest), factor))), context)
    elif _positive(negative(factor)) or context.proves(b.compare("lt", factor, 0), EFFORT):
        last = fold_all(b.floordiv(rest, negative(factor)))
        stop = simplify_expr(b.minimum(stop, fold_all(b.add(last, 1))), context)
    else:
        return None
    return (start, stop) if context.with_loop(s.var, start, stop).proves(part, EFFORT) else None


def _positive(e: Expr) -> bool:
    return isinstance(e, Const) and int(e.value) > 0


def negative(e: Expr) -> Expr:
    return expression(-polynomial(e))


def _at_least_zero(e: Expr, var: str) -> tuple[Expr, Expr] | None:
    """Return (factor, rest) if a condition is `factor*var + rest >= 0`, affine in the variable; else None."""
    if not isinstance(e, Compare) or e.op in ("eq", "ne") or reads_memory(e):
        return None
    left, right = linear(e.left, var), linear(e.right, var)
    if left is None or right is None:
        return None
    if e.op in ("lt", "le"):
        left, right = right, left
    factor, rest = fold_all(b.sub(left[0], right[0])), fold_all(b.sub(left[1], right[1]))
    if e.op in ("lt", "gt"):
        rest = fold_all(b.sub(rest, 1))
    return None if isinstance(factor, Const) and factor.value == 0 else (factor, rest)
