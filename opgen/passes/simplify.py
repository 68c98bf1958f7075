"""Simplification: known values become constants, dead code disappears.

    * integer expressions are folded and like terms collected; min, max, // and % are resolved where bounds decide;
    * conditions that are proved, or disproved, are dropped with the branch that is never taken;
    * loops of no iterations vanish, loops of one become their body (GPU axes stay: they are the launch);
    * names for literals and other names are replaced; names and local buffers that nothing reads vanish.

The result computes the same bits.  `simplify(simplify(k))` is `simplify(k)`; if nothing changes, the same object
returns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import (
    Alloc,
    Barrier,
    Binary,
    Block,
    Check,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Prefetch,
    Stmt,
    Store,
    Var,
)
from opgen.loop.walk import (
    distinct_exprs,
    expressions,
    loaded_buffers,
    map_stmt,
    operands,
    with_expressions,
    with_operands,
)
from opgen.passes.decide import decide
from opgen.passes.fold import fold
from opgen.passes.forward import forwarded
from opgen.passes.sums import collect
from opgen.passes.unroll import constant_extent

Values = Mapping[str, Expr]


def simplify(kernel: Kernel, rounds: int | None = None) -> Kernel:
    """Return the kernel without anything that its parameters' intervals and its assumptions decide.

    Runs until nothing changes, or for `rounds` rounds (the first does nearly everything).
    """
    context = Context.of(kernel)
    while rounds is None or rounds > 0:
        body = simplify_stmt(kernel.body, context)
        if body is kernel.body:
            break
        kernel = dataclasses.replace(kernel, body=body)
        rounds = None if rounds is None else rounds - 1
    return kernel


def simplify_stmt(s: Stmt, context: Context, values: Values | None = None) -> Stmt:
    """Run one round over a statement, with variables replaced by `values` on the way."""
    return _Simplifier().stmt(s, context, {} if values is None else values)


def simplify_expr(e: Expr, context: Context) -> Expr:
    """Return the expression, simplified with known facts."""
    return _Simplifier().expr(e, context, {})


class _Simplifier:
    """One round of simplification.  Results are cached while the place stays the same, as copies share parts."""

    def __init__(self) -> None:
        self._place: tuple[object, object] = (None, None)
        self._found: dict[int, tuple[Expr, Expr]] = {}

    # Expressions ------------------------------------------------------------------------------------

    def expr(self, e: Expr, context: Context, values: Values) -> Expr:
        if isinstance(e, Const):
            return e
        if self._place[0] is not context or self._place[1] is not values:
            self._place, self._found = (context, values), {}
        known = self._found.get(id(e))
        if known is not None:
            return known[1]
        found = self._found
        new = self._inner(e, context, values)
        if isinstance(new, Binary) and new.left.type.dtype.is_int:
            new = collect(new)
        found[id(e)] = (e, new)
        return new

    def _inner(self, e: Expr, context: Context, values: Values) -> Expr:
        if isinstance(e, Const):
            return e
        if isinstance(e, Var):
            return values.get(e.name, e)
        if isinstance(e, Load):
            return self._load(e, context, values)
        arithmetic = isinstance(e, Binary) and e.op in ("add", "sub", "mul")
        visit = self._inner if arithmetic else self.expr
        new = fold(with_operands(e, tuple([visit(o, context, values) for o in operands(e)])))
        return new if arithmetic else decide(new, context)

    def _load(self, e: Load, context: Context, values: Values) -> Expr:
        indices = tuple([self.expr(i, context, values) for i in e.indices])
        mask = None if e.mask is None else self.expr(e.mask, context, values)
        if isinstance(mask, Const):
            if not mask.value:
                return _zero(e)
            return Load(e.buffer, indices, e.dtype)
        if mask is e.mask and all(x is y for x, y in zip(indices, e.indices, strict=True)):
            return e
        return Load(e.buffer, indices, e.dtype, mask)

    # Statements -------------------------------------------------------------------------------------

    def stmt(self, s: Stmt, context: Context, values: Values) -> Stmt:
        match s:
            case Block():
                return self._block(s, context, values)
            case Store():
                return self._store(s, context, values)
            case For():
                return self._loop(s, context, values)
            case If():
                return self._branch(s, context, values)
            case Let():
                return self._let(s, context, values)
            case Alloc():
                return self._alloc(s, context, values)
            case Check():
                return self._check(s, context, values)
            case Prefetch():
                return with_expressions(s, tuple([self.expr(e, context, values) for e in s.indices]))
            case Barrier():
                return s

    def _check(self, s: Check, context: Context, values: Values) -> Stmt:
        new = tuple([self.expr(e, context, values) for e in expressions(s)])
        return b.EMPTY if new[0] == b.TRUE else with_expressions(s, new)

    def _block(self, s: Block, context: Context, values: Values) -> Stmt:
        new = tuple(self.stmt(p, context, values) for p in s.statements)
        if all(x is y and not b.is_empty(x) for x, y in zip(new, s.statements, strict=True)):
            return s
        return b.block(new)

    def _store(self, s: Store, context: Context, values: Values) -> Stmt:
        old = expressions(s)
        new = tuple([self.expr(e, context, values) for e in old])
        if s.mask is not None and isinstance(new[-1], Const):
            if not new[-1].value:
                return b.EMPTY
            return Store(s.buffer, new[:-2], new[-2])
        value = new[len(s.indices)]
        if isinstance(value, Load) and value == Load(s.buffer, new[: len(s.indices)], s.value.type.dtype):
            return b.EMPTY
        return with_expressions(s, new)

    def _loop(self, s: For, context: Context, values: Values) -> Stmt:
        start, stop = self.expr(s.start, context, values), self.expr(s.stop, context, values)
        extent = constant_extent(For(s.var, start, stop, s.body, s.kind))
        if extent == 0:
            return b.EMPTY
        if extent == 1 and "." not in s.kind:
            return self._single(s, start, context, values)
        body = self.stmt(s.body, context.with_loop(s.var, start, stop), values)
        if b.is_empty(body):
            return b.EMPTY
        if start is s.start and stop is s.stop and body is s.body:
            return s
        return For(s.var, start, stop, body, s.kind)

    def _single(self, s: For, start: Expr, context: Context, values: Values) -> Stmt:
        return self.stmt(s.body, context, {**values, s.var: start})

    def _branch(self, s: If, context: Context, values: Values) -> Stmt:
        condition = self.expr(s.condition, context, values)
        if isinstance(condition, Const):
            taken = s.then if condition.value else s.otherwise
            return b.EMPTY if taken is None else self.stmt(taken, context, values)
        opposite = fold(b.negate(condition))
        then = self.stmt(s.then, context.with_condition(condition), values)
        otherwise = None
        if s.otherwise is not None:
            otherwise = self.stmt(s.otherwise, context.with_condition(opposite), values)
            otherwise = None if b.is_empty(otherwise) else otherwise
        if b.is_empty(then):
            return b.EMPTY if otherwise is None else If(opposite, otherwise)
        if condition is s.condition and then is s.then and otherwise is s.otherwise:
            return s
        return If(condition, then, otherwise)

    def _let(self, s: Let, context: Context, values: Values) -> Stmt:
        value = self.expr(s.value, context, values)
        if isinstance(value, (Const, Var)):
            return self.stmt(s.body, context, {**values, s.var.name: value})
        body = self.stmt(s.body, context.with_let(s.var, value), values)
        if not any(isinstance(e, Var) and e.name == s.var.name for e in distinct_exprs(body)):
            return body
        return s if value is s.value and body is s.body else Let(s.var, value, body)

    def _alloc(self, s: Alloc, context: Context, values: Values) -> Stmt:
        old = expressions(s)
        shapes = tuple([self.expr(e, context, values) for e in old])
        body = forwarded(s.buffers, self.stmt(s.body, context.with_buffers(s.buffers), values))
        made = s if all(x is y for x, y in zip(shapes, old, strict=True)) else with_expressions(s, shapes)
        assert isinstance(made, Alloc)
        left = {buffer.name for buffer in s.buffers}
        while unread := left - loaded_buffers(body):  # without its stores, others may become unread
            body = _without_stores(body, unread)
            left -= unread
        if body is s.body and len(left) == len(s.buffers):
            return made
        return b.alloc([buffer for buffer in made.buffers if buffer.name in left], body)


def _without_stores(s: Stmt, names: Container[str]) -> Stmt:
    """Return the statement without the stores to buffers that nothing reads."""
    return map_stmt(s, stmt=lambda p: b.EMPTY if isinstance(p, Store) and p.buffer in names else p)


def _zero(e: Load) -> Expr:
    return b.const(0, e.dtype, e.type.lanes)
