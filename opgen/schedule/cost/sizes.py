"""Sizes of arrays, if known, and the floating-point operations of an expression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from opgen.loop.nodes import Binary, Buffer, Call, Const, Expr, Load, Store, Unary
from opgen.loop.walk import walk_expr


def elements_of(shape: Sequence[Expr], unknown: int = 0) -> int:
    """Return the number of elements of an array; an unknown dimension counts as `unknown`, by default 0."""
    return prod(int(n.value) if isinstance(n, Const) else unknown for n in shape)


def bytes_of(buffer: Buffer, unknown: int = 0) -> int:
    """Return the bytes of a buffer, with unknown dimensions as in `elements_of`."""
    return buffer.dtype.bytes * elements_of(buffer.shape, unknown)


def element_of(access: Load | Store) -> int:
    """Return the bytes of the element that is read or written."""
    return access.dtype.bytes if isinstance(access, Load) else access.value.type.dtype.bytes


def float_operations(e: Expr) -> Iterator[Binary | Unary | Call]:
    """Yield the floating-point operations in an expression."""
    return (p for p in walk_expr(e) if isinstance(p, Binary | Unary | Call) and p.type.dtype.is_float)
