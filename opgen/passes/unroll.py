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


def replace(e: Expr, values: Values) -> Expr:
    """Put expressions in the place of variables, folding what becomes constant."""
    if isinstance(e, Var):
        return values.get(e.name, e)
    if isinstance(e, Const):
        return e
    new = with_operands(e, tuple(replace(o, values) for o in operands(e)))
    return e if new is e else fold(new)


def expand(s: Stmt, values: Values) -> Stmt:
    """The statement with variables replaced and "unroll" loops expanded."""
    match s:
        case For() if s.kind == "unroll":
            return _iterations(s, values)
        case Block():
            statements = tuple(expand(p, values) for p in s.statements)
            if all(x is y for x, y in zip(s.statements, statements, strict=True)):
                return s
            return b.block(statements)
        case Barrier():
            return s
    if values:
        s = with_expressions(s, tuple(replace(e, values) for e in expressions(s)))
    match s:
        case If():
            return _branch(s, values)
        case For():
            body = expand(s.body, values)
            return s if body is s.body else For(s.var, s.start, s.stop, body, s.kind)
        case Let():
            body = expand(s.body, values)
            return s if body is s.body else Let(s.var, s.value, body)
        case Alloc():
            body = expand(s.body, values)
            return s if body is s.body else Alloc(s.buffer, body)
        case _:
            return s


def _iterations(loop: For, values: Values) -> Stmt:
    start = replace(loop.start, values)
    extent = constant_extent(For(loop.var, start, replace(loop.stop, values), loop.body))
    if extent is None:
        raise InternalError(f"the loop '{loop.var}' is to be unrolled, and its extent is not constant")
    return b.block(expand(loop.body, {**values, loop.var: fold(b.add(start, i))}) for i in range(extent))


def _branch(s: If, values: Values) -> Stmt:
    if isinstance(s.condition, Const):
        taken = s.then if s.condition.value else s.otherwise
        return b.EMPTY if taken is None else expand(taken, values)
    then = expand(s.then, values)
    otherwise = None if s.otherwise is None else expand(s.otherwise, values)
    return s if then is s.then and otherwise is s.otherwise else If(s.condition, then, otherwise)
