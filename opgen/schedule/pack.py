"""pack: an input or output kept, once, with its dimensions in another order."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop.nodes import Buffer, Expr, For, Kernel, Load, Stmt, Store
from opgen.loop.walk import map_stmt
from opgen.schedule.box import Indices
from opgen.schedule.declaration import Option, Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_loops, rewrite_loops
from opgen.schedule.stage import stage
from opgen.schedule.values import BufferName, Dimension, LoopName, Made
from opgen.schedule.written import require_written


@primitive(
    "memory",
    "pack filter 0, 1, 3, 2 -> filter_packed",
    "pack filter 0, 1, 3, 2 at=k_o -> panel",
    "pack input 0, 3, 1, 2 in=x_o -> copy",
)
class Pack(Step):
    """Copies an input once, with its dimensions in another order; an output is copied out at the end. With `at`: what
    each iteration of a loop reads, or writes. With `in`: for reads inside a loop only.
    """

    buffer: BufferName
    order: tuple[Dimension, ...]
    name: Annotated[str, Made("{buffer}_packed")]
    at: Annotated[LoopName | None, Option()] = None
    loop: Annotated[LoopName | None, Option(name="in")] = None

    def run(self, kernel: Kernel) -> Kernel:
        return pack(kernel, self.buffer, self.order, self.name, self.at, self.loop)


def pack(kernel: Kernel, buffer: str, order: Sequence[int], name: str, at: str | None, loop: str | None) -> Kernel:
    """Work on a copy of an input or output with its dimensions in another order.

    The copy of an input is made before anything else.  An output is copied out after everything else, and must be
    written as a whole.

                                                alloc w_packed[c, r]
        for k: for r: use(w[r, k])      ->      for w_packed_0 in 0..c: for w_packed_1 in 0..r:
                                                  w_packed[w_packed_0, w_packed_1] = w[w_packed_1, w_packed_0]
                                                for k: for r: use(w_packed[k, r])

    `order` gives, for each dimension of the copy, the dimension of the original.  With a loop `at`, each of its
    iterations copies the part that it reads; or, of an output, works on a copy of the part that it writes.  With
    `loop`, code outside that loop still reads the input itself.
    """
    known = {i.name: i for i in kernel.buffers}
    if buffer not in known:
        raise ScheduleError(f"pack {buffer}: there is no such input or output", did_you_mean(buffer, known))
    source = known[buffer]
    if sorted(order) != list(range(len(source.shape))):
        shown = ", ".join(map(str, order))
        raise ScheduleError(f"pack {buffer}: {shown} is not an order of its {len(source.shape)} dimensions")
    if at is not None and loop is not None:
        raise ScheduleError(f"pack {buffer}: a copy made in each iteration of '{at}' is for all of it", "leave out in=")
    if at is not None:
        return stage(kernel, buffer, at, "heap", False, name, order)
    counters = [f"{name}_{d}" for d in range(len(order))]
    require_fresh(kernel, "pack", [name, *counters])
    copy = Buffer(name, source.dtype, tuple(source.shape[d] for d in order), "heap")

    def moved(indices: Indices) -> Indices:
        return tuple(indices[d] for d in order)

    def expr(e: Expr) -> Expr:
        return Load(name, moved(e.indices), e.dtype, e.mask) if isinstance(e, Load) and e.buffer == buffer else e

    def stmt(s: Stmt) -> Stmt:
        return Store(name, moved(s.indices), s.value, s.mask) if isinstance(s, Store) and s.buffer == buffer else s

    out = buffer in {o.name for o in kernel.outputs}
    copying = _copying(source, copy, order, counters, out)
    if out:
        require_written(kernel, "pack", source)
    if loop is None:
        body = map_stmt(kernel.body, expr=expr, stmt=stmt)
    elif out:
        raise ScheduleError(f"pack {buffer}: an output is copied for all that writes it", "leave out in=")
    else:
        require_loops(kernel, "pack", [loop])
        body = rewrite_loops(kernel, loop, lambda s, _: map_stmt(s, expr=expr)).body
    parts = (body, copying) if out else (copying, body)
    return dataclasses.replace(kernel, body=b.alloc(copy, b.block(parts)))


def _copying(source: Buffer, copy: Buffer, order: Sequence[int], counters: Sequence[str], out: bool) -> Stmt:
    places: list[Expr] = [b.index(0)] * len(order)
    for position, dimension in enumerate(order):
        places[dimension] = b.var(counters[position])
    here = tuple(b.var(c) for c in counters)
    move: Stmt = Store(copy.name, here, Load(source.name, tuple(places), source.dtype))
    if out:
        move = Store(source.name, tuple(places), Load(copy.name, here, copy.dtype))
    for counter, size in zip(reversed(counters), reversed(copy.shape), strict=True):
        move = For(counter, b.index(0), size, move)
    return move
