"""regroup: one loop of a sum inside another."""

from __future__ import annotations

from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Barrier, Binary, Call, For, Kernel, Load, Stmt, Store
from opgen.loop.walk import holds_loop, loads, loops_in, skeleton, stores
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_loops, rewrite_loops
from opgen.schedule.reorder import sunk
from opgen.schedule.values import LoopName


@primitive("sums", "regroup y_i, x_o", reorders_sums=True)
class Regroup(Step):
    """Moves one loop of a sum inside another: its terms come block by block."""

    loop: LoopName
    inside: LoopName

    def run(self, kernel: Kernel) -> Kernel:
        return regroup(kernel, self.loop, self.inside)


def regroup(kernel: Kernel, loop: str, inside: str) -> Kernel:
    """Take the terms of sums block by block: one loop of a sum moves inside another that it holds.

        for y in 0..h:                          for x_o in 0..w:
          for x_o in 0..w:                        for y in 0..h:
            for x_i in 0..4:              ->        for x_i in 0..4:
              acc = fma(a(y, x), b(y), acc)           acc = fma(a(y, x), b(y), acc)

    The loop must hold only steps of sums, each into an element that nothing else there reads.  The order of the sums
    changes, always in the same way: the result depends neither on lanes nor on threads.
    """
    require_loops(kernel, "regroup", [loop, inside])
    if loop == inside:
        raise ScheduleError(f"regroup {loop}: it cannot go inside itself", "name another loop of the sum")
    done: list[str] = []

    def rewrite(s: For, context: Context) -> Stmt:
        if not holds_loop(s.body, inside):
            return s
        _require_sums(s)
        done.append(s.var)
        return sunk(s, frozenset([inside]))

    after = rewrite_loops(kernel, loop, rewrite)
    if not done:
        raise ScheduleError(f"regroup {loop}: it does not hold the loop '{inside}'", "name the outer loop first")
    return after


def _require_sums(s: For) -> None:
    """Refuse a loop that does more than add terms, or that reads its own sums."""
    kinds = {p.kind for p in loops_in(s)}
    if kinds != {"serial"}:
        raise ScheduleError(f"regroup {s.var}: a loop there is already {max(kinds - {'serial'})}", "regroup before")
    if any(isinstance(p, Alloc | Barrier) for p in skeleton(s)):
        raise ScheduleError(f"regroup {s.var}: it holds more than steps of sums")
    steps = list(stores(s))
    if not all(_adds(p) for p in steps):
        raise ScheduleError(f"regroup {s.var}: it holds more than steps of sums")
    summed = {p.buffer for p in steps}
    read = loads(s)
    if sum(n.buffer in summed for n in read) != len(steps):
        raise ScheduleError(f"regroup {s.var}: what it adds up is read there")


def _adds(s: Store) -> bool:
    """Return True if a store adds one term to the element that it stores to."""
    target = Load(s.buffer, s.indices, s.value.type.dtype, s.mask)
    match s.value:
        case Binary(op="add", left=left):
            return left == target
        case Call("fma", (_, _, last)):
            return last == target
    return False
