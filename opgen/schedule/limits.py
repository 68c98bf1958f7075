"""Limits on a schedule's result: the amount of code, lanes, stack memory and nesting of loops.

The limits are far above the needs of any fast loop nest (the automatic scheduler stays below a tenth of each).  Beyond
them compilers take minutes, run out of memory or abort.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from opgen.loop.nodes import Alloc, For, Kernel, Stmt
from opgen.loop.walk import loops_in, outermost, parts
from opgen.passes.unroll import constant_extent
from opgen.schedule.cost.sizes import bytes_of
from opgen.schedule.errors import ScheduleError

LANES = 512
"""Largest number of lanes of a loop."""
COPIES = 20_000
"""Largest number of stores after unrolling; a vector of more than `REGISTER` lanes counts as several."""
REGISTER = 16
STACK = 1 << 20
"""Largest number of bytes of all local buffers of a kernel that are not on the heap."""
DEPTH = 64
"""Largest depth of nested loops, beyond that of the unscheduled kernel."""


class _Size(NamedTuple):
    copies: int
    stack: int
    depth: int
    widest: tuple[int, str]


Measured: TypeAlias = dict[int, tuple[Stmt, _Size]]
"""The statements measured so far, by identity."""


@dataclass(frozen=True)
class Limits:
    """Limits for a scheduled kernel; a large kernel may stay as large as it is."""

    copies: int
    stack: int
    depth: int
    measured: Measured = field(compare=False, repr=False)

    @staticmethod
    def of(kernel: Kernel, measured: Measured | None = None) -> Limits:
        """Return the limits for schedules of a kernel, in proportion to its number of outermost statements."""
        known: Measured = {} if measured is None else measured
        sizes = _sizes(kernel, known)
        copies = COPIES * max(1, len(sizes)) + sum(size.copies for size in sizes)
        stack = STACK + sum(size.stack for size in sizes)
        return Limits(copies, stack, DEPTH + max((size.depth for size in sizes), default=0), known)

    def require(self, kernel: Kernel) -> None:
        """Refuse a kernel that exceeds them."""
        sizes = _sizes(kernel, self.measured)
        for lanes, loop in (size.widest for size in sizes):
            if lanes > LANES:
                raise ScheduleError(f"the loop '{loop}' would have {lanes} lanes (at most {LANES})", "split it before")
        if (copies := sum(size.copies for size in sizes)) > self.copies:
            raise ScheduleError(f"the code would have {copies} stores (at most {self.copies})", "unroll less")
        if (stack := sum(size.stack for size in sizes)) > self.stack:
            raise ScheduleError(f"{stack} bytes would lie on the stack (at most {self.stack})", "use space=heap")
        if (depth := max((size.depth for size in sizes), default=0)) > self.depth:
            raise ScheduleError(f"{depth} loops would stand within each other (at most {self.depth})")


def _sizes(kernel: Kernel, measured: Measured) -> list[_Size]:
    """Return the sizes of the outermost statements; a step changes few of them."""
    statements = outermost(kernel.body)[1]
    for s in statements:
        if id(s) not in measured:
            measured[id(s)] = s, _Size(count(s), _stack(s), _depth(s), _widest(s))
    return [measured[id(s)][1] for s in statements]


def _widest(s: Stmt) -> tuple[int, str]:
    """Return the lanes and the name of the first loop with too many lanes, or (0, "")."""
    vectors = ((constant_extent(loop) or 0, loop.var) for loop in loops_in(s) if loop.kind == "vector")
    return next((v for v in vectors if v[0] > LANES), (0, ""))


def count(s: Stmt) -> int:
    """Return the number of register-sized stores in a statement after unrolling."""
    inside = parts(s)
    return _times(s) * sum(map(count, inside)) if inside else 1


def _times(s: Stmt) -> int:
    """Return the number of copies of a statement's body in the code."""
    extent = constant_extent(s) if isinstance(s, For) and s.kind in ("unroll", "vector") else None
    if extent is None or not isinstance(s, For):
        return 1
    return extent if s.kind == "unroll" else -(-extent // REGISTER)


def _stack(s: Stmt) -> int:
    """Return the bytes of the buffers on the stack; private buffers of lanes or copies count once for each."""
    extent = constant_extent(s) if isinstance(s, For) and s.kind in ("unroll", "vector") else None
    own = 0
    if isinstance(s, Alloc) and s.space in ("stack", "register"):
        own = bytes_of(s.buffer, 1)
    return own + (extent or 1) * sum(map(_stack, parts(s)))


def _depth(s: Stmt) -> int:
    """Return the depth of nested loops."""
    return isinstance(s, For) + max(map(_depth, parts(s)), default=0)
