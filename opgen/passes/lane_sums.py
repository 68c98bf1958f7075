"""Sums of whole rows, one in each lane: rows are loaded contiguously, and merged in pairs by shuffles.

    y[ramp(i, 1, 4)] = (x[ramp(i, 1, 4), 0] + x[ramp(i, 1, 4), 1]) + (x[ramp(i, 1, 4), 2] + x[ramp(i, 1, 4), 3])
->
    t[0, ALL] = x[i, ALL]  (and rows 1, 2, 3)
    t[4, ALL] = shuffle(t[0, ALL], t[1, ALL], 0, 2, 4, 6) + shuffle(t[0, ALL], t[1, ALL], 1, 3, 5, 7)
    t[5, ALL] = shuffle(t[2, ALL], t[3, ALL], 0, 2, 4, 6) + shuffle(t[2, ALL], t[3, ALL], 1, 3, 5, 7)
    t[6, ALL] = shuffle(t[4, ALL], t[5, ALL], 0, 2, 4, 6) + shuffle(t[4, ALL], t[5, ALL], 1, 3, 5, 7)
    y[ramp(i, 1, 4)] = t[6, ALL]

The rows are as many as their elements, a power of two, and their sums are in pairs of neighbours.  For n rows, n - 1
such steps replace n strided loads.  The same elements are added in the same order.  Steps within blocks of 16 bytes
come first: there a shuffle of any vectors is one cheap instruction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from opgen.loop import build as b
from opgen.loop.declared import declared_names
from opgen.loop.nodes import Binary, Buffer, Const, Expr, Kernel, Load, Ramp, Shuffle, Stmt, Store
from opgen.loop.walk import buffers_in, distinct_exprs, map_expr, map_stmt, walk_expr
from opgen.passes.fold import fold_all

BLOCK = 16
"""Bytes within which a shuffle of any vectors is one cheap instruction."""
LEAST = 4
"""Smallest number of rows: two are a pair of loads two elements apart."""
Shapes = Mapping[str, tuple[Expr, ...]]


def merge_rows(kernel: Kernel) -> Kernel:
    """Rewrite sums of rows, the first in each store; return the same object if there are none."""
    if not any(_element(e) for e in distinct_exprs(kernel.body)):
        return kernel
    shapes = {i.name: i.shape for i in kernel.buffers}
    shapes |= {o.name: o.shape for o in buffers_in(kernel.body)}
    names = declared_names(kernel)
    name = next(n for k in range(len(names) + 1) if (n := f"merged{k or ''}") not in names)
    body = map_stmt(kernel.body, stmt=lambda s: _store(s, name, shapes) if isinstance(s, Store) else s)
    return kernel if body is kernel.body else dataclasses.replace(kernel, body=body)


def _store(s: Store, name: str, shapes: Shapes) -> Stmt:
    """Return a store of such a sum, after the steps that compute it."""
    found = next(((e, rows) for e in walk_expr(s.value) if (rows := _rows(e, shapes))), None)
    if found is None:
        return s
    whole, rows = found
    steps = _merged(name, rows)
    result = Load(name, steps[-1].indices, whole.type.dtype)
    value = map_expr(lambda e: result if e == whole else e, s.value)
    buffer = Buffer(name, whole.type.dtype, (Const(len(steps)), Const(len(rows))), "register")
    return b.alloc(buffer, b.block((*steps, dataclasses.replace(s, value=value))))


def _rows(e: Expr, shapes: Shapes) -> tuple[Load, ...]:
    """Return the rows whose sums an expression has in its lanes; empty if it is anything else."""
    terms = _terms(e)
    count, first = len(terms), _element(terms[0])
    if count < LEAST or count & (count - 1) or first is None:
        return ()
    start, lanes = first
    if lanes != count or shapes[start.buffer][-1] != Const(count):
        return ()
    if any(term != dataclasses.replace(start, indices=_at(start, k)) for k, term in enumerate(terms)):
        return ()
    *outer, row, _ = start.indices
    assert isinstance(row, Ramp)
    along = Ramp(Const(0), Const(1), count)
    return tuple(Load(start.buffer, (*outer, fold_all(b.add(row.base, k)), along), start.dtype) for k in range(count))


def _terms(e: Expr) -> tuple[Expr, ...]:
    """Return the terms of a sum in pairs of neighbours, of neighbouring pairs, and so on."""
    if not isinstance(e, Binary) or e.op != "add":
        return (e,)
    left, right = _terms(e.left), _terms(e.right)
    return (*left, *right) if len(left) == len(right) else (e,)


def _element(e: Expr) -> tuple[Load, int] | None:
    """Return a load of the first element of consecutive rows, and their number."""
    if not isinstance(e, Load) or e.mask is not None or len(e.indices) < 2 or e.indices[-1] != Const(0):
        return None
    row = e.indices[-2]
    if not isinstance(row, Ramp) or row.stride != Const(1) or any(i.type.lanes > 1 for i in e.indices[:-2]):
        return None
    return e, row.lanes


def _at(e: Load, k: int) -> tuple[Expr, ...]:
    return (*e.indices[:-1], Const(k))


def _merged(name: str, rows: Sequence[Load]) -> list[Store]:
    """Return the steps from rows to their sums, each into its own element of a buffer; the last one has all."""
    count, dtype = len(rows), rows[0].dtype
    along, block = Ramp(Const(0), Const(1), count), min(count, BLOCK // dtype.bytes)
    steps: list[Store] = []

    def kept(value: Expr) -> Load:
        steps.append(Store(name, (Const(len(steps)), along), value))
        return Load(name, steps[-1].indices, dtype)

    vectors, merged = [kept(row) for row in rows], 2
    while len(vectors) > 1:
        orders = _neighbours(count, block, merged > block)
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [kept(b.add(*(Shuffle(left, right, order) for order in orders))) for left, right in pairs]
        merged *= 2
    return steps


def _neighbours(count: int, block: int, across: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first and the second of each pair of neighbours in two vectors.

    Neighbours are lanes, with the pairs of both vectors block by block; or else (`across`) blocks, those of one vector
    first.
    """
    lanes = range(count)
    if across:
        blocks = [range(at, at + block) for at in range(0, 2 * count, block)]
        return tuple(k for p in blocks[::2] for k in p), tuple(k for p in blocks[1::2] for k in p)
    sides = [[*range(at, at + block, 2), *range(count + at, count + at + block, 2)] for at in lanes[::block]]
    first = tuple(k for side in sides for k in side)
    return first, tuple(k + 1 for k in first)
