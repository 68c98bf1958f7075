"""Hypothesis strategies for loop IR: well-typed expressions, statements and kernels (not in bounds, not to be run)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import get_args

from hypothesis import strategies as st

from opgen.dtypes import BOOL, DTYPES, INT64, DType
from opgen.loop import build as b
from opgen.loop.nodes import (
    INDEX,
    Barrier,
    Binary,
    BinaryOp,
    BitCast,
    Block,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Parameter,
    Prefetch,
    Ramp,
    Select,
    Shuffle,
    Space,
    Stmt,
    Store,
    Type,
    Unary,
    Var,
)
from opgen.loop.syntax import FUNCTIONS

SCALARS = tuple(d for d in DTYPES.values() if not d.is_bits)
LANES = (2, 4, 16)
NAMES = ["i", "j", "k", "n", "height", "input", "for", "min", "inf_f32", "x_1", "float32", "true", "_"]
FLOATS = [0.0, -0.0, 1.5, 1e-45, 5e-324, 1e300, math.inf, -math.inf, math.nan, 0.1, -1 / 3, 1e16, 65504.0]
OPERATIONS: dict[str, tuple[BinaryOp, ...]] = {
    "int": ("add", "sub", "mul", "floordiv", "mod", "quot", "rem", "min", "max", "and", "or", "xor", "shl", "shr"),
    "float": ("add", "sub", "mul", "div", "rem", "min", "max"),
    "bool": ("and", "or", "xor"),
}


@dataclass(frozen=True)
class Scope:
    """Names that expressions may use."""

    variables: dict[str, Type] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)

    def fresh(self, draw: st.DrawFn) -> str:
        name = draw(st.sampled_from(NAMES))
        while name in self.variables or name in self.buffers:
            name += "_"
        return name

    def variable(self, name: str, type: Type) -> Scope:
        return replace(self, variables={**self.variables, name: type})

    def buffer(self, buffer: Buffer) -> Scope:
        return replace(self, buffers={**self.buffers, buffer.name: buffer})


def types() -> st.SearchStrategy[Type]:
    return st.builds(Type, st.sampled_from(SCALARS), st.sampled_from((1, 1, *LANES)))


def constants(type: Type) -> st.SearchStrategy[Const]:
    """Constants of a type, odd ones among them."""
    values: dict[str, st.SearchStrategy[int | float | bool]] = {
        "bool": st.booleans(),
        "int": st.integers(max(-4, type.dtype.least), 20) | st.integers(type.dtype.least, type.dtype.greatest),
        "float": st.sampled_from(FLOATS) | st.floats(allow_nan=False),
    }
    return values[type.dtype.kind].map(lambda value: Const(value, type))


@st.composite
def expressions(draw: st.DrawFn, scope: Scope, type: Type, depth: int = 3) -> Expr:
    """An expression of a type over what a scope declares."""
    leaves = [Var(name, t) for name, t in scope.variables.items() if t == type]
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(leaves) | constants(type) if leaves else constants(type))
    shapes = ["select", "cast"]
    shapes += ["bit_cast"] if type.dtype.compute == type.dtype.name and type.dtype != BOOL else []
    shapes += ["binary"] * 3 + ["unary"] if type.dtype.compute == type.dtype.name else []
    shapes += ["compare"] if type.dtype == BOOL else []
    shapes += ["call"] if type.dtype.name in ("float32", "float64") else []
    shapes += ["broadcast", "shuffle"] if type.lanes > 1 else []
    shapes += ["ramp"] if type.lanes > 1 and type.dtype.is_int else []
    shapes += ["load"] if any(b.dtype == type.dtype and b.shape for b in scope.buffers.values()) else []
    return _compound(draw, draw(st.sampled_from(shapes)), scope, type, depth - 1)


def _compound(draw: st.DrawFn, shape: str, scope: Scope, type: Type, depth: int) -> Expr:
    def some(of: Type) -> Expr:
        return draw(expressions(scope, of, depth))

    match shape:
        case "binary":
            return Binary(draw(st.sampled_from(OPERATIONS[type.dtype.kind])), some(type), some(type))
        case "unary":
            return Unary("not" if type.dtype == BOOL else "neg", some(type))
        case "compare":
            of = Type(draw(st.sampled_from([d for d in SCALARS if d.compute == d.name])), type.lanes)
            return Compare(draw(st.sampled_from(get_args(CompareOp))), some(of), some(of))
        case "select":
            return Select(some(Type(BOOL, draw(st.sampled_from((1, type.lanes))))), some(type), some(type))
        case "cast":
            return Cast(type, some(Type(draw(st.sampled_from(SCALARS)), type.lanes)))
        case "bit_cast":
            alike = [d for d in SCALARS if d.bits == type.dtype.bits and d.compute == d.name and d != BOOL]
            return BitCast(type, some(Type(draw(st.sampled_from(alike)), type.lanes)))
        case "call":
            function, arity = draw(st.sampled_from(list(FUNCTIONS.values())))
            return Call(function, tuple(some(type) for _ in range(arity)))
        case "broadcast":
            return Broadcast(some(Type(type.dtype)), type.lanes)
        case "shuffle":
            of = Type(type.dtype, draw(st.sampled_from(LANES)))
            order = draw(st.lists(st.integers(0, 2 * of.lanes - 1), min_size=type.lanes, max_size=type.lanes))
            return Shuffle(some(of), some(of), tuple(order))
        case "ramp":
            return Ramp(some(Type(type.dtype)), some(Type(type.dtype)), type.lanes)
    buffer = draw(st.sampled_from([b for b in scope.buffers.values() if b.dtype == type.dtype and b.shape]))
    return Load(
        buffer.name, *_subscripts(draw, scope, buffer, type.lanes, depth)[:1], type.dtype, _mask(draw, some, type)
    )


def _subscripts(draw: st.DrawFn, scope: Scope, buffer: Buffer, lanes: int, depth: int) -> tuple[tuple[Expr, ...]]:
    """Indices of which at least the last has the lanes."""
    wide = [draw(st.sampled_from((1, lanes))) for _ in buffer.shape[1:]] + [lanes]
    return (tuple(draw(expressions(scope, Type(INT64, w), depth)) for w in wide),)


def _mask(draw: st.DrawFn, some: object, type: Type) -> Expr | None:
    assert callable(some)
    made: Expr | None = some(Type(BOOL, type.lanes)) if draw(st.booleans()) else None
    return made


@st.composite
def statements(draw: st.DrawFn, scope: Scope, depth: int = 3) -> Stmt:
    """A statement over what a scope declares."""
    kinds = ["store"] * 2 + (["for", "if", "let", "alloc", "block", "barrier", "prefetch"] if depth else [])
    match draw(st.sampled_from(kinds)):
        case "for":
            var = scope.fresh(draw)
            start, stop = (draw(expressions(scope, INDEX, 2)) for _ in range(2))
            body = draw(statements(scope.variable(var, INDEX), depth - 1))
            return For(var, start, stop, body, draw(st.sampled_from(get_args(LoopKind))))
        case "if":
            otherwise = draw(st.none() | statements(scope, depth - 1))
            return If(draw(expressions(scope, Type(BOOL), 2)), draw(statements(scope, depth - 1)), otherwise)
        case "let":
            var, type = scope.fresh(draw), draw(types())
            body = draw(statements(scope.variable(var, type), depth - 1))
            return Let(Var(var, type), draw(expressions(scope, type, 2)), body)
        case "alloc":
            buffer = draw(buffers(scope, draw(st.sampled_from(get_args(Space)))))
            return b.alloc(buffer, draw(statements(scope.buffer(buffer), depth - 1)))
        case "block":
            return Block(tuple(draw(st.lists(statements(scope, depth - 1), max_size=3))))
        case "barrier":
            return Barrier()
        case "prefetch":
            buffer = draw(st.sampled_from(list(scope.buffers.values())))
            return Prefetch(buffer.name, tuple(draw(expressions(scope, INDEX, 1)) for _ in buffer.shape))
    return _store(draw, scope)


def _store(draw: st.DrawFn, scope: Scope) -> Store:
    buffer = draw(st.sampled_from(list(scope.buffers.values())))
    lanes = draw(st.sampled_from((1, *LANES))) if buffer.shape else 1
    type = Type(buffer.dtype, lanes)
    indices = _subscripts(draw, scope, buffer, lanes, 1)[0] if buffer.shape else ()
    mask = draw(st.none() | expressions(scope, Type(BOOL, lanes), 1))
    return Store(buffer.name, indices, draw(expressions(scope, type, 3)), mask)


@st.composite
def buffers(draw: st.DrawFn, scope: Scope, space: Space = "global") -> Buffer:
    shape = tuple(draw(st.lists(expressions(scope, INDEX, 1), max_size=3)))
    given = shape[::-1] if space == "global" and draw(st.booleans()) else None
    return Buffer(scope.fresh(draw), draw(st.sampled_from(SCALARS)), shape, space, given)


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    dtype: DType = draw(st.sampled_from([INT64, INT64, *SCALARS]))
    if not dtype.is_int:
        return Parameter(name, dtype)
    return Parameter(name, dtype, draw(st.none() | st.integers(-5, 5)), draw(st.none() | st.integers(6, 100)))


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    """A kernel in which every name is declared and every expression well typed."""
    scope = Scope()
    made: list[Parameter] = []
    for _ in range(draw(st.integers(0, 3))):
        made.append(draw(parameters(scope.fresh(draw))))
        scope = scope.variable(made[-1].name, Type(made[-1].dtype))
    sizes = scope
    arguments: list[Buffer] = []
    for _ in range(draw(st.integers(1, 3))):
        arguments.append(draw(buffers(Scope(sizes.variables, scope.buffers))))
        scope = scope.buffer(arguments[-1])
    split = draw(st.integers(0, len(arguments)))
    assumptions = draw(st.lists(expressions(sizes, Type(BOOL), 2), max_size=2))
    body = draw(statements(scope))
    return Kernel("f", tuple(arguments[:split]), tuple(arguments[split:]), tuple(made), body, tuple(assumptions))
