"""Unmasking of local buffers: private elements of a lane need no guard.

    acc[ramp(0, 1, 16) if m] = fma(a, w[... if m], acc[ramp(0, 1, 16) if m])
    y[... if m] = acc[ramp(0, 1, 16) if m]
->
    acc[ramp(0, 1, 16)] = fma(a, w[... if m], acc[ramp(0, 1, 16)])
    y[... if m] = acc[ramp(0, 1, 16)]

An inactive lane computes a value that nothing sees: all accesses of an element have the same mask, and loaded values go
only into stores under that mask.  So the buffer can be kept in registers.  A store of `select(m, value, acc[...])` to
the same element counts as one under the mask `m`.
"""

from __future__ import annotations

from collections.abc import Iterator

from opgen.loop.nodes import Buffer, Const, Expr, For, Kernel, Let, Load, Ramp, Select, Stmt, Store
from opgen.loop.walk import allocs_in, buffers_in, expressions, free_vars, map_stmt, stores, walk, walk_expr

Places = tuple[Expr, ...]


def unmask(kernel: Kernel) -> Kernel:
    """Remove the masks from all accesses of register buffers if no other lane, and nothing else, can observe it."""
    free = {o.name for o in buffers_in(kernel.body) if o.space == "register"}
    free &= _masked(kernel.body)
    free = {name for name in free if _own(kernel.body, name)}
    if not free:
        return kernel

    def expr(e: Expr) -> Expr:
        return Load(e.buffer, e.indices, e.dtype) if isinstance(e, Load) and e.buffer in free else e

    def stmt(s: Stmt) -> Stmt:
        return Store(s.buffer, s.indices, _guarded(s)[1]) if isinstance(s, Store) and s.buffer in free else s

    body = map_stmt(kernel.body, expr=expr, stmt=stmt)
    return Kernel(kernel.name, kernel.inputs, kernel.outputs, kernel.parameters, body, kernel.assumptions)


def _masked(body: Stmt) -> set[str]:
    """Return the buffers that some store guards."""
    return {s.buffer for s in stores(body) if _guarded(s)[0] is not None}


def _guarded(s: Store) -> tuple[Expr | None, Expr]:
    """Return the mask of a store, and the value that it stores under that mask."""
    match s.value:
        case Select(mask, value, Load(s.buffer, s.indices, mask=None)) if s.mask is None and mask.type.lanes > 1:
            return mask, value
    return s.mask, s.value


def _own(body: Stmt, name: str) -> bool:
    """Return True if a buffer needs no masks.

    Each element must have one mask throughout its life, be in bounds whatever the mask is, and be seen only under that
    mask where it is loaded.
    """
    allocations = [(s, o) for s in allocs_in(body) for o in s.buffers if o.name == name]
    changing = {v for a, _ in allocations for s in walk(a.body) for v in _bound(s)}
    masks: dict[Places, Expr] = {}
    for s in walk(body):
        for places, mask, seen in _accesses(s, name):
            if mask is None or seen != mask or masks.setdefault(places, mask) != mask:
                return False
    if any(free_vars(m) & changing or any(isinstance(e, Load) for e in walk_expr(m)) for m in masks.values()):
        return False
    return all(_apart(places, o) for places in masks for _, o in allocations)


def _bound(s: Stmt) -> tuple[str, ...]:
    """Return the variables that a statement itself brings into scope."""
    return (s.var,) if isinstance(s, For) else (s.var.name,) if isinstance(s, Let) else ()


def _accesses(s: Stmt, name: str) -> Iterator[tuple[Places, Expr | None, Expr | None]]:
    """Yield each access of a buffer in a statement itself: its places, its mask, and the mask for its effects.

    A store without a mask also writes inactive lanes, where nothing sees it.
    """
    seen: list[tuple[Expr, Expr | None]] = [(e, None) for e in expressions(s)]
    if isinstance(s, Store):
        effect, value = _guarded(s)
        seen = [(value, effect) if e is s.value else (e, None) for e, _ in seen]
        if s.buffer == name and effect is not None:
            yield s.indices, effect, effect
    for e, under in seen:
        for n in walk_expr(e):
            if isinstance(n, Load) and n.buffer == name:
                yield n.indices, n.mask or under, under


def _apart(places: Places, buffer: Buffer) -> bool:
    """Return True if places are literals and cover whole rows: they are equal to other places, or disjoint."""
    *outer, last = places
    sizes = [int(e.value) if isinstance(e, Const) else 0 for e in buffer.shape]
    row = isinstance(last, Ramp) and last.base == Const(0) and last.stride == Const(1) and last.lanes == sizes[-1]
    numbers = [int(e.value) if isinstance(e, Const) else -1 for e in outer]
    return row and all(0 <= n < size for n, size in zip(numbers, sizes[:-1], strict=True))
