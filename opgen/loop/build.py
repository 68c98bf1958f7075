"""Constructors for loop IR that coerce Python numbers and fold trivial constants."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from opgen.dtypes import BOOL, INT64, DType
from opgen.loop.nodes import (
    INDEX,
    Alloc,
    Barrier,
    Binary,
    BinaryOp,
    BitCast,
    Block,
    Buffer,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    For,
    If,
    Let,
    Select,
    Stmt,
    Store,
    Type,
    Unary,
    Var,
)

Operand = Expr | int

TRUE = Const(True, Type(BOOL))
FALSE = Const(False, Type(BOOL))


@lru_cache(maxsize=4096, typed=True)
def integer(value: int) -> Const:
    """Return an int64 literal; equal ones are mostly the same object."""
    return Const(value)


def index(value: Operand) -> Expr:
    """Return an int64 expression; a Python int becomes a constant."""
    return integer(value) if isinstance(value, int) else value


def var(name: str) -> Var:
    return Var(name, INDEX)


def const(value: int | float | bool, dtype: DType, lanes: int = 1) -> Const:
    """Return a literal of a type, with the Python type that suits it."""
    convert = {"bool": bool, "int": int, "float": float}[dtype.kind]
    return Const(convert(value), Type(dtype, lanes))


def is_const(e: Expr, value: int | float | bool | None = None) -> bool:
    return isinstance(e, Const) and (value is None or e.value == value)


def _both_ints(a: Expr, b: Expr) -> tuple[int, int] | None:
    if isinstance(a, Const) and isinstance(b, Const) and a.type == b.type == INDEX:
        return int(a.value), int(b.value)
    return None


def add(left: Operand, right: Operand) -> Expr:
    a, b = index(left), index(right)
    if ints := _both_ints(a, b):
        return integer(ints[0] + ints[1])
    if a.type.dtype.is_int and is_const(a, 0):
        return b
    if b.type.dtype.is_int and is_const(b, 0):
        return a
    return Binary("add", a, b)


def sub(left: Operand, right: Operand) -> Expr:
    a, b = index(left), index(right)
    if ints := _both_ints(a, b):
        return integer(ints[0] - ints[1])
    if b.type.dtype.is_int and is_const(b, 0):
        return a
    return Binary("sub", a, b)


def mul(left: Operand, right: Operand) -> Expr:
    a, b = index(left), index(right)
    if ints := _both_ints(a, b):
        return integer(ints[0] * ints[1])
    if a.type.dtype.is_int:
        if is_const(a, 1) or is_const(b, 0):
            return b
        if is_const(b, 1) or is_const(a, 0):
            return a
    return Binary("mul", a, b)


def floordiv(left: Operand, right: Operand) -> Expr:
    a, b = index(left), index(right)
    ints = _both_ints(a, b)
    if ints and ints[1] != 0:
        return Const(ints[0] // ints[1], INDEX)
    return a if is_const(b, 1) else Binary("floordiv", a, b)


def mod(left: Operand, right: Operand) -> Expr:
    a, b = index(left), index(right)
    ints = _both_ints(a, b)
    if ints and ints[1] != 0:
        return Const(ints[0] % ints[1], INDEX)
    return Const(0) if is_const(b, 1) else Binary("mod", a, b)


def ceildiv(left: Operand, right: Operand) -> Expr:
    """Return the quotient rounded up; the divisor is positive."""
    a, b = index(left), index(right)
    return a if is_const(b, 1) else floordiv(add(a, sub(b, 1)), b)


def minimum(left: Operand, right: Operand) -> Expr:
    a, b = index(left), index(right)
    if ints := _both_ints(a, b):
        return Const(min(ints), INDEX)
    return a if a == b else Binary("min", a, b)


def maximum(left: Operand, right: Operand) -> Expr:
    a, b = index(left), index(right)
    if ints := _both_ints(a, b):
        return Const(max(ints), INDEX)
    return a if a == b else Binary("max", a, b)


def binary(op: BinaryOp, a: Expr, b: Expr) -> Expr:
    """Return a binary operation by its name, folded where the integer constructors fold."""
    fold = {"add": add, "sub": sub, "mul": mul, "floordiv": floordiv, "mod": mod}
    if a.type == INDEX and op in fold:
        return fold[op](a, b)
    if a.type == INDEX and op in ("min", "max"):
        return minimum(a, b) if op == "min" else maximum(a, b)
    return Binary(op, a, b)


_HOLDS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def compare(op: CompareOp, left: Operand, right: Operand) -> Expr:
    a, b = index(left), index(right)
    if ints := _both_ints(a, b):
        return TRUE if _HOLDS[op](*ints) else FALSE
    return Compare(op, a, b)


def both(a: Expr, b: Expr) -> Expr:
    if a == TRUE or b == FALSE:
        return b
    if b == TRUE or a == FALSE:
        return a
    return Binary("and", a, b)


def all_of(conditions: Iterable[Expr]) -> Expr:
    """Return all of some conditions together; true if there are none."""
    together: Expr = TRUE
    for c in conditions:
        together = both(together, c)
    return together


def either(a: Expr, b: Expr) -> Expr:
    if a == FALSE or b == TRUE:
        return b
    if b == FALSE or a == TRUE:
        return a
    return Binary("or", a, b)


def negate(a: Expr) -> Expr:
    if isinstance(a, Const):
        return FALSE if a.value else TRUE
    return Unary("not", a)


def select(condition: Expr, if_true: Expr, if_false: Expr) -> Expr:
    if isinstance(condition, Const):
        return if_true if condition.value else if_false
    return if_true if if_true == if_false else Select(condition, if_true, if_false)


def cast(dtype: DType, e: Expr) -> Expr:
    return e if e.type.dtype == dtype else Cast(Type(dtype, e.type.lanes), e)


def bit_cast(dtype: DType, e: Expr) -> Expr:
    """Return the bits of a value as another type of the same width; for integers this is a cast."""
    if e.type.dtype == dtype or (dtype.is_int and e.type.dtype.is_int):
        return cast(dtype, e)
    return BitCast(Type(dtype, e.type.lanes), e)


def block(statements: Iterable[Stmt]) -> Stmt:
    """Return the statements in order, flattened; a single one is returned as it is."""
    flat: list[Stmt] = []
    for s in statements:
        flat.extend(s.statements if isinstance(s, Block) else (s,))
    return flat[0] if len(flat) == 1 else Block(tuple(flat))


EMPTY = Block(())


def alloc(buffers: Buffer | Iterable[Buffer], body: Stmt) -> Stmt:
    """Put buffers around a statement, the first outermost; those on the heap together."""
    made = body
    together: tuple[Buffer, ...] = ()
    for buffer in reversed((buffers,) if isinstance(buffers, Buffer) else tuple(buffers)):
        if buffer.space == "heap":
            together = (buffer, *together)
        else:
            made = Alloc((buffer,), _around(together, made))
            together = ()
    return _around(together, made)


def _around(heap: tuple[Buffer, ...], body: Stmt) -> Stmt:
    """Put buffers on the heap around a statement, together with those that it begins with."""
    if not heap:
        return body
    if isinstance(body, Alloc) and body.space == "heap":
        return Alloc((*heap, *body.buffers), body.body)
    return Alloc(heap, body)


def is_empty(s: Stmt | None) -> bool:
    return s is None or (isinstance(s, Block) and not s.statements)


def when(condition: Expr, then: Stmt, otherwise: Stmt | None = None) -> Stmt:
    if isinstance(condition, Const):
        return then if condition.value else (otherwise or EMPTY)
    return If(condition, then, otherwise)


__all__ = [
    "EMPTY",
    "FALSE",
    "INT64",
    "TRUE",
    "Alloc",
    "Barrier",
    "For",
    "Let",
    "Store",
    "add",
    "binary",
    "block",
    "both",
    "cast",
    "ceildiv",
    "compare",
    "const",
    "either",
    "floordiv",
    "index",
    "integer",
    "is_const",
    "is_empty",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "negate",
    "select",
    "sub",
    "var",
    "when",
]
