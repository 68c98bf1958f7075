"""Forwarding of single elements: reads of a copy become reads of its source.

    alloc element[] register: element[] = x[i, j]; s[] = s[] + element[]   ->   s[] = s[] + x[i, j]

Reads stay in their loops.  Nothing is computed twice: emitters compute equal parts of one statement once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Barrier, Block, Buffer, Expr, For, Load, Stmt, Store
from opgen.loop.walk import loads, map_stmt, parts, stores, walk, walk_expr


def forwarded(buffers: Sequence[Buffer], body: Stmt) -> Stmt:
    """Return the body of an allocation with reads of such buffers replaced by the value they hold, if it is unchanged.

    Allocations may be between.
    """
    if isinstance(body, Alloc):
        inner = forwarded(buffers, body.body)
        return body if inner is body.body else replace(body, body=inner)
    if not isinstance(body, Block):
        return body
    for buffer in buffers:
        if isinstance(body, Block) and not buffer.shape and buffer.space == "register":
            body = _without(buffer.name, body)
    return body


def _without(name: str, body: Block) -> Stmt:
    at = next((n for n, s in enumerate(body.statements) if isinstance(s, Store) and s.buffer == name), None)
    if at is None:
        return body
    store = body.statements[at]
    assert isinstance(store, Store)
    rest = body.statements[at + 1 :]
    if store.mask is not None or not isinstance(store.value, Load) or any(_uses(s, name) for s in body.statements[:at]):
        return body
    written = {s.buffer for p in rest for s in stores(p)}
    sources = {e.buffer for e in walk_expr(store.value) if isinstance(e, Load)}
    reads = [e for p in rest for e in loads(p) if e.buffer == name]
    repeated = any(e.buffer == name for p in rest for loop in _loops(p) for e in loads(loop))
    waits = any(isinstance(p, Barrier) for q in rest for p in walk(q))
    readers = sum(any(e.buffer == name for e in loads(p)) for p in rest)
    single = len(reads) == 1 or (readers == 1 and all(isinstance(p, Store) for p in rest if _uses(p, name)))
    if not single or name in written or sources & written or repeated or name in sources or waits:
        return body

    def expr(e: Expr) -> Expr:
        return store.value if isinstance(e, Load) and e.buffer == name else e

    return b.block([*body.statements[:at], *(map_stmt(p, expr=expr) for p in rest)])


def _uses(s: Stmt, name: str) -> bool:
    return any(e.buffer == name for e in loads(s)) or any(p.buffer == name for p in stores(s))


def _loops(s: Stmt) -> Iterator[For]:
    if isinstance(s, For):
        yield s
        return
    for p in parts(s):
        yield from _loops(p)
