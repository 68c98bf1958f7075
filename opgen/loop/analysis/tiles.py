"""Recognition of "tile" loop nests as instructions of a matrix unit: a tile filled, copied, or multiplied and added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from opgen.dtypes import BFLOAT16, FLOAT32, INT32
from opgen.loop import build as b
from opgen.loop.analysis.polynomial import expression, linear, polynomial
from opgen.loop.nodes import Const, Dot, Expr, For, Load, Stmt, Store, Word
from opgen.loop.walk import free_vars

EDGE = 16
"""Most rows, columns and pairs of a tile."""
PAIR = 4
"""Bytes of two bfloat16, or of a sum."""


@dataclass(frozen=True)
class Region:
    """A rectangle of a buffer: the indices of its first element, and the strides of rows and columns by dimension."""

    buffer: str
    first: tuple[Expr, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def across(self, shape: Sequence[Expr]) -> int | None:
        """Return the number of elements from one column to the next in a buffer of that shape; None if unknown."""
        total = 0
        size: int | None = 1
        for step, extent in zip(reversed(self.columns), reversed(shape), strict=True):
            if step and size is None:
                return None
            total += step * (size or 0)
            size = size * int(extent.value) if size is not None and isinstance(extent, Const) else None
        return total


@dataclass(frozen=True)
class Fill:
    """`rows` by `columns` zeros."""

    rows: int
    columns: int
    target: Region


@dataclass(frozen=True)
class Move:
    """`rows` by `columns` elements from one buffer to another."""

    rows: int
    columns: int
    target: Region
    source: Region


@dataclass(frozen=True)
class Multiply:
    """`target += left @ right`, of `rows` by `depth` and `depth` by `columns` pairs.

    The columns of `left` are those of pairs, or of the first of two bfloat16 next to each other.
    """

    rows: int
    columns: int
    depth: int
    target: Region
    left: Region
    right: Region


Operation: TypeAlias = Fill | Move | Multiply


def operation(s: For) -> Operation | None:
    """Return the operation of a nest of tile loops, given its outermost loop; None if no matrix unit performs it."""
    if s.kind != "tile":
        return None
    loops, body = _loops(s)
    extents = [int(loop.stop.value) for loop in loops if loop.start == Const(0) and isinstance(loop.stop, Const)]
    if len(extents) != len(loops) or not isinstance(body, Store) or body.mask is not None:
        return None
    names = [loop.var for loop in loops]
    target = _region(body.buffer, body.indices, *names[:2]) if len(names) > 1 else None
    if target is None:
        return None
    if len(names) == 2:
        return _copy(body, target, names[0], names[1], extents)
    return _product(body, target, names, extents) if len(names) == 3 else None


def _loops(s: Stmt) -> tuple[list[For], Stmt]:
    loops = []
    while isinstance(s, For) and s.kind == "tile":
        loops.append(s)
        s = s.body
    return loops, s


def _copy(body: Store, target: Region, row: str, column: str, extents: list[int]) -> Fill | Move | None:
    value = body.value
    if isinstance(value, Const) and value == Const(0.0, value.type):
        return Fill(extents[0], extents[1], target)
    if not isinstance(value, Load) or value.mask is not None:
        return None
    source = _region(value.buffer, value.indices, row, column)
    return None if source is None else Move(extents[0], extents[1], target, source)


def _product(body: Store, target: Region, names: list[str], extents: list[int]) -> Multiply | None:
    row, column, depth = names
    value = body.value
    if not isinstance(value, Dot) or value.sum != Load(body.buffer, body.indices, FLOAT32):
        return None
    for one, other in ((value.left, value.right), (value.right, value.left)):
        left, right = _pairs(one, row, depth), _pairs(other, depth, column)
        if left is None or right is None or not isinstance(other, Load):
            continue
        if not _moves(left, column) and not _moves(right, row) and not _moves(target, depth):
            rows, columns, deep = extents
            return Multiply(rows, columns, deep, target, left, right)
    return None


def _moves(region: Region, var: str) -> bool:
    """Return True if the beginning of a region depends on a variable."""
    return any(var in free_vars(i) for i in region.first)


def _pairs(e: Expr, row: str, column: str) -> Region | None:
    """Return the region of pairs in memory: elements of a buffer of pairs, or neighbours in one of bfloat16."""
    match e:
        case Load(dtype=dtype, mask=None) if dtype == INT32:
            return _region(e.buffer, e.indices, row, column)
        case Word((Load(dtype=dtype, mask=None) as low, Load(mask=None) as high)) if dtype == BFLOAT16:
            apart = [expression(polynomial(b.sub(j, i))) for i, j in zip(low.indices, high.indices, strict=True)]
            if low.buffer == high.buffer and apart[-1] == Const(1) and all(a == Const(0) for a in apart[:-1]):
                return _region(low.buffer, low.indices, row, column)
    return None


def _region(buffer: str, indices: tuple[Expr, ...], row: str, column: str) -> Region | None:
    first: list[Expr] = []
    steps: list[tuple[int, int]] = []
    for i in indices:
        along = linear(i, row) if i.type.lanes == 1 else None
        across = None if along is None else linear(along[1], column)
        if along is None or across is None or not isinstance(along[0], Const) or not isinstance(across[0], Const):
            return None
        steps.append((int(along[0].value), int(across[0].value)))
        first.append(across[1])
    return Region(buffer, tuple(first), tuple(s[0] for s in steps), tuple(s[1] for s in steps))


__all__ = ["EDGE", "PAIR", "Fill", "Move", "Multiply", "Operation", "Region", "operation"]
