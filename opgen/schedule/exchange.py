"""Detection of data exchange between threads of a block, which would need barriers that no step inserts.

    block.x d:                                       a thread reads in step t + 1 what others wrote in step t
      for t: thread.x j: h[t + 1, d, j] = f(h[t, d])

If each step is a launch of its own, with only host loops around it, the device waits in between.
"""

from __future__ import annotations

from itertools import combinations

from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.dependence import why_dependent
from opgen.loop.nodes import Barrier, Block, For, Kernel, Stmt
from opgen.loop.walk import buffers_in, loops_in, skeleton, stores, touched
from opgen.passes.scope import entered
from opgen.schedule.errors import ScheduleError


def require_no_exchange(kernel: Kernel, step: str, loop: str) -> None:
    """Refuse a loop given to blocks or threads if one thread reads data that another one writes in the same launch."""
    reason = _within(kernel.body, Context.of(kernel), loop, launched=False)
    if reason is not None:
        raise ScheduleError(f"{step} {loop}: {reason}, and its threads would not wait", "leave the loop to the host")


def _within(s: Stmt, context: Context, loop: str, launched: bool) -> str | None:
    """Return a description of the data that threads would exchange in launches that hold the loop, or None."""
    inside = list(loops_in(s))
    if not any(p.kind.startswith("thread") for p in inside):
        return None
    if isinstance(s, For):
        if "." in s.kind and not launched:
            if all(p.var != loop for p in inside):
                return None
            launched = True
        elif launched and "." not in s.kind and not _waits(s.body):
            reason = why_dependent(s, context)
            if reason is not None:
                return reason
    if isinstance(s, Block) and launched:
        for first, second in combinations(s.statements, 2):
            if (_threaded(first) or _threaded(second)) and not _waits(s) and (shared := _shared(first, second)):
                return f"two statements touch '{shared}'"
    return next((found for p, c in entered(s, context) if (found := _within(p, c, loop, launched))), None)


def _waits(s: Stmt) -> bool:
    """Return True if barriers are there already."""
    return any(isinstance(p, Barrier) for p in skeleton(s))


def _threaded(s: Stmt) -> bool:
    return any(p.kind.startswith("thread") for p in loops_in(s))


def _shared(first: Stmt, second: Stmt) -> str | None:
    """Return a buffer that one statement writes and the other touches."""
    own = {o.name for s in (first, second) for o in buffers_in(s)}
    written = {p.buffer for s in (first, second) for p in stores(s)}
    both = (touched(first) & touched(second) & written) - own
    return min(both, default=None)
