"""version: a nest of its own for calls whose sizes fulfil a condition."""

from __future__ import annotations

from collections.abc import Mapping

from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Binary, Compare, Expr, For, If, Kernel, Let, Load, Stmt, Store, Var
from opgen.loop.walk import free_vars, map_stmt, walk, walk_expr
from opgen.passes.simplify import simplify_stmt
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_loops, rewrite_loops


def version(kernel: Kernel, loop: str, condition: Expr, suffix: str) -> Kernel:
    """Run a copy of a loop where a condition on the kernel's parameters holds, and the loop itself elsewhere.

        for x in 0..n: s(x)      ->      if n == 2*m and m >= 8:
                                           for x_wide in 0..2*m: s(x_wide)
                                         else:
                                           for x in 0..n: s(x)

    In the copy what the condition decides is decided, a parameter that it makes equal to something is replaced by that,
    and loops, names and buffers have the suffix (`wide` here), so that further steps can speak of either.
    """
    require_loops(kernel, "version", [loop])
    unknown = sorted(free_vars(condition) - {p.name for p in kernel.parameters})
    if unknown or any(isinstance(e, Load) for e in walk_expr(condition)):
        what = f"'{unknown[0]}' is no parameter of the kernel" if unknown else "its condition reads a buffer"
        raise ScheduleError(f"version {loop}: {what}", "a condition speaks of sizes, before any work")

    def rewrite(s: For, context: Context) -> Stmt:
        new = _suffixed_names(s, suffix)
        require_fresh(kernel, "version", new.values())
        inside = context.with_condition(condition)
        copy = simplify_stmt(_renamed(s, new, _equal(condition)), inside)
        return If(condition, copy, s)

    return rewrite_loops(kernel, loop, rewrite)


def _equal(condition: Expr) -> dict[str, Expr]:
    """The parameters that a condition makes equal to something that does not contain them."""
    if isinstance(condition, Binary) and condition.op == "and":
        first = _equal(condition.left)
        return first | {n: e for n, e in _equal(condition.right).items() if n not in first}
    if isinstance(condition, Compare) and condition.op == "eq" and isinstance(condition.left, Var):
        name = condition.left.name
        return {} if name in free_vars(condition.right) else {name: condition.right}
    return {}


def _suffixed_names(s: Stmt, suffix: str) -> dict[str, str]:
    """For each name that a statement declares, the copy's."""
    names: dict[str, str] = {}
    for p in walk(s):
        match p:
            case For():
                names[p.var] = f"{p.var}_{suffix}"
            case Let():
                names[p.var.name] = f"{p.var.name}_{suffix}"
            case Alloc():
                names[p.buffer.name] = f"{p.buffer.name}_{suffix}"
    return names


def _renamed(s: Stmt, names: Mapping[str, str], values: Mapping[str, Expr]) -> Stmt:
    """The statement under other names, with values in the place of parameters."""

    def expr(e: Expr) -> Expr:
        if isinstance(e, Var):
            return Var(names[e.name], e.type) if e.name in names else values.get(e.name, e)
        if isinstance(e, Load) and e.buffer in names:
            return Load(names[e.buffer], e.indices, e.dtype, e.mask)
        return e

    def stmt(p: Stmt) -> Stmt:
        match p:
            case For():
                return For(names[p.var], p.start, p.stop, p.body, p.kind)
            case Let():
                return Let(Var(names[p.var.name], p.var.type), p.value, p.body)
            case Alloc():
                buffer = p.buffer
                return Alloc(type(buffer)(names[buffer.name], buffer.dtype, buffer.shape, buffer.space), p.body)
            case Store() if p.buffer in names:
                return Store(names[p.buffer], p.indices, p.value, p.mask)
        return p

    return map_stmt(s, expr=expr, stmt=stmt)
