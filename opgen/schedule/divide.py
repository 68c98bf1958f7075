"""divide: parts of a sum with results of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from opgen.loop import build as b
from opgen.loop.nodes import Buffer, Const, Expr, For, Kernel, Load, Space, Stmt, Store
from opgen.loop.walk import loads, map_stmt, stores, substitute, substitute_expr
from opgen.passes.unroll import constant_extent
from opgen.schedule.box import is_too_large
from opgen.schedule.declaration import Option, Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_loops, rewrite_loops
from opgen.schedule.reduction import Reduction, Search, operation
from opgen.schedule.values import LoopName, Made, OneOf

MOST = 256
"""Largest number of parts: the final sum has a term for each."""


@primitive("sums", "divide n_p at=k_o space=heap -> sums", reorders_sums=True)
class Divide(Step):
    """Takes a reduction's loop outside those over results, with results of its own for each iteration, added up at the
    end, so that threads (or lanes, `space=stack`) share them.
    """

    loop: LoopName
    at: Annotated[LoopName, Option(lacks="the loop outside which to go")]
    sums: Annotated[str, Made("{loop}_sums")]
    space: Annotated[Space, OneOf(("heap", "stack", "register")), Option("heap")] = "heap"

    def run(self, kernel: Kernel) -> Kernel:
        return divide(kernel, self.loop, self.at, self.sums, self.space)


def divide(kernel: Kernel, loop: str, at: str, name: str, space: Space) -> Kernel:
    """Move the outermost loop of a sum outside the loops over its results, from `at` inwards.

    Each iteration has results of its own, which are added up at the end, neighbours first.

                                                alloc sums[4, n]
        for k in 0..n:                          for r in 0..4:
          alloc acc                               for k in 0..n:
          acc = 0                                   alloc acc
          for r in 0..4:                  ->        acc = 0
            acc = acc + f(k, r)                     acc = acc + f(k, r)
          y[k] = acc                                sums[r, k] = acc
                                                for sums_k in 0..n:
                                                  y[sums_k] = (sums[0, sums_k] + sums[1, sums_k]) + ...

    The epilogue of a sum runs once, on the total.  The iterations of `r` are independent, so threads can share them, or
    lanes, whose results may be on the stack.  The results must have the accumulator's type if the epilogue reads the
    sum more than once.  All loops must have known extents, and nothing may stand between them.  The order of the sum
    changes, always in the same way: the result depends neither on lanes nor on threads.
    """
    require_loops(kernel, "divide", [loop, at])
    if loop == at:
        raise ScheduleError(f"divide {loop}: it cannot go outside of itself", "name a loop over results")
    step = _Divide(Search(kernel, "divide", loop, narrow=True), name, space, kernel)
    return rewrite_loops(kernel, at, lambda s, context: step.rewrite(step.search.run(s, context)))


@dataclass(frozen=True)
class _Divide:
    search: Search
    name: str
    space: Space
    kernel: Kernel

    def rewrite(self, found: Reduction) -> Stmt:
        loop, acc = found.loop, found.acc.buffer
        parts, *extents = map(self._extent, (loop, *found.around))
        self._require_sum(found)
        if parts > MOST:
            raise self.search.refuse(f"{parts} parts are too many", f"split it into up to {MOST} first")
        counters = [f"{self.name}_{s.var}" for s in found.around]
        require_fresh(self.kernel, f"divide {loop.var}", [self.name, *counters])
        sums = Buffer(self.name, acc.dtype, tuple(map(Const, (parts, *extents))), self.space)
        if is_too_large(sums):
            raise self.search.refuse(f"'{self.name}' is too large for the {self.space}", "put it in heap")
        place = tuple(b.var(s.var) for s in (loop, *found.around))
        inside = found.inside(found.start, Store(self.name, place, found.kept))
        each = For(loop.var, loop.start, loop.stop, inside, loop.kind)
        return b.alloc(sums, b.block((each, self._total(found, parts, counters, extents))))

    def _total(self, found: Reduction, parts: int, counters: list[str], extents: list[int]) -> Stmt:
        """Return the code that adds up all parts of each result."""
        here = {s.var: b.var(c) for s, c in zip(found.around, counters, strict=True)}
        terms: list[Expr] = [Load(self.name, (Const(p), *here.values()), found.kept.dtype) for p in range(parts)]
        total = self._made(found, _tree(terms), here)
        for counter, extent in zip(reversed(counters), reversed(extents), strict=True):
            total = For(counter, Const(0), Const(extent), total)
        return total

    def _made(self, found: Reduction, whole: Expr, here: Mapping[str, Expr]) -> Stmt:
        """Return the epilogue for a total; if it reads the total more than once, store that in the result first."""
        end, result = substitute(found.end, here), found.result
        if sum(e == found.kept for e in loads(end)) <= 1:
            return map_stmt(end, expr=lambda e: whole if e == found.kept else e)
        if result.value.type.dtype != found.kept.dtype:
            raise self.search.refuse(f"'{result.buffer}' has another type than the sum that would wait in it")
        at = tuple(substitute_expr(i, here) for i in result.indices)
        summed = Load(result.buffer, at, found.kept.dtype)
        made = map_stmt(end, expr=lambda e: summed if e == found.kept else e)
        return b.block((Store(result.buffer, at, whole), made))

    def _extent(self, s: For) -> int:
        extent = constant_extent(s)
        if extent is None or s.start != Const(0):
            raise self.search.refuse(f"'{s.var}' is not known to run from 0 to a constant")
        return extent

    def _require_sum(self, found: Reduction) -> None:
        """Refuse unless the accumulator starts at 0 and each step adds to it."""
        acc = found.acc.buffer.name
        steps = [s for s in stores(found.loop) if s.buffer == acc]
        begun = isinstance(found.start, Store) and isinstance(found.start.value, Const) and found.start.value.value == 0
        sums = all(operation(s) == "add" for s in steps)
        if not begun or not sums or sum(e.buffer == acc for e in loads(found.loop)) != len(steps):
            raise self.search.refuse("it is not the loop of a sum that starts at 0")


def _tree(terms: Sequence[Expr]) -> Expr:
    """Return the sum of neighbours, of neighbouring pairs, and so on."""
    while len(terms) > 1:
        pairs = [b.add(*terms[k : k + 2]) for k in range(0, len(terms) - 1, 2)]
        terms = [*pairs, *terms[2 * len(pairs) :]]
    return terms[0]
