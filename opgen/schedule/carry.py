"""carry: a loop of a reduction outside the loops over results."""

from __future__ import annotations

from typing import Annotated

from opgen.loop import build as b
from opgen.loop.nodes import For, If, Kernel, Load, Stmt, Store
from opgen.schedule.declaration import Option, Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_loops, rewrite_loops
from opgen.schedule.reduction import Reduction, Search
from opgen.schedule.values import LoopName


@primitive("sums", "carry r at=k_o")
class Carry(Step):
    """Takes a reduction's outermost loop outside the loops over results from `k_o` inwards; partial sums wait in the
    results.
    """

    loop: LoopName
    at: Annotated[LoopName, Option(lacks="the loop outside which to go")]

    def run(self, kernel: Kernel) -> Kernel:
        return carry(kernel, self.loop, self.at)


def carry(kernel: Kernel, loop: str, at: str) -> Kernel:
    """Move the outermost loop of a reduction outside the loops over its results, from `at` inwards.

    The partial sums are kept in the results themselves.

        for k in 0..m:                          for r in 0..n:
          alloc acc                               for k in 0..m:
          acc = 0                                   alloc acc
          for r in 0..n:                    ->      if r == 0: acc = 0
            acc = f(acc, k, r)                      else: acc = y[k]
          y[k] = acc                                acc = f(acc, k, r)
                                                    y[k] = acc

    The epilogue of a sum, `y[k] = g(acc)`, runs on the final sum only: `if r == n - 1: y[k] = g(acc)`, `else: y[k] =
    acc`.  The order of each sum is unchanged.  The results must have the accumulator's type, and nothing may stand
    between the loops.  Conditions around the reduction move into it.
    """
    require_loops(kernel, "carry", [loop, at])
    if loop == at:
        raise ScheduleError(f"carry {loop}: it cannot be carried out of itself", "name a loop over results")
    search = Search(kernel, "carry", loop)
    return rewrite_loops(kernel, at, lambda s, context: _carried(search.run(s, context)))


def _carried(found: Reduction) -> Stmt:
    loop, result = found.loop, found.result
    first = b.compare("eq", b.var(loop.var), loop.start)
    waited = Load(result.buffer, result.indices, found.kept.dtype)
    resumed = If(first, found.start, Store(found.kept.buffer, found.kept.indices, waited))
    end, waits = found.end, Store(result.buffer, result.indices, found.kept)
    if end != waits:
        end = If(b.compare("eq", b.var(loop.var), b.sub(loop.stop, b.index(1))), end, waits)
    return For(loop.var, loop.start, loop.stop, found.inside(resumed, end), loop.kind)
