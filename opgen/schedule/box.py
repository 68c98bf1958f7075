"""Bounding boxes of a buffer's accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Binary, Buffer, Const, Expr, For, Let, Load, Space, Stmt, Store
from opgen.loop.walk import expressions, free_vars, map_stmt, parts, substitute_expr, walk_expr
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify_expr
from opgen.schedule.cost.sizes import bytes_of

Indices = tuple[Expr, ...]
Access = tuple[Indices, tuple[For, ...]]
"""Indices of an access, and the loops around it, outermost first."""

SMALL: tuple[Space, ...] = ("stack", "register")
"""Spaces whose buffers have constant sizes."""
LARGEST = 1 << 18
"""Largest size in bytes of a buffer in one of these spaces."""


def is_too_large(buffer: Buffer) -> bool:
    """Return True if a stack or register buffer is larger than `LARGEST` bytes."""
    size = bytes_of(buffer, 1)
    return buffer.space in SMALL and size > LARGEST


@dataclass(frozen=True)
class Box:
    """First index and extent of each dimension.  `most` holds upper bounds of the extents, constants where possible."""

    low: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    most: tuple[Expr, ...] = ()

    def within(self, shape: Indices, context: Context) -> Box:
        """Return the part of the box inside a buffer of shape `shape`."""
        low = tuple(_inside(at, b.compare("ge", at, 0), b.maximum(at, 0), context) for at in self.low)
        extents = []
        for at, begin, extent, size in zip(self.low, low, self.extents, shape, strict=True):
            end = b.add(at, extent)
            end = _inside(end, b.compare("le", end, size), b.minimum(end, size), context)
            extents.append(simplify_expr(b.maximum(b.sub(end, begin), 0), context))
        return Box(low, tuple(extents))

    @staticmethod
    def covered(places: Sequence[Indices], loops: Mapping[str, int | None]) -> bool:
        """Return True if the accesses at `places`, over some loops, fill a whole box.

        Each dimension must have loops of its own, and these (given with their extents where constant) must count
        without gaps.  Several places must form a small box; the loops count in units of it.
        """
        small = _small_box(places)
        if small is None:
            return False
        seen: set[str] = set()
        for i, unit in zip(places[0], small, strict=True):
            inner = free_vars(i) & set(loops)
            if inner & seen or not _counts(i, {n: loops[n] for n in inner}, unit):
                return False
            seen |= inner
        return True


def _inside(e: Expr, condition: Expr, clipped: Expr, context: Context) -> Expr:
    return e if context.proves(condition) else simplify_expr(clipped, context)


def _small_box(places: Sequence[Indices]) -> list[int] | None:
    """Return the sizes of the box that consists of exactly these places; None if they are not such a box.

    The places must differ by constants.
    """
    apart: set[tuple[int, ...]] = set()
    for indices in places:
        differences = [fold_all(b.sub(i, first)) for i, first in zip(indices, places[0], strict=True)]
        values = tuple(int(d.value) for d in differences if isinstance(d, Const))
        if len(values) < len(differences):
            return None
        apart.add(values)
    sizes = [max(column) - min(column) + 1 for column in zip(*apart, strict=True)]
    return sizes if prod(sizes) == len(apart) else None


def _counts(e: Expr, loops: Mapping[str, int | None], unit: int) -> bool:
    """Return True if an index takes values exactly `unit` apart: `a*16 + b` with 0 <= b < 16 does by 1, for every a."""
    steps: list[tuple[int, str]] = []
    for var in loops:
        form = linear(e, var)
        if form is None or not isinstance(form[0], Const):
            return False
        steps.append((int(form[0].value), var))
    wanted: int | None = unit
    for factor, var in sorted(steps):
        if factor != wanted:
            return False
        extent = loops[var]
        wanted = None if extent is None else factor * extent
    return True


def accesses(s: Stmt, buffer: str, around: tuple[For, ...] = ()) -> list[Access]:
    """Return all loads and stores of a buffer in a statement; values replace the names of `let`s in their indices."""
    found: list[Access] = []
    for e in expressions(s):
        found += [(n.indices, around) for n in walk_expr(e) if isinstance(n, Load) and n.buffer == buffer]
    if isinstance(s, Store) and s.buffer == buffer:
        found.append((s.indices, around))
    inner = (*around, s) if isinstance(s, For) else around
    for p in parts(s):
        found += accesses(p, buffer, inner)
    if isinstance(s, Let):
        values = {s.var.name: s.value}
        found = [(tuple(substitute_expr(i, values) for i in indices), loops) for indices, loops in found]
    return found


def bounding_box(found: Sequence[Access], context: Context) -> Box | None:
    """Return the box over all iterations of the loops around the accesses.

    None if an index is not affine in one of the loops, or has lanes, as in blocks transposed in registers.
    """
    if any(i.type.lanes > 1 for indices, _ in found for i in indices):
        return None
    lows: list[list[Expr]] = []
    highs: list[list[Expr]] = []
    known: dict[tuple[Expr, int], tuple[Expr, Expr] | None] = {}
    for indices, loops in found:
        inner = context
        for loop in loops:
            inner = inner.with_loop(loop.var, loop.start, loop.stop)
        for i in indices:
            if (i, id(loops)) not in known:  # many accesses are in the same loops and share indices
                known[i, id(loops)] = _range(simplify_expr(i, inner), loops, context)
        ends = [known[i, id(loops)] for i in indices]
        if any(end is None for end in ends):
            return None
        lows.append([end[0] for end in ends if end is not None])
        highs.append([end[1] for end in ends if end is not None])
    low = tuple(_least(list(column), context) for column in zip(*lows, strict=True))
    high = tuple(_greatest(list(column), context) for column in zip(*highs, strict=True))
    extents = (simplify_expr(b.add(b.sub(h, at), 1), context) for at, h in zip(low, high, strict=True))
    return Box(low, tuple(simplify_expr(b.maximum(e, 0), context) for e in extents))


def covering_box(found: Sequence[Access], shape: Indices, context: Context) -> Box:
    """Return the bounding box; where it is not known to lie inside the buffer, the whole of a dimension.

    All accesses are in bounds.  A box of constant extent that may reach beyond the buffer is therefore clipped.
    """
    places: list[tuple[Expr, Expr, Expr]] = [(Const(0), size, size) for size in shape]
    for d, size in enumerate(shape):
        box = bounding_box([((indices[d],), loops) for indices, loops in found], context)
        if box is None:
            continue
        low, extent = box.low[0], box.extents[0]
        end = fold_all(b.add(low, extent))
        if not context.proves(b.compare("ge", low, 0)):
            if not isinstance(extent, Const):
                continue
            low = simplify_expr(b.maximum(low, 0), context)
            left = simplify_expr(b.maximum(b.sub(b.minimum(end, size), low), 0), context)
            places[d] = low, left, fold_all(b.minimum(extent, size))
        elif context.proves(b.compare("le", end, size)):
            places[d] = low, extent, extent
        elif isinstance(extent, Const):
            left = simplify_expr(b.maximum(b.minimum(extent, b.sub(size, low)), 0), context)
            places[d] = low, left, extent
    return Box(tuple(p[0] for p in places), tuple(p[1] for p in places), tuple(p[2] for p in places))


def _range(e: Expr, loops: tuple[For, ...], context: Context) -> tuple[Expr, Expr] | None:
    """Return the least and greatest value over the iterations of the loops (which all run at least once)."""
    inner = {loop.var for loop in loops}
    if isinstance(e, Binary) and free_vars(e) & inner and not _is_linear(e, inner):
        return _combined(e, loops, context)
    low = high = e
    for loop in reversed(loops):
        last = fold_all(b.sub(loop.stop, 1))
        new_low = _at_end(low, loop.var, loop.start, last, context)
        new_high = _at_end(high, loop.var, last, loop.start, context)
        if new_low is None or new_high is None:
            return None
        low, high = new_low, new_high
    return simplify_expr(low, context), simplify_expr(high, context)


def _is_linear(e: Expr, names: set[str]) -> bool:
    return all(linear(e, name) is not None for name in names & free_vars(e))


def _combined(e: Binary, loops: tuple[For, ...], context: Context) -> tuple[Expr, Expr] | None:
    """Return the range of a sum of quotients and remainders, from the ranges of its operands; it may be too wide."""
    divisor = int(e.right.value) if isinstance(e.right, Const) else 0
    if e.op == "mod" and divisor > 0:
        return Const(0), Const(divisor - 1)
    left, right = _range(e.left, loops, context), _range(e.right, loops, context)
    if left is None or right is None:
        return None
    match e.op:
        case "add":
            ends = b.add(left[0], right[0]), b.add(left[1], right[1])
        case "sub":
            ends = b.sub(left[0], right[1]), b.sub(left[1], right[0])
        case "mul" if divisor > 0:
            ends = b.mul(left[0], divisor), b.mul(left[1], divisor)
        case "floordiv" if divisor > 0:
            ends = b.floordiv(left[0], divisor), b.floordiv(left[1], divisor)
        case _:
            return None
    return simplify_expr(ends[0], context), simplify_expr(ends[1], context)


def _at_end(e: Expr, var: str, if_rising: Expr, if_falling: Expr, context: Context) -> Expr | None:
    form = linear(e, var)
    if form is None:
        return None
    factor, rest = form
    if context.proves(b.compare("ge", factor, 0)) or (isinstance(factor, Const) and factor.value >= 0):
        return fold_all(b.add(b.mul(factor, if_rising), rest))
    if context.proves(b.compare("le", factor, 0)) or (isinstance(factor, Const) and factor.value <= 0):
        return fold_all(b.add(b.mul(factor, if_falling), rest))
    return None


def _least(values: list[Expr], context: Context) -> Expr:
    result = values[0]
    for v in dict.fromkeys(values[1:]):
        result = simplify_expr(b.minimum(result, v), context)
    return result


def _greatest(values: list[Expr], context: Context) -> Expr:
    result = values[0]
    for v in dict.fromkeys(values[1:]):
        result = simplify_expr(b.maximum(result, v), context)
    return result


def at_most(extent: Expr, context: Context) -> Expr:
    """Return a constant upper bound of the extent, if one is known, else the extent.

    A copy of that size may read more than is needed.
    """
    high = None if isinstance(extent, Const) else context.interval(extent)[1]
    return extent if high is None else Const(max(0, high))


def redirected(
    s: Stmt, name: str, local: str, low: tuple[Expr, ...], context: Context, order: Sequence[int] | None = None
) -> Stmt:
    """Redirect accesses of a buffer to its copy, which begins at `low` and has its dimensions in an `order`."""

    @cache
    def apart(i: Expr, at: Expr) -> Expr:
        return simplify_expr(fold_all(b.sub(i, at)), context)

    def moved(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        places = tuple(apart(i, at) for i, at in zip(indices, low, strict=True))
        return places if order is None else tuple(places[d] for d in order)

    def expr(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer == name:
            return Load(local, moved(e.indices), e.dtype, e.mask)
        return e

    def stmt(p: Stmt) -> Stmt:
        if isinstance(p, Store) and p.buffer == name:
            return Store(local, moved(p.indices), p.value, p.mask)
        return p

    return map_stmt(s, expr=expr, stmt=stmt)
