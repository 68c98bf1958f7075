"""widen: a buffer converted, once, to the type that it is computed with."""

from __future__ import annotations

import dataclasses

from opgen.diagnostics import did_you_mean
from opgen.dtypes import DType
from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Buffer, Cast, Expr, For, Kernel, Load, Stmt, Store, Type
from opgen.loop.walk import loads, map_stmt, walk, walk_exprs
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, with_body


def widen(kernel: Kernel, buffer: str, name: str | None = None) -> Kernel:
    """Work on a copy of an input in the type that its elements are cast to, made before anything else; or keep a local
    buffer in that type.

                                                alloc x_wide: float32[c]
        for k: use(float32(x[k]))       ->      for x_wide_0 in 0..c: x_wide[x_wide_0] = float32(x[x_wide_0])
                                                for k: use(x_wide[k])

    Every read must be cast to the type that elements are computed with, which holds all their values.
    """
    local = {s.buffer.name: s.buffer for s in walk(kernel.body) if isinstance(s, Alloc)}
    known = {i.name: i for i in kernel.inputs} | local
    if buffer not in known:
        raise ScheduleError(f"widen {buffer}: there is no such input or local buffer", did_you_mean(buffer, known))
    source = known[buffer]
    wide = _computed_type(kernel, source)
    name = name or f"{buffer}_wide"
    counters = [] if buffer in local else [f"{name}_{d}" for d in range(len(source.shape))]
    require_fresh(kernel, "widen", [name, *counters])
    copy = Buffer(name, wide, source.shape, source.space if buffer in local else "heap")

    def redirected(e: Expr) -> Expr:
        if isinstance(e, Cast) and isinstance(e.operand, Load) and e.operand.buffer == buffer:
            return Load(name, e.operand.indices, wide, e.operand.mask)
        return e

    def retyped(s: Stmt) -> Stmt:
        match s:
            case Alloc() if s.buffer.name == buffer:
                return Alloc(Buffer(name, wide, s.buffer.shape, s.buffer.space), s.body)
            case Store() if s.buffer == buffer:
                return Store(name, s.indices, Cast(Type(wide, s.value.type.lanes), s.value), s.mask)
            case _:
                return s

    body = map_stmt(kernel.body, expr=redirected, stmt=retyped)
    if buffer in local:
        return with_body(kernel, body)
    return dataclasses.replace(kernel, body=Alloc(copy, b.block((_copying(source, copy, counters), body))))


def _computed_type(kernel: Kernel, source: Buffer) -> DType:
    """The wider type that every read of a buffer is cast to."""
    wide = source.dtype.compute_type
    if wide == source.dtype:
        raise ScheduleError(f"widen {source.name}: {wide.name} is computed with as it is")
    reads = sum(e.buffer == source.name for e in loads(kernel.body))
    casts = [e for e in walk_exprs(kernel.body) if isinstance(e, Cast) and isinstance(e.operand, Load)]
    if reads != sum(
        isinstance(e.operand, Load) and e.operand.buffer == source.name and e.type.dtype == wide for e in casts
    ):
        raise ScheduleError(f"widen {source.name}: not every read of it is cast to {wide.name}")
    return wide


def _copying(source: Buffer, copy: Buffer, counters: list[str]) -> Stmt:
    places = tuple(b.var(c) for c in counters)
    move: Stmt = Store(copy.name, places, b.cast(copy.dtype, Load(source.name, places, source.dtype)))
    for counter, size in zip(reversed(counters), reversed(copy.shape), strict=True):
        move = For(counter, b.index(0), size, move)
    return move
