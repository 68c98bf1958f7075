"""Expansion of "unroll" loops: one copy of the body for each iteration, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opgen.diagnostics import InternalError
from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Barrier, Block, Const, Expr, For, If, Kernel, Let, Stmt, Store, Var
from opgen.loop.walk import expressions, loops_in, operands, with_expressions, with_operands
from opgen.passes.fold import fold, offset

Values = Mapping[str, Expr]


def unroll(kernel: Kernel) -> Kernel:
    """Replace every "unroll" loop by its iterations.

    for i in 0..2 unroll: s(i)    ->    s(0); s(1)

    The extent must be constant (the start need not be).
    """
    if not any(s.kind == "unroll" for s in loops_in(kernel.body)):
        return kernel
    return Kernel(
        kernel.name, kernel.inputs, kernel.outputs, kernel.parameters, expand(kernel.body, {}), kernel.assumptions
    )


def constant_extent(loop: For) -> int | None:
    """Return the number of iterations, if the bounds show it: two literals, or one expression plus two literals."""
    (start, p), (stop, q) = offset(loop.start), offset(loop.stop)
    return max(0, q - p) if start == stop else None


def expand(s: Stmt, values: Values) -> Stmt:
    """Return the statement with variables replaced and "unroll" loops expanded."""
    unrolled = {p.var for p in loops_in(s) if p.kind == "unroll"}
    return _Expansion(unrolled | set(values)).stmt(s, values)


@dataclass(slots=True)
class _Node:
    """An expression, its variables that may be replaced, and its results by their values."""

    expr: Expr
    names: tuple[str, ...]
    made: dict[object, Expr]


class _Expansion:
    """One expansion.  Results are cached by the values of an expression's variables: iterations share most of them."""

    def __init__(self, replaced: set[str]) -> None:
        self._replaced = replaced
        self._nodes: dict[int, _Node] = {}
        self._kept: list[Values] = []

    def stmt(self, s: Stmt, values: Values) -> Stmt:
        match s:
            case Store():
                return self._store(s, values) if values else s
            case For() if s.kind == "unroll":
                return self._iterations(s, values)
            case Block():
                statements = tuple([self.stmt(p, values) for p in s.statements])
                if all(x is y for x, y in zip(s.statements, statements, strict=True)):
                    return s
                return b.block(statements)
            case Barrier():
                return s
        if values:
            s = with_expressions(s, tuple([self._replace(e, values) for e in expressions(s)]))
        match s:
            case If():
                return self._branch(s, values)
            case For():
                body = self.stmt(s.body, values)
                return s if body is s.body else For(s.var, s.start, s.stop, body, s.kind)
            case Let():
                body = self.stmt(s.body, values)
                return s if body is s.body else Let(s.var, s.value, body)
            case Alloc():
                body = self.stmt(s.body, values)
                return s if body is s.body else b.alloc(s.buffers, body)
            case _:
                return s

    def _store(self, s: Store, values: Values) -> Stmt:
        indices = tuple([self._replace(i, values) for i in s.indices])
        value = self._replace(s.value, values)
        mask = None if s.mask is None else self._replace(s.mask, values)
        if value is s.value and mask is s.mask and all(x is y for x, y in zip(indices, s.indices, strict=True)):
            return s
        return Store(s.buffer, indices, value, mask)

    def _iterations(self, loop: For, values: Values) -> Stmt:
        start = self._replace(loop.start, values)
        extent = constant_extent(For(loop.var, start, self._replace(loop.stop, values), loop.body))
        if extent is None:
            raise InternalError(f"the loop '{loop.var}' is to be unrolled, and its extent is not constant")
        copies = [{**values, loop.var: fold(b.add(start, i))} for i in range(extent)]
        self._kept += copies
        return b.block(self.stmt(loop.body, copy) for copy in copies)

    def _branch(self, s: If, values: Values) -> Stmt:
        if isinstance(s.condition, Const):
            taken = s.then if s.condition.value else s.otherwise
            return b.EMPTY if taken is None else self.stmt(taken, values)
        then = self.stmt(s.then, values)
        otherwise = None if s.otherwise is None else self.stmt(s.otherwise, values)
        return s if then is s.then and otherwise is s.otherwise else If(s.condition, then, otherwise)

    def _replace(self, e: Expr, values: Values) -> Expr:
        """Replace variables by expressions, and fold results that become constant."""
        if isinstance(e, Const):
            return e
        if isinstance(e, Var):
            return values.get(e.name, e)
        node = self._nodes.get(id(e)) or self._node(e)
        if not node.names:
            return e
        given = [values.get(name) for name in node.names]
        key = tuple([v.value if isinstance(v, Const) else (id(v),) for v in given])
        made = node.made.get(key)
        if made is None:
            new = with_operands(e, tuple([self._replace(o, values) for o in operands(e)]))
            made = node.made[key] = e if new is e else fold(new)
        return made

    def _node(self, e: Expr) -> _Node:
        """Return the cache entry of an expression (which is kept alive, so that its id stays unique)."""
        names: dict[str, None] = {}
        for o in operands(e):
            if isinstance(o, Var):
                if o.name in self._replaced:
                    names[o.name] = None
            elif not isinstance(o, Const):
                names |= dict.fromkeys((self._nodes.get(id(o)) or self._node(o)).names)
        node = self._nodes[id(e)] = _Node(e, tuple(names), {})
        return node
