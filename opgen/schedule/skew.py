"""skew: a loop over its sum with another, which brings code that depends on the sum alone together."""

from __future__ import annotations

from typing import Annotated

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Const, For, Kernel, Stmt
from opgen.loop.walk import holds_loop, loops_in
from opgen.passes.fold import fold_all
from opgen.passes.unroll import constant_extent, expand
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import is_independent, require_fresh, require_loops, rewrite_loops
from opgen.schedule.values import LoopName, Made


@primitive("loops", "skew r, y_i 1 -> r_y")
class Skew(Step):
    """Loops over `r + 1*y_i` in place of `r`, so that what depends on the sum alone stands together."""

    outer: LoopName
    inner: LoopName
    factor: int
    name: Annotated[str, Made("{outer}_{inner}")]

    def run(self, kernel: Kernel) -> Kernel:
        return skew(kernel, self.outer, self.inner, self.factor, self.name)


def skew(kernel: Kernel, outer: str, inner: str, factor: int, name: str) -> Kernel:
    """Run a loop over `outer + factor*inner` instead of `outer`.

        for r in 0..3:                          for r_y in 0..6:
          for y in 0..4: s(r, y)      ->          for y in 0..4:
          (factor 1)                                if r_y - y >= 0 and r_y - y < 3: s(r_y - y, y)

    Both loops need constant bounds, and the inner must be the outer's whole body; other loops of its name stay.  Terms
    of a sum keep their order.  Therefore the iterations of `inner` must be independent, or else those of `outer`, with
    a positive factor.
    """
    require_loops(kernel, "skew", [outer, inner])
    require_fresh(kernel, "skew", [name])
    if factor == 0:
        raise ScheduleError(f"skew {outer}: the factor is 0", "a factor is positive or negative")
    held = [s for s in loops_in(kernel.body) if s.var == outer and _holds(s, inner)]
    if not held:
        raise ScheduleError(f"skew {outer}: '{inner}' is not the only thing inside it", "reorder the loops first")

    def rewrite(s: For, context: Context) -> Stmt:
        return _skewed(s, context, inner, factor, name) if s in held else s

    return rewrite_loops(kernel, outer, rewrite)


def _holds(s: For, name: str) -> bool:
    return holds_loop(s.body, name)


def _skewed(s: For, context: Context, inner: str, factor: int, name: str) -> Stmt:
    t = s.body
    if not isinstance(t, For) or t.var != inner:
        raise ScheduleError(f"skew {s.var}: '{inner}' is not the only thing inside it", "reorder the loops first")
    for loop in (s, t):
        if loop.kind != "serial":
            raise ScheduleError(f"skew {s.var}: the loop '{loop.var}' is already {loop.kind}", "skew before")
    low, high = _bounds(s, s)
    first, last = _bounds(t, s)
    _require_order(s, t, context, factor)
    reach = (factor * first, factor * (last - 1))
    own = fold_all(b.sub(b.var(name), b.mul(b.var(inner), factor)))
    within = b.both(b.compare("ge", own, low), b.compare("lt", own, high))
    body = For(inner, t.start, t.stop, b.when(within, expand(t.body, {s.var: own})))
    return For(name, Const(low + min(reach)), Const(high + max(reach)), body)


def _bounds(loop: For, skewed: For) -> tuple[int, int]:
    if not (isinstance(loop.start, Const) and isinstance(loop.stop, Const)) or constant_extent(loop) == 0:
        raise ScheduleError(f"skew {skewed.var}: the bounds of '{loop.var}' are not constant", "split it first")
    return int(loop.start.value), int(loop.stop.value)


def _require_order(s: For, t: For, context: Context, factor: int) -> None:
    """Refuse a skew that may change the order of dependent iterations.

    They keep it if they have the same `t`, or the same `s` and a rising sum.
    """
    across = For(t.var, t.start, t.stop, For(s.var, s.start, s.stop, t.body))
    if is_independent(across, context) or (factor > 0 and is_independent(s, context)):
        return
    raise ScheduleError(
        f"skew {s.var}: neither the iterations of '{t.var}' nor those of '{s.var}' are known to be independent",
        "one iteration may write what another reads or writes",
    )
