"""recode: bytes kept with the other sign, 128 more or less."""

from __future__ import annotations

from typing import Annotated

from opgen.diagnostics import did_you_mean
from opgen.dtypes import INT8, INT32, UINT8, DType
from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Buffer, Cast, Const, Expr, For, Kernel, Load, Stmt, Store, Type
from opgen.loop.walk import buffers_in, loads, map_stmt, walk_exprs
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, with_body, with_buffer
from opgen.schedule.values import BufferName, Made

HALF = 128


@primitive("memory", "recode x -> x_recoded")
class Recode(Step):
    """Copies int8 as uint8, 128 more, or uint8 as int8, 128 less, so that factors have the signs that `pair` takes. A
    local buffer is kept so.
    """

    buffer: BufferName
    name: Annotated[str, Made("{buffer}_recoded")]

    def run(self, kernel: Kernel) -> Kernel:
        return recode(kernel, self.buffer, self.name)


def recode(kernel: Kernel, buffer: str, name: str) -> Kernel:
    """Read an int8 or uint8 input from a copy in the other of these types, or keep a local buffer in that type.

    The copy is made before anything else.

                                                  alloc x_signed: int8[c]
        for k: use(int32(x[k]))         ->        for i in 0..c: x_signed[i] = int8(int32(x[i]) - 128)
                                                  for k: use(int32(x_signed[k]) + 128)

    Every read must be cast to int32.
    """
    local = {o.name: o for o in buffers_in(kernel.body)}
    known = {i.name: i for i in kernel.inputs} | local
    if buffer not in known:
        raise ScheduleError(f"recode {buffer}: there is no such input or local buffer", did_you_mean(buffer, known))
    source = known[buffer]
    if source.dtype not in (INT8, UINT8):
        raise ScheduleError(f"recode {buffer}: it is {source.dtype}, not int8 or uint8")
    of = INT8 if source.dtype == UINT8 else UINT8
    apart = HALF if source.dtype == UINT8 else -HALF
    counters = [] if buffer in local else [f"{name}_{d}" for d in range(len(source.shape))]
    require_fresh(kernel, "recode", [name, *counters])
    reads = sum(e.buffer == buffer for e in loads(kernel.body))
    if reads != sum(_is_cast(e, buffer) for e in walk_exprs(kernel.body)):
        raise ScheduleError(f"recode {buffer}: not every read of it is cast to int32")

    def moved(e: Expr) -> Expr:
        if not _is_cast(e, buffer) or not isinstance(e, Cast) or not isinstance(e.operand, Load):
            return e
        read = Load(name, e.operand.indices, of, e.operand.mask)
        return b.add(Cast(e.type, read), Const(apart, Type(INT32, e.type.lanes)))

    def retyped(s: Stmt) -> Stmt:
        match s:
            case Alloc():
                return with_buffer(s, buffer, lambda o: Buffer(name, of, o.shape, o.space))
            case Store() if s.buffer == buffer:
                return Store(name, s.indices, _shifted(s.value, -apart, of), s.mask)
            case _:
                return s

    body = map_stmt(kernel.body, expr=moved, stmt=retyped)
    if buffer in local:
        return with_body(kernel, body)
    places = tuple(b.var(c) for c in counters)
    copying: Stmt = Store(name, places, _shifted(Load(buffer, places, source.dtype), -apart, of))
    for counter, size in zip(reversed(counters), reversed(source.shape), strict=True):
        copying = For(counter, b.index(0), size, copying)
    copy = Buffer(name, of, source.shape, "heap")
    return with_body(kernel, b.alloc(copy, b.block((copying, body))))


def _shifted(e: Expr, by: int, of: DType) -> Expr:
    """Return an 8-bit integer plus `by`, in the type of the other sign."""
    return b.cast(of, b.add(b.cast(INT32, e), Const(by, Type(INT32, e.type.lanes))))


def _is_cast(e: Expr, buffer: str) -> bool:
    """Return True if an expression is an element of a buffer, cast to int32."""
    return isinstance(e, Cast) and e.type.dtype == INT32 and isinstance(e.operand, Load) and e.operand.buffer == buffer
