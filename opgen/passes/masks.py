"""Masks on what only one thread can see become selects, so that it can stay in registers.

    acc[i if m] = f(acc[i if m])    ->    acc[i] = select(m, f(acc[i]), acc[i])

Only for buffers in register space, where every lane is in bounds without the mask.  They begin as zeros, so that every
lane has a value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Buffer, Const, Expr, For, Kernel, Load, Ramp, Select, Stmt, Store
from opgen.loop.walk import map_expr, walk, with_parts
from opgen.passes.scope import entered

Buffers = Mapping[str, Buffer]


def masks_to_selects(kernel: Kernel) -> Kernel:
    """Replace masked stores to registers; the same object if there are none."""
    if not any(isinstance(s, Store) and s.mask is not None for s in walk(kernel.body)):
        return kernel
    body = _visit(kernel.body, Context.of(kernel), {})
    return kernel if body is kernel.body else dataclasses.replace(kernel, body=body)


def _visit(s: Stmt, context: Context, local: Buffers) -> Stmt:
    if isinstance(s, Store):
        return _store(s, context, local)
    if isinstance(s, Alloc) and s.buffer.space == "register":
        ((part, inside),) = entered(s, context)
        body = _visit(part, inside, {**local, s.buffer.name: s.buffer})
        fewer = _masked(body, s.buffer.name) < _masked(s.body, s.buffer.name)
        return Alloc(s.buffer, b.block((_zeros(s.buffer), body))) if fewer else with_parts(s, (body,))
    return with_parts(s, tuple(_visit(p, c, local) for p, c in entered(s, context)))


def _masked(s: Stmt, name: str) -> int:
    return sum(isinstance(p, Store) and p.buffer == name and p.mask is not None for p in walk(s))


def _zeros(buffer: Buffer) -> Stmt:
    """Stores of 0 to a whole buffer, a vector along its last dimension."""
    *others, last = (int(e.value) for e in buffer.shape if isinstance(e, Const))
    counters = [f"{buffer.name}_{d}_zero" for d in range(len(others))]
    lanes = Ramp(Const(0), Const(1), last) if last > 1 else Const(0)
    fill: Stmt = Store(buffer.name, (*(b.var(c) for c in counters), lanes), b.const(0, buffer.dtype, last))
    for counter, size in zip(reversed(counters), reversed(others), strict=True):
        fill = For(counter, Const(0), Const(size), fill, "unroll")
    return fill


def _store(s: Store, context: Context, local: Buffers) -> Stmt:
    buffer = local.get(s.buffer)
    if s.mask is None or s.mask.type.lanes == 1 or buffer is None or not _inside(s.indices, buffer, context):
        return s

    def unmasked(e: Expr) -> Expr:
        """Where the mask holds, a load under it is the same without; elsewhere nothing of the value is kept."""
        if isinstance(e, Load) and (e.buffer, e.indices, e.mask) == (s.buffer, s.indices, s.mask):
            return Load(e.buffer, e.indices, e.dtype)
        return e

    old = Load(s.buffer, s.indices, buffer.dtype)
    return Store(s.buffer, s.indices, Select(s.mask, map_expr(unmasked, s.value), old))


def _inside(indices: tuple[Expr, ...], buffer: Buffer, context: Context) -> bool:
    """Whether all lanes are in bounds."""
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
