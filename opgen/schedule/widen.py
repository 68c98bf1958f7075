"""widen: a buffer converted, once, to the type that it is computed with."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from opgen.diagnostics import did_you_mean
from opgen.dtypes import DType
from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Buffer, Cast, Expr, For, Kernel, Load, Stmt, Store, Type
from opgen.loop.walk import buffers_in, loads, map_stmt, stores, walk_exprs
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, with_body, with_buffer
from opgen.schedule.values import BufferName, Made
from opgen.schedule.written import require_written


@primitive("memory", "widen filter -> filter_wide")
class Widen(Step):
    """Copies in the type that it is computed with (float16 as float32). An output is converted at the end."""

    buffer: BufferName
    name: Annotated[str, Made("{buffer}_wide")]

    def run(self, kernel: Kernel) -> Kernel:
        return widen(kernel, self.buffer, self.name)


def widen(kernel: Kernel, buffer: str, name: str) -> Kernel:
    """Work on a copy of an input in the type that its elements are cast to, made before anything else.

    A local buffer is kept in that type.  An output must be written as a whole, and is converted after everything else.

                                                alloc x_wide: float32[c]
        for k: use(float32(x[k]))       ->      for x_wide_0 in 0..c: x_wide[x_wide_0] = float32(x[x_wide_0])
                                                for k: use(x_wide[k])

    Every read must be cast to the type that elements are computed with, which holds all their values.  Values stored to
    an output must have been computed in it.
    """
    if buffer in {o.name for o in kernel.outputs}:
        return _wide_output(kernel, next(o for o in kernel.outputs if o.name == buffer), name)
    local = {o.name: o for o in buffers_in(kernel.body)}
    known = {i.name: i for i in kernel.inputs} | local
    if buffer not in known:
        known_names = (*known, *(o.name for o in kernel.outputs))
        raise ScheduleError(f"widen {buffer}: there is no such buffer", did_you_mean(buffer, known_names))
    source = known[buffer]
    wide = _computed_type(kernel, source)
    counters = [] if buffer in local else [f"{name}_{d}" for d in range(len(source.shape))]
    require_fresh(kernel, "widen", [name, *counters])
    copy = Buffer(name, wide, source.shape, source.space if buffer in local else "heap")

    def redirected(e: Expr) -> Expr:
        if isinstance(e, Cast) and isinstance(e.operand, Load) and e.operand.buffer == buffer:
            return Load(name, e.operand.indices, wide, e.operand.mask)
        return e

    def retyped(s: Stmt) -> Stmt:
        match s:
            case Alloc():
                return with_buffer(s, buffer, lambda o: Buffer(name, wide, o.shape, o.space))
            case Store() if s.buffer == buffer:
                return Store(name, s.indices, Cast(Type(wide, s.value.type.lanes), s.value), s.mask)
            case _:
                return s

    body = map_stmt(kernel.body, expr=redirected, stmt=retyped)
    if buffer in local:
        return with_body(kernel, body)
    return dataclasses.replace(kernel, body=b.alloc(copy, b.block((_copying(source, copy, counters), body))))


def _wide_output(kernel: Kernel, output: Buffer, name: str) -> Kernel:
    """Work on a wide copy of an output, and convert that at the end."""
    counters = [f"{name}_{d}" for d in range(len(output.shape))]
    require_fresh(kernel, "widen", [name, *counters])
    wide = output.dtype.compute_type
    if wide == output.dtype:
        raise ScheduleError(f"widen {output.name}: {wide.name} is computed with as it is")
    require_written(kernel, "widen", output)
    (value,) = (s.value for s in stores(kernel.body) if s.buffer == output.name)
    if (
        not isinstance(value, Cast)
        or value.operand.type.dtype != wide
        or any(e.buffer == output.name for e in loads(kernel.body))
    ):
        raise ScheduleError(f"widen {output.name}: what it holds is not computed in {wide.name}")

    def retyped(s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.buffer == output.name:
            return Store(name, s.indices, value.operand, s.mask)
        return s

    copy = Buffer(name, wide, output.shape, "heap")
    body = map_stmt(kernel.body, stmt=retyped)
    return dataclasses.replace(kernel, body=b.alloc(copy, b.block((body, _copying(copy, output, counters)))))


def _computed_type(kernel: Kernel, source: Buffer) -> DType:
    """Return the wider type that every read of a buffer is cast to."""
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
    """Convert all of one buffer into another."""
    places = tuple(b.var(c) for c in counters)
    move: Stmt = Store(copy.name, places, b.cast(copy.dtype, Load(source.name, places, source.dtype)))
    for counter, size in zip(reversed(counters), reversed(copy.shape), strict=True):
        move = For(counter, b.index(0), size, move)
    return move
