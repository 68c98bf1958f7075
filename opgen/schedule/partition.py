"""partition: a loop's range in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Const, Expr, For, Kernel, Stmt
from opgen.loop.walk import substitute_expr, with_parts
from opgen.passes.fold import fold_all
from opgen.passes.scope import entered
from opgen.passes.simplify import simplify_expr, simplify_stmt
from opgen.schedule.declaration import Step, Varied, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_loops, rewrite_loops
from opgen.schedule.renaming import renamed, suffixed_names
from opgen.schedule.values import LoopName, NewName, Number


@primitive("loops", "partition x_o 1, -1", "partition x_o -1 -> left")
class Partition(Step):
    """Makes loops of their own of the first and the last tile: conditions are decided in the middle. With a name, what
    is in the last part ends with it: `x_o_left`.
    """

    loop: LoopName
    at: Annotated[tuple[Annotated[int, Number("CUT")], ...], Varied(lambda at: ((1,), (-1,), (1, -1), (2, -2)))]
    suffix: NewName | None = None

    def run(self, kernel: Kernel) -> Kernel:
        return partition(kernel, self.loop, self.at, self.suffix)


def partition(kernel: Kernel, loop: str, at: Sequence[int], suffix: str | None = None) -> Kernel:
    """Run a loop's range in two or three parts, so that conditions can be decided in each by itself.

        for x in 0..n: s(x)
    ->  (at 1, -1)
        for x in 0..min(1, n): s(x)
        for x in min(1, n)..max(min(1, n), n - 1): s(x)
        for x in max(min(1, n), n - 1)..n: s(x)

    A cut at c >= 0 counts from the loop's start, a negative one from its end.  The parts keep the loop's name.  With a
    suffix, the last part and everything declared in it get that suffix, so that later steps can name either part:

    ->  (at -1 -> left)
        for x in 0..n - 1: s(x)
        for x_left in n - 1..n: s(x_left)
    """
    require_loops(kernel, "partition", [loop])
    if not 1 <= len(at) <= 2 or (len(at) == 2 and at[0] < 0 <= at[1]):
        raise ScheduleError(f"partition {loop}: the cuts {', '.join(map(str, at))} are not one or two cuts in order")
    if len(at) == 2 and (at[0] < 0) == (at[1] < 0) and at[0] > at[1]:
        raise ScheduleError(f"partition {loop}: the cuts {at[0]}, {at[1]} are not in order")

    def rewrite(s: For, context: Context) -> Stmt:
        if s.kind not in ("serial", "parallel"):
            raise ScheduleError(f"partition {s.var}: the loop is already {s.kind}", "partition it before")
        edges = [s.start]
        for cut in at:
            edges.append(_edge(s, cut, edges[-1]))
        edges.append(s.stop)
        *parts, last = [_part(s, low, high, context) for low, high in pairwise(edges)]
        if suffix is not None:
            *parts, last = [_decided(p, context) for p in (*parts, last)]
            new = suffixed_names(last, suffix)
            require_fresh(kernel, "partition", new.values())
            last = renamed(last, new, {})
        return b.block((*parts, last))

    return rewrite_loops(kernel, loop, rewrite)


def _decided(s: Stmt, context: Context) -> Stmt:
    """Return a part, simplified with its own bounds if it is a loop."""
    if not isinstance(s, For):
        return s
    body = simplify_stmt(s.body, context.with_loop(s.var, s.start, s.stop))
    return For(s.var, s.start, s.stop, body, s.kind)


def _part(s: For, low: Expr, high: Expr, context: Context) -> Stmt:
    if isinstance(low, Const) and isinstance(high, Const) and high.value <= low.value:
        return b.EMPTY
    single = fold_all(b.sub(high, low)) == Const(1)
    values = {s.var: low} if single else {}
    return For(s.var, low, high, _bounded(s.body, context.with_loop(s.var, low, high), values), s.kind)


def _bounded(s: Stmt, context: Context, values: Mapping[str, Expr]) -> Stmt:
    """Return a statement with its loop ends simplified in this part: a shorter last tile gets a constant one."""
    if isinstance(s, For) and not isinstance(s.stop, Const):
        stop = simplify_expr(fold_all(substitute_expr(s.stop, values)), context)
        s = For(s.var, s.start, stop, s.body, s.kind)
    return with_parts(s, tuple(_bounded(p, c, values) for p, c in entered(s, context)))


def _edge(s: For, cut: int, previous: Expr) -> Expr:
    """Return the position of a cut, kept between the cut before it and the loop's end."""
    if cut >= 0:
        wanted = fold_all(b.add(s.start, cut))
        high = b.maximum(previous, s.stop) if previous is s.start else s.stop
        return b.minimum(b.maximum(previous, wanted) if previous is not s.start else wanted, high)
    return b.maximum(previous, fold_all(b.add(s.stop, cut)))
