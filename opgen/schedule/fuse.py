"""fuse: two loops into one."""

from __future__ import annotations

from typing import Annotated

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Const, Expr, For, If, Kernel, Let, Stmt
from opgen.loop.walk import expressions, free_vars, reads_memory
from opgen.passes.fold import fold_all
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import extent, require_fresh, require_independent, require_loops, rewrite_loops
from opgen.schedule.values import LoopName, Made

Wrapper = Let | If


@primitive("loops", "fuse n, y -> n_y")
class Fuse(Step):
    """Makes one loop of two."""

    outer: LoopName
    inner: LoopName
    name: Annotated[str, Made("{outer}_{inner}")]

    def run(self, kernel: Kernel) -> Kernel:
        return fuse(kernel, self.outer, self.inner, self.name)


def fuse(kernel: Kernel, outer: str, inner: str, name: str) -> Kernel:
    """Make one loop of an outer loop and an inner one that is its whole body, except for names and conditions between.

        for y in 0..h:                      for y_x in 0..h*w:
          for x in 0..w: s(y, x)      ->      let y = y_x // w
                                              let x = y_x % w
                                              s(y, x)

    If w may be 0, the loop is under `if w > 0`.  If the outer loop is parallel or bound to a GPU axis, so is the
    result, and the inner loop must be independent.
    """
    require_loops(kernel, "fuse", [outer, inner])
    require_fresh(kernel, "fuse", [name])
    return rewrite_loops(kernel, outer, lambda s, context: _fuse(s, context, inner, name))


def _fuse(s: For, context: Context, inner: str, name: str) -> Stmt:
    wrappers, i = _unwrapped(s.body)
    if not isinstance(i, For) or i.var != inner:
        raise ScheduleError(f"fuse {s.var}: '{inner}' is not the only thing inside it", "reorder the loops first")
    _require_kinds(s, i, wrappers, context)
    names = {s.var} | {w.var.name for w in wrappers if isinstance(w, Let)}
    if any(names & free_vars(e) for e in expressions(i)):
        raise ScheduleError(f"fuse {s.var}: the bounds of '{inner}' depend on it")
    count, fused = extent(i), b.var(name)
    body: Stmt = Let(b.var(i.var), fold_all(b.add(i.start, b.mod(fused, count))), i.body)
    for w in reversed(wrappers):
        body = If(w.condition, body) if isinstance(w, If) else Let(w.var, w.value, body)
    body = Let(b.var(s.var), fold_all(b.add(s.start, b.floordiv(fused, count))), _in_range(s, body))
    total = fold_all(b.mul(_clamped(extent(s), context), count))
    loop = For(name, Const(0), total, body, s.kind)
    positive = b.compare("gt", count, 0)
    return loop if context.proves(positive) else b.when(positive, loop)


def _unwrapped(s: Stmt) -> tuple[list[Wrapper], Stmt]:
    """Return the names and conditions around a statement, outermost first, and the statement within."""
    wrappers: list[Wrapper] = []
    while True:
        if isinstance(s, If) and s.otherwise is None and _is_fixed(s.condition):
            wrappers.append(s)
            s = s.then
        elif isinstance(s, Let) and _is_fixed(s.value):
            wrappers.append(s)
            s = s.body
        else:
            return wrappers, s


def _is_fixed(e: Expr) -> bool:
    """Return True if an expression loads nothing: its value is the same however often it is evaluated."""
    return not reads_memory(e)


def _require_kinds(outer: For, inner: For, wrappers: list[Wrapper], context: Context) -> None:
    if inner.kind != "serial" or outer.kind in ("unroll", "vector"):
        loop = inner if inner.kind != "serial" else outer
        raise ScheduleError(f"fuse {outer.var}: '{loop.var}' is already {loop.kind}", "fuse before")
    if outer.kind != "serial":
        context = context.with_loop(outer.var, outer.start, outer.stop)
        for w in wrappers:
            context = context.with_condition(w.condition) if isinstance(w, If) else context.with_let(w.var, w.value)
        require_independent(inner, context, "fuse")


def _in_range(s: For, body: Stmt) -> Stmt:
    """Guard a body by the end of its loop, which the quotient may pass unless the bounds are constant."""
    if isinstance(s.stop, Const) and isinstance(s.start, Const):
        return body
    return b.when(b.compare("lt", b.var(s.var), s.stop), body)


def _clamped(count: Expr, context: Context) -> Expr:
    return count if context.proves(b.compare("ge", count, 0)) else b.maximum(count, 0)
