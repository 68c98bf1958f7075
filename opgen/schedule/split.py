"""split: one loop into two."""

from __future__ import annotations

from typing import Annotated, Literal

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Binary, Const, Expr, For, Kernel, Stmt
from opgen.loop.walk import buffers_in, free_vars, loads, loops_in, map_stmt, reads_memory, stores
from opgen.passes.fold import fold, fold_all, without_multiples
from opgen.passes.unroll import expand
from opgen.schedule.declaration import Option, Step, Varied, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import extent, require_fresh, require_independent, require_loops, rewrite_loops
from opgen.schedule.values import LoopName, Made

Tail = Literal["guard", "min", "overlap", "exact"]


@primitive("loops", "split x 14 tail=exact -> x_o, x_i")
class Split(Step):
    """Cuts a loop into tiles. Tails are `exact`, `guard` (a condition), `min` (a shorter last tile) and `overlap` (the
    last tile shifted back).
    """

    loop: LoopName
    factor: Annotated[int, Varied(_near)]
    tail: Annotated[Tail, Option("guard"), Varied(lambda tail: ("exact", "overlap", "guard"))]
    outer: Annotated[str, Made("{loop}_o")]
    inner: Annotated[str, Made("{loop}_i")]

    def run(self, kernel: Kernel) -> Kernel:
        return split(kernel, self.loop, self.factor, self.tail, self.outer, self.inner)


def _near(factor: int) -> list[int]:
    """Return other sizes of a tile: near ones, halves and doubles."""
    near = (factor // 2, factor * 2, factor - 1, factor + 1, factor - 2, factor + 2, factor * 3 // 2, factor * 4)
    return [f for f in near if f > 1]


def split(kernel: Kernel, loop: str, factor: int, tail: Tail, outer: str, inner: str) -> Kernel:
    """Split a loop into tiles of `factor` iterations.

        for x in 0..n: s(x)
    ->
        for x_o in 0..ceildiv(n, factor):
          for x_i in 0..factor:
            if x_o*factor + x_i < n: s(x_o*factor + x_i)

    Tails, where `factor` does not divide n: "guard" as above; "min" ends the inner loop at min(factor, n - x_o*factor);
    "overlap" shifts the last tile back to begin at n - factor (n >= factor must be provable, and doing an iteration
    twice must do no harm); "exact" refuses unless `factor` is proved to divide n.

    If `factor` does not divide n, the tails differ: "guard" as above; "min" ends the inner loop at min(factor, n -
    x_o*factor); "overlap" shifts the last tile back to begin at n - factor; "exact" refuses unless `factor` provably
    divides n.  For "overlap", n >= factor must be provable, and a repeated iteration must do no harm.
    """
    require_loops(kernel, "split", [loop])
    require_fresh(kernel, "split", [outer, inner], replaced=[loop])
    if factor < 1:
        raise ScheduleError(f"split {loop}: the factor is {factor}", "a factor is at least 1")
    names = (outer, inner)
    return rewrite_loops(kernel, loop, lambda s, context: _split(s, context, factor, tail, names))


def _split(s: For, context: Context, factor: int, tail: Tail, names: tuple[str, str]) -> Stmt:
    if s.kind not in ("serial", "parallel"):
        raise ScheduleError(f"split {s.var}: the loop is already {s.kind}", "split it before")
    n = extent(s)
    divides = _divides(n, factor, context)
    if tail == "exact" and not divides:
        raise ScheduleError(f"split {s.var}: {factor} is not known to divide its extent", "use another tail")
    if tail == "overlap" and not divides:
        return _overlapped(s, context, n, factor, names)
    outer, inner = b.var(names[0]), b.var(names[1])
    begin = fold_all(b.mul(outer, factor))
    position = fold_all(b.add(b.add(s.start, begin), inner))
    body = _remainders(expand(s.body, {s.var: position}), names, factor, context)
    stop: Expr = Const(factor)
    if not divides and tail == "min":
        stop = b.minimum(stop, b.sub(n, begin))
    elif not divides:
        body = b.when(b.compare("lt", b.add(begin, inner), n), body)
    tiles = b.floordiv(n, factor) if divides else b.ceildiv(n, factor)
    return For(names[0], Const(0), fold_all(tiles), For(names[1], Const(0), stop, body), s.kind)


def _remainders(body: Stmt, names: tuple[str, str], factor: int, context: Context) -> Stmt:
    """Drop multiples of the factor, which the loop over tiles adds, from remainders by the factor.

    Remainders of tensor elements stay, as these may have wrapped.  Expressions of loops and sizes do not reach 2**62
    (`loop/nodes.py`).
    """
    loops = {*names, *(p.var for p in loops_in(body)), *(context.order.keys() - context.values.keys())}

    def without(e: Expr) -> Expr:
        if not isinstance(e, Binary) or e.op != "mod" or e.right != Const(factor):
            return e
        if names[0] not in free_vars(e.left) or not free_vars(e.left) <= loops or reads_memory(e.left):
            return e
        return fold(Binary("mod", without_multiples(e.left, factor), e.right))

    return map_stmt(body, expr=without)


def _divides(n: Expr, factor: int, context: Context) -> bool:
    if isinstance(n, Const):
        return int(n.value) % factor == 0
    return factor == 1 or context.proves(b.compare("eq", b.mod(n, factor), 0))


def _overlapped(s: For, context: Context, n: Expr, factor: int, names: tuple[str, str]) -> Stmt:
    require_independent(s, context, "split")
    if not context.proves(b.compare("ge", n, factor)):
        raise ScheduleError(
            f"split {s.var}: the extent is not known to be at least {factor}", "overlapping tiles need a whole one"
        )
    if s.kind == "parallel":
        raise ScheduleError(f"split {s.var}: overlapping tiles are not independent", "split before parallel")
    _require_repeatable(s)
    outer, inner = b.var(names[0]), b.var(names[1])
    begin = b.minimum(b.mul(outer, factor), fold_all(b.sub(n, factor)))
    body = expand(s.body, {s.var: fold_all(b.add(b.add(s.start, begin), inner))})
    return For(names[0], Const(0), fold_all(b.ceildiv(n, factor)), For(names[1], Const(0), Const(factor), body), s.kind)


def _require_repeatable(s: For) -> None:
    """Refuse an iteration that reads data it also writes, beyond its own allocations: it cannot run twice."""
    own = {o.name for o in buffers_in(s.body)}
    written = {p.buffer for p in stores(s.body)} - own
    read = sorted({e.buffer for e in loads(s.body)} & written)
    if read:
        raise ScheduleError(
            f"split {s.var}: an iteration reads '{read[0]}', which it also writes, so it cannot be done twice",
            "use another tail",
        )
