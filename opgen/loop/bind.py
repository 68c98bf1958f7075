"""Specialising a kernel: some of its parameters become constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opgen.diagnostics import InternalError
from opgen.loop import build as b
from opgen.loop.arithmetic import NUMPY
from opgen.loop.nodes import Binary, Buffer, Compare, Const, Expr, If, Kernel, Parameter, Select, Stmt, Unary, Var
from opgen.loop.print import print_expr
from opgen.loop.walk import map_expr, map_stmt


class ImpossibleValueError(InternalError):
    """A value that no call has: outside its parameter's promised interval, or against an assumption of the kernel."""


def bind(kernel: Kernel, values: Mapping[str, int | float | bool]) -> Kernel:
    """Return the kernel for given values of some parameters, which it no longer has.

    Constants are folded where they meet; a branch never taken goes away.  Raises `InternalError` for an unknown
    parameter, and its subclass `ImpossibleValueError` for a value outside its promised interval and for an assumption
    that cannot hold.
    """
    known = {p.name: p for p in kernel.parameters}
    for name in values:
        if name not in known:
            raise InternalError(f"kernel '{kernel.name}' has no parameter '{name}'")
    constants = {name: _constant(known[name], value) for name, value in values.items()}
    bound = _with(kernel, constants)
    _require_possible(kernel, bound)
    return replace(
        bound,
        parameters=tuple(p for p in kernel.parameters if p.name not in values),
        assumptions=tuple(a for a in bound.assumptions if a != b.TRUE),
    )


def in_terms(kernel: Kernel, told: Mapping[str, Expr], least: Mapping[str, int]) -> Kernel:
    """Replace some parameters of a kernel by expressions of others, and promise least values for more of them.

    Raises `InternalError` for an unknown parameter, `ImpossibleValueError` for an assumption that cannot hold.
    """
    known = {p.name: p for p in kernel.parameters}
    for name in (*told, *least):
        if name not in known:
            raise InternalError(f"kernel '{kernel.name}' has no parameter '{name}'")
    promised = [
        *(b.compare("ge", e, low) for name, e in told.items() if (low := known[name].low) is not None),
        *(b.compare("le", e, high) for name, e in told.items() if (high := known[name].high) is not None),
    ]
    bound = _with(kernel, told)
    _require_possible(kernel, bound)
    return replace(
        bound,
        parameters=tuple(
            replace(p, low=_highest(p.low, least.get(p.name))) for p in kernel.parameters if p.name not in told
        ),
        assumptions=tuple(dict.fromkeys(a for a in (*bound.assumptions, *promised) if a != b.TRUE)),
    )


def _with(kernel: Kernel, put: Mapping[str, Expr]) -> Kernel:
    """Return the kernel with expressions in the place of parameters, which it still declares."""

    def expr(n: Expr) -> Expr:
        return put.get(n.name, n) if isinstance(n, Var) else _folded(n)

    def buffers(old: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
        return tuple(replace(o, shape=folded(o.shape), given=None if o.given is None else folded(o.given)) for o in old)

    def folded(dimensions: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(map_expr(expr, e) for e in dimensions)

    return replace(
        kernel,
        inputs=buffers(kernel.inputs),
        outputs=buffers(kernel.outputs),
        body=map_stmt(kernel.body, expr=expr, stmt=_pruned),
        assumptions=tuple(map_expr(expr, a) for a in kernel.assumptions),
    )


def _highest(*numbers: int | None) -> int | None:
    return max((n for n in numbers if n is not None), default=None)


def _require_possible(kernel: Kernel, bound: Kernel) -> None:
    for before, after in zip(kernel.assumptions, bound.assumptions, strict=True):
        if after == b.FALSE:
            raise ImpossibleValueError(f"kernel '{kernel.name}' assumes {print_expr(before)}, which does not hold")


def _constant(p: Parameter, value: int | float | bool) -> Const:
    if p.dtype.is_float:
        return b.const(float(NUMPY[p.dtype.name].type(value)), p.dtype)
    if p.dtype.is_int and int(value) != value:
        raise InternalError(f"parameter '{p.name}' is an integer, not {value}")
    if (
        (p.low is not None and value < p.low)
        or (p.high is not None and value > p.high)
        or not -(2**63) <= value < 2**63
    ):
        low, high = "-inf" if p.low is None else p.low, "inf" if p.high is None else p.high
        raise ImpossibleValueError(f"parameter '{p.name}' is {value}, outside [{low}, {high}]")
    return b.const(value, p.dtype)


def _folded(e: Expr) -> Expr:
    """Return the node again, by the constructor that folds constants."""
    match e:
        case Binary() if e.type == b.TRUE.type and e.op in ("and", "or"):
            new = b.both(e.left, e.right) if e.op == "and" else b.either(e.left, e.right)
        case Binary():
            new = b.binary(e.op, e.left, e.right)
        case Compare():
            new = b.compare(e.op, e.left, e.right)
        case Select():
            new = b.select(e.condition, e.if_true, e.if_false)
        case Unary() if e.op == "not" and e.type == b.TRUE.type:
            new = b.negate(e.operand)
        case Unary() if e.op == "neg" and isinstance(e.operand, Const) and e.type == b.index(0).type:
            new = b.sub(0, e.operand)
        case _:
            return e
    return e if new == e else new


def _pruned(s: Stmt) -> Stmt:
    if isinstance(s, If) and isinstance(s.condition, Const):
        return b.when(s.condition, s.then, s.otherwise)
    return s
