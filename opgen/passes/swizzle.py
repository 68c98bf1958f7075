"""Lanes in the order of the cheapest shuffles: each block of 16 bytes comes from the same block of its operands.

    acc[ALL] = fma(shuffle(p, q, 0, 2, 4, 6, ...), w, acc[ALL])
    y[ramp(b, 1, 8)] = acc[ALL]
->
    acc[ALL] = fma(shuffle(p, q, 0, 2, 8, 10, ...), w, acc[ALL])
    y[ramp(b, 1, 8)] = shuffle(acc[ALL], acc[ALL], 0, 1, 4, 5, ...)

Every other element of two vectors of 8 is 0, 2, 4, 6 of the first and of the second.  That crosses blocks, which takes
a table and a unit that also multiplies.  In the order 0, 2, 8, 10, 4, 6, 12, 14 it is one shuffle within blocks.

Sums in a local buffer may be in that order as long as all code that sees them agrees.  Vectors from elsewhere are put
in order when read, and stores elsewhere restore it.  Applied if fewer shuffles then cross blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from opgen.dtypes import BOOL, FLOAT32, FLOAT64
from opgen.locks import cached_property
from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Block, Broadcast, Buffer, Const, Expr, Kernel, Load, Ramp, Shuffle, Stmt, Store
from opgen.loop.walk import (
    distinct_exprs,
    expressions,
    map_stmt,
    operands,
    parts,
    stores,
    walk_expr,
    with_operands,
    with_parts,
)
from opgen.passes.known import decided

BLOCK = 16
"""Bytes within which a shuffle of any vectors is one cheap instruction."""
Order = tuple[int, ...]


class _RefusedError(Exception):
    """Refusal: the lanes of a local buffer must stay as they are."""


def swizzle(kernel: Kernel) -> Kernel:
    """Put the lanes of local sums in the cheapest order; return the same object if that saves nothing."""
    if not any(isinstance(e, Shuffle) for e in distinct_exprs(kernel.body)):
        return kernel
    body = map_stmt(kernel.body, stmt=lambda s: _reordered(s) if isinstance(s, Alloc) else s)
    return kernel if body is kernel.body else dataclasses.replace(kernel, body=body)


def _reordered(s: Alloc) -> Stmt:
    """Return an allocation with its lanes in another order, if that is legal and saves shuffles."""
    if len(s.buffers) > 1:  # on the heap
        return s
    lanes = _lanes(s.buffer)
    if lanes is None or not any(p.buffer == s.buffer.name for p in stores(s.body)):
        return s
    before = _across(s.body)
    try:
        body = _Swizzle(s.buffer, lanes).whole(s.body) if before else s.body
    except _RefusedError:
        return s
    return b.alloc(s.buffer, body) if _across(body) < before else s


def _lanes(buffer: Buffer) -> int | None:
    """Return the lanes of the vectors that a buffer holds, if they are several blocks."""
    last = buffer.shape[-1] if buffer.shape else None
    lanes = int(last.value) if isinstance(last, Const) else 0
    several = buffer.dtype in (FLOAT32, FLOAT64) and lanes * buffer.dtype.bytes in (2 * BLOCK, 4 * BLOCK)
    return lanes if several else None


def _across(s: Stmt) -> int:
    """Return the number of different shuffles that read from another block."""
    found = {e for e in distinct_exprs(s) if isinstance(e, Shuffle) and e.type.dtype.is_float}
    return sum(not _within(e) for e in found)


def _within(e: Shuffle) -> bool:
    wide, size = e.left.type.lanes, BLOCK // e.type.dtype.bytes
    return wide == len(e.order) and all(k % wide // size == lane // size for lane, k in enumerate(e.order))


@dataclass(frozen=True)
class _Swizzle:
    """Reordering of the vectors of `lanes` in `buffer`; `seen` caches reordered expressions by identity."""

    buffer: Buffer
    lanes: int
    seen: dict[int, tuple[Expr, Expr]] = field(default_factory=dict)

    @cached_property
    def order(self) -> Order:
        """The order of lanes: each block has half of its lanes from the first half of all, half from the second."""
        half = BLOCK // self.buffer.dtype.bytes // 2
        blocks = range(self.lanes // (2 * half))
        return tuple(
            side * (self.lanes // 2) + block * half + k for block in blocks for side in (0, 1) for k in range(half)
        )

    @cached_property
    def back(self) -> Order:
        """The order that undoes it."""
        return tuple(self.order.index(k) for k in range(self.lanes))

    # Statements -------------------------------------------------------------------------------------

    def whole(self, s: Stmt) -> Stmt:
        """Return the scope of the buffer, reordered.

        Before any access to a part of a vector, all vectors are restored.
        """
        statements = s.statements if isinstance(s, Block) else (s,)
        end = next((i for i, p in enumerate(statements) if not self._all_whole(p)), len(statements))
        before = [self._stmt(p) for p in statements[:end]]
        rest = statements[end:]
        return b.block((*before, *(self._put_back(statements[:end]) if rest else ()), *rest))

    def _stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, Store):
            return self._store(s)
        if any(self._loads_own(e) for e in expressions(s)):
            raise _RefusedError
        return with_parts(s, tuple(self._stmt(p) for p in parts(s)))

    def _store(self, s: Store) -> Store:
        if any(self._loads_own(e) for e in expressions(s) if e is not s.value):
            raise _RefusedError
        if s.buffer == self.buffer.name:
            return dataclasses.replace(s, value=self._ordered(s.value))
        return dataclasses.replace(s, value=self._natural(s.value)) if self._loads_own(s.value) else s

    def _put_back(self, statements: Sequence[Stmt]) -> list[Stmt]:
        """Return stores that restore every vector, if all that may have been stored surely were."""
        places = {p.indices for s in statements for p in stores(s) if p.buffer == self.buffer.name}
        sure = dict.fromkeys(s.indices for s in statements if isinstance(s, Store) and s.buffer == self.buffer.name)
        if any(not isinstance(i, Const) for place in places for i in place[:-1]) or not places <= set(sure):
            raise _RefusedError
        kept = [Load(self.buffer.name, place, self.buffer.dtype) for place in sure]
        return [Store(e.buffer, e.indices, Shuffle(e, e, self.back)) for e in kept]

    # Expressions ------------------------------------------------------------------------------------

    def _ordered(self, e: Expr) -> Expr:
        """Return the lanes of an expression in the buffer's order."""
        found = self.seen.get(id(e))
        if found is None:
            found = self.seen[id(e)] = (e, self._in_order(e))
        return found[1]

    def _in_order(self, e: Expr) -> Expr:
        if e.type.lanes == 1 or isinstance(e, Const | Broadcast) or self._is_own(e):
            return e
        if e.type.lanes != self.lanes or (e.type.dtype == BOOL and None in decided(e)):
            raise _RefusedError  # masks that are not constants cost more to shuffle than is saved
        if isinstance(e, Shuffle):
            return self._composed(e)
        if isinstance(e, Load | Ramp) or e.type.dtype == BOOL:
            if self._loads_own(e):
                raise _RefusedError
            return Shuffle(e, e, self.order)
        return with_operands(e, tuple(self._ordered(o) for o in operands(e)))

    def _composed(self, e: Shuffle) -> Expr:
        """Return a shuffle and the reordering of its lanes as one; operands that are shuffled are reordered, too."""
        inner = [isinstance(o, Shuffle) or self._loads_own(o) for o in (e.left, e.right)]
        wide = e.left.type.lanes
        if any(inner) and wide != self.lanes:
            raise _RefusedError
        sides = [self._ordered(o) if i else o for o, i in zip((e.left, e.right), inner, strict=True)]
        lanes = [e.order[k] for k in self.order]
        moved = (wide * (k // wide) + (self.back[k % wide] if inner[k // wide] else k % wide) for k in lanes)
        return Shuffle(sides[0], sides[1], tuple(moved))

    def _natural(self, e: Expr) -> Expr:
        """Return an expression to store elsewhere, with loads of the buffer restored.

        A shuffle of such loads restores them itself.
        """
        if self._is_own(e):
            return Shuffle(e, e, self.back)
        if isinstance(e, Shuffle) and self._is_own(e.left) and self._is_own(e.right):
            sides = (divmod(k, self.lanes) for k in e.order)
            return Shuffle(e.left, e.right, tuple(self.lanes * side + self.back[k] for side, k in sides))
        return with_operands(e, tuple(self._natural(o) for o in operands(e)))

    # Queries ----------------------------------------------------------------------------------------

    def _is_own(self, e: Expr) -> bool:
        return isinstance(e, Load) and e.buffer == self.buffer.name

    def _loads_own(self, e: Expr) -> bool:
        return any(self._is_own(p) for p in walk_expr(e))

    def _all_whole(self, s: Stmt) -> bool:
        """Return True if a statement accesses only whole vectors of the buffer, all lanes of them."""
        found: list[Load | Store] = [p for p in stores(s) if p.buffer == self.buffer.name]
        found += [e for e in distinct_exprs(s) if isinstance(e, Load) and e.buffer == self.buffer.name]
        all_lanes = Ramp(Const(0), Const(1), self.lanes)
        return all(
            p.mask is None and p.indices[-1] == all_lanes and all(i.type.lanes == 1 for i in p.indices[:-1])
            for p in found
        )
