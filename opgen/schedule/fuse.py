"""fuse: two loops into one."""

from __future__ import annotations

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Const, Expr, For, If, Kernel, Let, Load, Stmt
from opgen.loop.walk import expressions, free_vars, walk_expr
from opgen.passes.fold import fold_all
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import extent, require_fresh, require_loops, rewrite_loops


def fuse(kernel: Kernel, outer: str, inner: str, name: str | None = None) -> Kernel:
    """Make one loop of two that are perfectly nested.

        for y in 0..h:                      for y_x in 0..h*w:
          for x in 0..w: s(y, x)      ->      let y = y_x // w
                                              let x = y_x % w
                                              s(y, x)

    Where w may be 0, the loop stands under `if w > 0`.  A condition between the two that does not depend on the outer one
    moves out of both.
    """
    require_loops(kernel, "fuse", [outer, inner])
    fused = name or f"{outer}_{inner}"
    require_fresh(kernel, "fuse", [fused])
    return rewrite_loops(kernel, outer, lambda s, context: _fuse(s, context, inner, fused))


def _fuse(s: For, context: Context, inner: str, name: str) -> Stmt:
    i, guard = _inner(s)
    if not isinstance(i, For) or i.var != inner:
        raise ScheduleError(f"fuse {s.var}: '{inner}' is not the only thing inside it", "reorder the loops first")
    if any(s.var in free_vars(e) for e in expressions(i)):
        raise ScheduleError(f"fuse {s.var}: the bounds of '{inner}' depend on it")
    count, fused = extent(i), b.var(name)
    body = _named(i, fold_all(b.mod(fused, count)), i.body)
    body = _named(s, fold_all(b.floordiv(fused, count)), _proved(s, context, body))
    total = fold_all(b.mul(_clamped(extent(s), context), count))
    _require_serial(s, i)
    loop = For(name, Const(0), total, body)
    positive = b.compare("gt", count, 0)
    guarded = loop if context.proves(positive) else b.when(positive, loop)
    return guarded if guard is None else b.when(guard, guarded)


def _inner(s: For) -> tuple[Stmt, Expr | None]:
    """What stands in a loop, without the conditions around it that are the same for all iterations."""
    body, guard = s.body, None
    while isinstance(body, If) and body.otherwise is None and _is_steady(body.condition, s.var):
        guard = body.condition if guard is None else b.both(guard, body.condition)
        body = body.then
    return body, guard


def _is_steady(e: Expr, var: str) -> bool:
    return var not in free_vars(e) and not any(isinstance(n, Load) for n in walk_expr(e))


def _named(loop: For, quotient: Expr, body: Stmt) -> Stmt:
    return Let(b.var(loop.var), fold_all(b.add(loop.start, quotient)), body)


def _proved(s: For, context: Context, body: Stmt) -> Stmt:
    """The quotient is below its loop's end; said by a condition where the end is not constant."""
    if isinstance(s.stop, Const) and isinstance(s.start, Const):
        return body
    return b.when(b.compare("lt", b.var(s.var), s.stop), body)


def _clamped(count: Expr, context: Context) -> Expr:
    return count if context.proves(b.compare("ge", count, 0)) else b.maximum(count, 0)


def _require_serial(outer: For, inner: For) -> None:
    for loop in (outer, inner):
        if loop.kind != "serial":
            raise ScheduleError(f"fuse {outer.var}: '{loop.var}' is already {loop.kind}", "fuse before")
