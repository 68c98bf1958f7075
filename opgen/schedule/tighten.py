"""tighten: a condition becomes bounds."""

from __future__ import annotations

from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import For, Kernel, Stmt
from opgen.passes.tighten import tighten_loop
from opgen.schedule.errors import ScheduleError
from opgen.schedule.lanes import require_all_even
from opgen.schedule.loops import require_loops, rewrite_loops


def tighten(kernel: Kernel, loop: str) -> Kernel:
    """Take a condition on a loop's own variable, affine in it, into the loop's bounds.

    for r in 0..n:               for r in max(0, p)..min(n, q):
      if p <= r and r < q: s  ->   s
    """
    require_loops(kernel, "tighten", [loop])

    def rewrite(s: For, context: Context) -> Stmt:
        new = tighten_loop(s, context)
        if new is s:
            raise ScheduleError(f"tighten {s.var}: its body is not a condition that can become bounds of it")
        return new

    after = rewrite_loops(kernel, loop, rewrite)
    require_all_even(after, f"tighten {loop}")
    return after
