"""tighten: a condition becomes bounds."""

from __future__ import annotations

from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import For, Kernel, Stmt
from opgen.loop.walk import holds_loop, map_stmt, substitute
from opgen.passes.straight import straightened
from opgen.passes.tighten import tighten_loop
from opgen.passes.unroll import constant_extent
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.lanes import require_all_even
from opgen.schedule.loops import require_loops, rewrite_loops, with_body
from opgen.schedule.values import LoopName


@primitive("loops", "tighten r")
class Tighten(Step):
    """Makes a condition on a loop its bounds. Of a loop with one iteration the body is left."""

    loop: LoopName

    def run(self, kernel: Kernel) -> Kernel:
        return tighten(kernel, self.loop)


def tighten(kernel: Kernel, loop: str) -> Kernel:
    """Take a condition on a loop's own variable, affine in it, into the loop's bounds.

    for r in 0..n:               for r in max(0, p)..min(n, q):
      if p <= r and r < q: s  ->   s

    A loop of one iteration becomes its body, as where `0 <= c - g*10 < 10` leaves `g = c // 10` of a sum over `g`.
    """
    require_loops(kernel, "tighten", [loop])

    def rewrite(s: For, context: Context) -> Stmt:
        new = tighten_loop(s, context)
        if new is s:
            raise ScheduleError(f"tighten {s.var}: its body is not a condition that can become bounds of it")
        single = isinstance(new, For) and constant_extent(new) == 1
        return substitute(new.body, {new.var: new.start}) if single and isinstance(new, For) else new

    after = rewrite_loops(kernel, loop, rewrite)
    if not holds_loop(after.body, loop):
        after = with_body(after, map_stmt(after.body, stmt=straightened))
    require_all_even(after, f"tighten {loop}")
    return after
