"""Accesses with stride 2: two whole vectors, with lanes exchanged by shuffles.

    y[ramp(b, 2, 4)] = p                     y[ramp(b, 1, 4)] = shuffle(p, q, 0, 4, 1, 5)
    y[ramp(b + 1, 2, 4)] = q          ->     y[ramp(b + 4, 1, 4)] = shuffle(p, q, 2, 6, 3, 7)

    f(x[ramp(b, 2, 4)])                      f(shuffle(x[ramp(b, 1, 4)], x[ramp(b + 4, 1, 4)], 0, 2, 4, 6))
    g(x[ramp(b + 1, 2, 4)])           ->     g(shuffle(x[ramp(b, 1, 4)], x[ramp(b + 4, 1, 4)], 1, 3, 5, 7))

A third load that begins one lane later takes all but its last lane from the first load's shuffle.

The same elements are touched, by statements that run together.  Masks are merged if each lane's is known, and the
active ones make one run of elements.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from opgen.loop import build as b
from opgen.loop.analysis.polynomial import Polynomial, polynomial
from opgen.loop.nodes import Block, Compare, Const, Expr, Kernel, Load, Ramp, Shuffle, Stmt, Store, Word
from opgen.loop.walk import distinct_exprs, expressions, map_expr, map_stmt, stores, walk_expr
from opgen.passes.fold import fold_all
from opgen.passes.known import decided
from opgen.passes.lanes import conjunction, widen

STEP = 2
Loads = Mapping[Load, Expr]


def interleave(kernel: Kernel) -> Kernel:
    """Rewrite pairs of accesses within one block; return the same object if there are none."""
    inputs = {i.name for i in kernel.inputs}
    if not _any_step(kernel.body, inputs):
        return kernel
    body = map_stmt(kernel.body, stmt=lambda s: _block(s, inputs) if isinstance(s, Block) else s)
    return kernel if body is kernel.body else dataclasses.replace(kernel, body=body)


def _any_step(s: Stmt, inputs: set[str]) -> bool:
    """Return True if any access has lanes two elements apart."""
    if any(_steps(p.indices) for p in stores(s)):
        return True
    return any(isinstance(e, Load) and e.buffer in inputs and _steps(e.indices) for e in distinct_exprs(s))


def _block(s: Block, inputs: set[str]) -> Stmt:
    found = _paired_loads(s.statements, inputs)
    own = [_with_loads(p, found) if found and isinstance(p, Store) else p for p in s.statements]
    stored = _stored(own)
    return s if stored is own and not found else b.block(stored)


# Loads ----------------------------------------------------------------------------------------------


def _paired_loads(statements: Sequence[Stmt], inputs: set[str]) -> Loads:
    """Return replacements of strided loads.

    These are loads with a partner in a block's own stores, loads in such a pair, and loads that begin a lane later.
    """
    every = [e for s in statements if isinstance(s, Store) for part in expressions(s) for e in walk_expr(part)]
    parts = {part for e in every if isinstance(e, Word) for part in e.parts}  # one load of words, as it is in memory
    strided = (e for e in every if isinstance(e, Load) and e.buffer in inputs and _steps(e.indices))
    apart = [e for e in dict.fromkeys(strided) if e not in parts]
    found: dict[Load, Expr] = {}
    pairs: list[tuple[Load, Load]] = []
    for even, odd in _pairs(apart):
        vectors = _vectors(even, odd)
        if vectors is None or even in found or odd in found:
            continue
        near = [Load(even.buffer, indices, even.dtype, mask) for indices, mask in vectors]
        for e in (e for e in apart if e not in found):
            order = _within_pair(e, even, odd)
            if order is not None:
                found[e] = Shuffle(near[0], near[1], order)
        pairs.append((even, odd))
    for e in (e for e in apart if e not in found):
        begun = next((even for even, odd in pairs if _one_further(e, even, odd)), None)
        if begun is not None:
            found[e] = _shifted(e, found[begun])
    return found


def _one_further(e: Load, even: Load, odd: Load) -> bool:
    """Return True if a load is that of the even elements, begun one lane later, without masks on any of the three."""
    return _distance(even, e) == STEP and all(p.type == e.type and p.mask is None for p in (e, even, odd))


def _shifted(e: Load, evens: Expr) -> Expr:
    """Return the even elements of a pair without the first, and the one after the pair.

    That one is the last of a vector; the pair reads its other elements.
    """
    *rows, place = e.indices
    assert isinstance(place, Ramp)
    count = place.lanes
    last = Ramp(fold_all(b.add(place.base, count - 1)), Const(1), count)
    return Shuffle(evens, Load(e.buffer, (*rows, last), e.dtype), (*range(1, count), 2 * count - 1))


def _within_pair(e: Load, even: Load, odd: Load) -> tuple[int, ...] | None:
    """Return the lanes of a pair's two whole vectors that make up a load; None if they do not hold all of them."""
    count = even.type.lanes
    first, run, on = _distance(even, e), _run(even.mask, odd.mask, count), _known(e.mask, count)
    if first is None or run is None or e.type.lanes != count or None in on:
        return None
    off = [k for k in range(STEP * count) if k not in range(*run)]
    order = [_picked(first + STEP * lane, here, range(*run), off) for lane, here in enumerate(on)]
    inside = [k for k in order if k is not None]
    return tuple(inside) if len(inside) == count else None


def _picked(own: int, on: bool | None, touched: range, off: Sequence[int]) -> int | None:
    """Return the lane of a pair's vectors for one of a load's: its own, or any zero lane if it is inactive."""
    if on:
        return own if own in touched else None
    return own if own in off else next(iter(off), None)


def _distance(start: Load, e: Load) -> int | None:
    """Return the number of elements by which a load begins further, in the same row."""
    *rows, last = start.indices
    *others, place = e.indices
    assert isinstance(last, Ramp)
    if not isinstance(place, Ramp) or e.buffer != start.buffer or others != rows:
        return None
    return (polynomial(place.base) - polynomial(last.base)).value


def _with_loads(s: Store, found: Loads) -> Store:
    value = map_expr(lambda e: found.get(e, e) if isinstance(e, Load) else e, s.value)
    return s if value is s.value else dataclasses.replace(s, value=value)


# Stores ---------------------------------------------------------------------------------------------


def _stored(statements: list[Stmt]) -> list[Stmt]:
    """Merge neighbouring stores; return the same list if there are none."""
    result: list[Stmt] = []
    for s in statements:
        last = result[-1] if result else None
        merged = _merged(last, s) if isinstance(last, Store) and isinstance(s, Store) else None
        result[len(result) - bool(merged) :] = merged or [s]
    return statements if len(result) == len(statements) and all(map(_same, result, statements)) else result


def _same(s: Stmt, other: Stmt) -> bool:
    return s is other


def _merged(even: Store, odd: Store) -> list[Stmt] | None:
    """Return the two stores that replace two with stride 2, if neither reads the buffer."""
    reads = (e for s in (even, odd) for part in expressions(s) for e in walk_expr(part) if isinstance(e, Load))
    if even.buffer != odd.buffer or not _steps(even.indices) or any(e.buffer == even.buffer for e in reads):
        return None
    vectors = _vectors(even, odd) if even.value.type == odd.value.type else None
    if vectors is None or even.value.type.lanes < 2:
        return None
    count = even.value.type.lanes
    order = [lane + count * phase for lane in range(count) for phase in range(STEP)]
    halves = (tuple(order[:count]), tuple(order[count:]))
    values = [Shuffle(even.value, odd.value, half) for half in halves]
    return [Store(even.buffer, i, v, m) for (i, m), v in zip(vectors, values, strict=True)]


# Both -----------------------------------------------------------------------------------------------


def _steps(indices: tuple[Expr, ...]) -> bool:
    """Return True if lanes go along the last dimension alone, two elements apart."""
    *others, last = indices or (b.index(0),)
    return isinstance(last, Ramp) and last.stride == Const(STEP) and all(i.type.lanes == 1 for i in others)


def _pairs(apart: Sequence[Load]) -> Iterable[tuple[Load, Load]]:
    """Yield pairs of loads that begin next to each other, in the same rows."""
    places: dict[tuple[object, ...], Load] = {}
    for e in apart:
        places.setdefault(_place(e, 0), e)
    for e in apart:
        odd = places.get(_place(e, 1))
        if odd is not None:
            yield e, odd


def _place(e: Load | Store, further: int) -> tuple[object, ...]:
    *others, last = e.indices
    assert isinstance(last, Ramp)
    return e.buffer, last.lanes, *(polynomial(i) for i in others), polynomial(last.base) + Polynomial.constant(further)


def _vectors(even: Load | Store, odd: Load | Store) -> list[tuple[tuple[Expr, ...], Expr | None]] | None:
    """Return the places and masks of the two whole vectors.

    None if the accesses do not pair, or masks cannot be merged.
    """
    if not _steps(odd.indices) or _place(even, 1) != _place(odd, 0):
        return None
    *others, last = even.indices
    assert isinstance(last, Ramp)
    run = _run(even.mask, odd.mask, last.lanes)
    if run is None:
        return None
    starts = (0, last.lanes)
    bases = [fold_all(b.add(last.base, start)) for start in starts]
    places = [(*others, Ramp(base, Const(1), last.lanes)) for base in bases]
    return [(at, _within(run, start, last.lanes)) for at, start in zip(places, starts, strict=True)]


def _run(even: Expr | None, odd: Expr | None, lanes: int) -> tuple[int, int] | None:
    """Return the first touched element and the one after the last; None unless all between them are touched."""
    known = [_known(mask, lanes) for mask in (even, odd)]
    on = [known[phase][lane] for lane in range(lanes) for phase in range(STEP)]
    first, count = (on.index(True), on.count(True)) if True in on else (0, 0)
    return (first, first + count) if None not in on and all(on[first : first + count]) else None


def _known(mask: Expr | None, lanes: int) -> tuple[bool | None, ...]:
    return (True,) * lanes if mask is None else decided(widen(mask, lanes))


def _within(run: tuple[int, int], start: int, lanes: int) -> Expr | None:
    """Return the mask of the lanes, counted from an element on, that are in a run."""
    place = Ramp(Const(start), Const(1), lanes)
    parts: list[Expr] = []
    if run[0] > start:
        parts.append(Compare("ge", place, widen(Const(run[0]), lanes)))
    if run[1] < start + lanes:
        parts.append(Compare("lt", place, widen(Const(run[1]), lanes)))
    return conjunction(tuple(parts))
