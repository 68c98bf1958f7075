"""fission: a loop over several statements into a loop for each."""

from __future__ import annotations

from collections.abc import Sequence

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Barrier, Block, Check, For, Kernel, Load, Stmt
from opgen.loop.walk import stores, substitute, walk, walk_expr
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_independent, require_loops, rewrite_loops
from opgen.schedule.values import LoopName, NewName


@primitive("loops", "fission d -> d_1")
class Fission(Step):
    """Makes a loop for each statement of one over two statements."""

    loop: LoopName
    names: tuple[NewName, ...]

    def run(self, kernel: Kernel) -> Kernel:
        return fission(kernel, self.loop, self.names)


def fission(kernel: Kernel, loop: str, names: Sequence[str] = ()) -> Kernel:
    """Give each statement of a loop's body a loop of its own; the first keeps the name.

        for d in 0..n:                      for d in 0..n: s(d)
          s(d)                ->            for d_1 in 0..n: t(d_1)
          t(d)

    Refused if one iteration may write data that another one or the loop's bounds read, or that another one writes.
    Refused also if statements share a buffer that is declared in the loop.
    """
    require_loops(kernel, "fission", [loop])

    def rewrite(s: For, context: Context) -> Stmt:
        if s.kind not in ("serial", "parallel"):
            raise ScheduleError(f"fission {s.var}: the loop is already {s.kind}", "divide it before")
        if not isinstance(s.body, Block) or len(s.body.statements) < 2:
            raise ScheduleError(f"fission {s.var}: its body is not several statements")
        if any(isinstance(p, Barrier | Check) for p in walk(s.body)):
            raise ScheduleError(f"fission {s.var}: a check or barrier in it must stay where it is")
        require_independent(s, context, "fission")
        read = {e.buffer for bound in (s.start, s.stop) for e in walk_expr(bound) if isinstance(e, Load)}
        if read & {p.buffer for p in stores(s)}:
            raise ScheduleError(f"fission {s.var}: its body writes what its bounds read")
        first, *others = s.body.statements
        counters = list(names) or [f"{loop}_{n}" for n in range(1, len(others) + 1)]
        if len(counters) != len(others):
            raise ScheduleError(f"fission {s.var}: {len(others)} names are needed, {len(counters)} are given")
        require_fresh(kernel, "fission", counters)
        parts = [
            For(n, s.start, s.stop, substitute(p, {s.var: b.var(n)}), s.kind)
            for n, p in zip(counters, others, strict=True)
        ]
        return b.block((For(s.var, s.start, s.stop, first, s.kind), *parts))

    return rewrite_loops(kernel, loop, rewrite)
