"""Temporary scalars of straight-line code, replaced by their values.

acc[] = 0.0; acc[] = fma(a[i], b[i], acc[]); y[i] = acc[] * 2.0   ->   y[i] = fma(a[i], b[i], 0.0) * 2.0
"""

from __future__ import annotations

from collections.abc import Sequence

from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Block, Expr, Load, Stmt, Store
from opgen.loop.walk import expressions, map_expr, walk_expr, with_expressions


def straightened(s: Stmt) -> Stmt:
    """Return the statement without scalars in registers if it declares only these and holds only stores; or itself."""
    if not isinstance(s, Alloc) or not isinstance(s.body, Block):
        return s
    stores = [p for p in s.body.statements if isinstance(p, Store) and p.mask is None]
    held = {o.name for o in s.buffers if not o.shape and o.space == "register"}
    if len(stores) != len(s.body.statements) or len(held) != len(s.buffers):
        return s
    kept = _without(stores, held)
    return s if kept is None else b.block(kept)


def _without(stores: Sequence[Store], held: set[str]) -> list[Stmt] | None:
    """Return the stores to memory, with the values of scalars there; None if memory changes in between."""
    values: dict[str, Expr] = {}
    kept: list[Stmt] = []

    def known(e: Expr) -> Expr:
        return values.get(e.buffer, e) if isinstance(e, Load) else e

    for n, store in enumerate(stores):
        read = {e.buffer for p in stores[n + 1 :] for x in expressions(p) for e in walk_expr(x) if isinstance(e, Load)}
        if store.buffer in held:
            values[store.buffer] = map_expr(known, store.value)
        elif store.buffer in read or read & held:
            return None
        else:
            kept.append(with_expressions(store, tuple(map_expr(known, e) for e in expressions(store))))
    return kept
