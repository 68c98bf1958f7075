"""pack: an input copied, once, into another order of its dimensions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Buffer, Expr, For, Kernel, Load, Stmt, Store
from opgen.loop.walk import map_stmt
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_loops, rewrite_loops
from opgen.schedule.stage import stage


def pack(
    kernel: Kernel,
    buffer: str,
    order: Sequence[int],
    name: str | None = None,
    at: str | None = None,
    loop: str | None = None,
) -> Kernel:
    """Work on a copy of an input whose dimensions are in another order, made before anything else.

                                                alloc w_packed[c, r]
        for k: for r: use(w[r, k])      ->      for w_packed_0 in 0..c: for w_packed_1 in 0..r:
                                                  w_packed[w_packed_0, w_packed_1] = w[w_packed_1, w_packed_0]
                                                for k: for r: use(w_packed[k, r])

    `order` names, for each dimension of the copy, the dimension of the input that stands there.  With a loop `at`, each
    of its iterations makes a copy of what it reads; or, of an output, works on a copy of what it writes.  With `loop`,
    what is outside of it goes on reading the input itself.
    """
    known = {i.name: i for i in (kernel.inputs if at is None else kernel.buffers)}
    if buffer not in known:
        raise ScheduleError(f"pack {buffer}: there is no such input", did_you_mean(buffer, known))
    source = known[buffer]
    if sorted(order) != list(range(len(source.shape))):
        shown = ", ".join(map(str, order))
        raise ScheduleError(f"pack {buffer}: {shown} is not an order of its {len(source.shape)} dimensions")
    name = name or f"{buffer}_packed"
    if at is not None and loop is not None:
        raise ScheduleError(f"pack {buffer}: a copy made in each iteration of '{at}' is for all of it", "leave out in=")
    if at is not None:
        return stage(kernel, buffer, at, "heap", name=name, order=order)
    counters = [f"{name}_{d}" for d in range(len(order))]
    require_fresh(kernel, "pack", [name, *counters])
    copy = Buffer(name, source.dtype, tuple(source.shape[d] for d in order), "heap")

    def redirected(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer == buffer:
            return Load(name, tuple(e.indices[d] for d in order), e.dtype, e.mask)
        return e

    if loop is None:
        body = map_stmt(kernel.body, expr=redirected)
    else:
        require_loops(kernel, "pack", [loop])
        body = rewrite_loops(kernel, loop, lambda s, _: map_stmt(s, expr=redirected)).body
    return dataclasses.replace(kernel, body=Alloc(copy, b.block((_copying(source, copy, order, counters), body))))


def _copying(source: Buffer, copy: Buffer, order: Sequence[int], counters: Sequence[str]) -> Stmt:
    places: list[Expr] = [b.index(0)] * len(order)
    for position, dimension in enumerate(order):
        places[dimension] = b.var(counters[position])
    move: Stmt = Store(copy.name, tuple(b.var(c) for c in counters), Load(source.name, tuple(places), source.dtype))
    for counter, size in zip(reversed(counters), reversed(copy.shape), strict=True):
        move = For(counter, b.index(0), size, move)
    return move
