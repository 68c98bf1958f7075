"""How large arrays are, as far as their sizes are known, and how much floating-point arithmetic an expression is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from opgen.loop.nodes import Binary, Buffer, Call, Const, Expr, Load, Store, Unary
from opgen.loop.walk import walk_expr


def elements_of(shape: Sequence[Expr], unknown: int = 0) -> int:
    """The elements of an array; each dimension whose size is not known counts as `unknown`: the default gives 0."""
    return prod(int(n.value) if isinstance(n, Const) else unknown for n in shape)


def bytes_of(buffer: Buffer, unknown: int = 0) -> int:
    """The bytes of a buffer, its dimensions as in `elements_of`."""
    return buffer.dtype.bytes * elements_of(buffer.shape, unknown)


def element_of(access: Load | Store) -> int:
    """The bytes of an element that is read or written."""
    return access.dtype.bytes if isinstance(access, Load) else access.value.type.dtype.bytes


def float_operations(e: Expr) -> Iterator[Binary | Unary | Call]:
    """The floating-point operations in an expression."""
    return (p for p in walk_expr(e) if isinstance(p, Binary | Unary | Call) and p.type.dtype.is_float)
