"""Expansion of "unroll" loops: one copy of the body an iteration, in order."""

from __future__ import annotations

from collections.abc import Mapping

from opgen.diagnostics import InternalError
from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Barrier, Block, Const, Expr, For, If, Kernel, Let, Stmt, Var
from opgen.loop.walk import expressions, operands, walk, with_expressions, with_operands
from opgen.passes.fold import fold, offset

Values = Mapping[str, Expr]


def unroll(kernel: Kernel) -> Kernel:
    """Replace every "unroll" loop by its iterations.

    for i in 0..2 unroll: s(i)    ->    s(0); s(1)

    The extent must be constant (the start need not be).
    """
    if not any(isinstance(s, For) and s.kind == "unroll" for s in walk(kernel.body)):
        return kernel
    return Kernel(
        kernel.name, kernel.inputs, kernel.outputs, kernel.parameters, expand(kernel.body, {}), kernel.assumptions
    )


def constant_extent(loop: For) -> int | None:
    """The number of iterations, if the bounds show it: two literals, or one expression plus two literals."""
    (start, p), (stop, q) = offset(loop.start), offset(loop.stop)
    return max(0, q - p) if start == stop else None


def expand(s: Stmt, values: Values) -> Stmt:
    """The statement with variables replaced and "unroll" loops expanded."""
    return _Expansion().stmt(s, values)


class _Expansion:
    """One expansion.  What an expression becomes for some values is remembered: iterations share most of it."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[Expr, tuple[str, ...]]] = {}
        self._made: dict[tuple[object, ...], Expr] = {}
        self._kept: list[Values] = []

    def stmt(self, s: Stmt, values: Values) -> Stmt:
        match s:
            case For() if s.kind == "unroll":
                return self._iterations(s, values)
            case Block():
                statements = tuple(self.stmt(p, values) for p in s.statements)
                if all(x is y for x, y in zip(s.statements, statements, strict=True)):
                    return s
                return b.block(statements)
            case Barrier():
                return s
        if values:
            s = with_expressions(s, tuple(self._replace(e, values) for e in expressions(s)))
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
                return s if body is s.body else Alloc(s.buffer, body)
            case _:
                return s

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
        """Put expressions in the place of variables, folding what becomes constant."""
        if isinstance(e, Const):
            return e
        if isinstance(e, Var):
            return values.get(e.name, e)
        key = self._key(e, values)
        if key is None:
            return e
        made = self._made.get(key)
        if made is None:
            new = with_operands(e, tuple([self._replace(o, values) for o in operands(e)]))
            made = self._made[key] = e if new is e else fold(new)
        return made

    def _key(self, e: Expr, values: Values) -> tuple[object, ...] | None:
        """The same for an expression with the same values of its variables; None if it has none that are replaced."""
        key: list[object] = [id(e)]
        replaced = False
        for name in self._variables(e):
            value = values.get(name)
            replaced = replaced or value is not None
            key.append(value.value if isinstance(value, Const) else (id(value),))
        return tuple(key) if replaced else None

    def _variables(self, e: Expr) -> tuple[str, ...]:
        """The names in an expression, each once (and the expression is kept, so that its id stays its own)."""
        found = self._names.get(id(e))
        if found is None:
            if isinstance(e, Var):
                names: tuple[str, ...] = (e.name,)
            else:
                names = tuple(dict.fromkeys(n for o in operands(e) for n in self._variables(o)))
            found = self._names[id(e)] = (e, names)
        return found[1]
