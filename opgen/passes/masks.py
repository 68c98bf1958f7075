"""Masks on thread-private buffers, as selects, so that the buffers can stay in registers.

    acc[i if m] = f(acc[i if m])    ->    acc[i] = select(m, f(acc[i]), acc[i])

Applies to register buffers, and to small stack buffers whose every access is at a literal place.  Every lane must be in
bounds without the mask.  The buffers begin as zeros, so that every lane has a value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Buffer, Const, Expr, Kernel, Load, Ramp, Select, Stmt, Store
from opgen.loop.walk import expressions, map_expr, stores, walk, walk_expr, with_parts
from opgen.passes.scope import entered

Buffers = Mapping[str, Buffer]

MOST = 1024
"""Largest number of elements of a stack buffer that may become registers."""


def masks_to_selects(kernel: Kernel) -> Kernel:
    """Replace masked stores to registers; return the same object if there are none."""
    if not any(s.mask is not None for s in stores(kernel.body)):
        return kernel
    body = _visit(kernel.body, Context.of(kernel), {})
    return kernel if body is kernel.body else dataclasses.replace(kernel, body=body)


def _visit(s: Stmt, context: Context, local: Buffers) -> Stmt:
    if isinstance(s, Store):
        return _store(s, context, local)
    if isinstance(s, Alloc) and _promoted(s):
        ((part, inside),) = entered(s, context)
        body = _visit(part, inside, {**local, s.buffer.name: s.buffer})
        fewer = _masked(body, s.buffer.name) < _masked(s.body, s.buffer.name)
        return b.alloc(s.buffer, b.block((_zeros(s.buffer), body))) if fewer else with_parts(s, (body,))
    return with_parts(s, tuple(_visit(p, c, local) for p, c in entered(s, context)))


def _masked(s: Stmt, name: str) -> int:
    return sum(p.buffer == name and p.mask is not None for p in stores(s))


def _promoted(s: Alloc) -> bool:
    """Return True if a buffer is, or becomes, registers."""
    if s.space != "stack":
        return s.space == "register"
    elements = prod(int(e.value) if isinstance(e, Const) else MOST + 1 for e in s.buffer.shape)
    return elements <= MOST and all(_literal(i) for places in _places(s.body, s.buffer.name) for i in places)


def _places(s: Stmt, name: str) -> Iterator[tuple[Expr, ...]]:
    """Yield the indices of all accesses of a buffer."""
    for p in walk(s):
        if isinstance(p, Store) and p.buffer == name:
            yield p.indices
        yield from (n.indices for e in expressions(p) for n in walk_expr(e) if isinstance(n, Load) and n.buffer == name)


def _literal(i: Expr) -> bool:
    return isinstance(i, Const) or (isinstance(i, Ramp) and isinstance(i.base, Const))


def _zeros(buffer: Buffer) -> Stmt:
    """Return stores of 0 to a whole buffer, a vector along its last dimension."""
    *others, last = (int(e.value) for e in buffer.shape if isinstance(e, Const))
    lanes = Ramp(Const(0), Const(1), last) if last > 1 else Const(0)
    zero = b.const(0, buffer.dtype, last)
    rows = product(*(range(size) for size in others))
    return b.block(Store(buffer.name, (*(Const(i) for i in row), lanes), zero) for row in rows)


def _store(s: Store, context: Context, local: Buffers) -> Stmt:
    buffer = local.get(s.buffer)
    if s.mask is None or s.mask.type.lanes == 1 or buffer is None or not _inside(s.indices, buffer, context):
        return s

    def unmasked(e: Expr) -> Expr:
        """Drop the mask of a load under the same mask: where the mask is off, the value is not used."""
        if isinstance(e, Load) and (e.buffer, e.indices, e.mask) == (s.buffer, s.indices, s.mask):
            return Load(e.buffer, e.indices, e.dtype)
        return e

    old = Load(s.buffer, s.indices, buffer.dtype)
    return Store(s.buffer, s.indices, Select(s.mask, map_expr(unmasked, s.value), old))


def _inside(indices: tuple[Expr, ...], buffer: Buffer, context: Context) -> bool:
    """Return True if all lanes are in bounds."""
    return all(_within(i, size, context) for i, size in zip(indices, buffer.shape, strict=True))


def _within(index: Expr, size: Expr, context: Context) -> bool:
    ends = [index]
    if isinstance(index, Ramp):
        if not isinstance(index.stride, Const) or int(index.stride.value) < 0:
            return False
        ends = [index.base, b.add(index.base, int(index.stride.value) * (index.lanes - 1))]
    if any(e.type.lanes != 1 for e in ends):
        return False
    return context.proves(b.compare("ge", ends[0], 0)) and context.proves(b.compare("lt", ends[-1], size))
