"""unroll, vectorize, parallel, bind: kinds of execution of a loop."""

from __future__ import annotations

from typing import Annotated, get_args

from opgen.diagnostics import did_you_mean
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import For, Kernel, LoopKind, Stmt
from opgen.loop.walk import allocs_in, holds_loop, loops_in
from opgen.passes.unroll import constant_extent
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.exchange import require_no_exchange
from opgen.schedule.lanes import require_even_lanes
from opgen.schedule.loops import require_independent, require_loops, rewrite_loops
from opgen.schedule.values import LoopName, OneOf

AXES: tuple[str, ...] = tuple(k for k in get_args(LoopKind) if "." in k)


@primitive("loops", "unroll r")
class Unroll(Step):
    """Replaces a loop by copies of its body."""

    loop: LoopName

    def run(self, kernel: Kernel) -> Kernel:
        return unroll(kernel, self.loop)


@primitive("loops", "vectorize k_l")
class Vectorize(Step):
    """Makes each iteration a lane of vectors."""

    loop: LoopName

    def run(self, kernel: Kernel) -> Kernel:
        return vectorize(kernel, self.loop)


@primitive("loops", "parallel n_y")
class Parallel(Step):
    """Distributes the iterations over threads."""

    loop: LoopName

    def run(self, kernel: Kernel) -> Kernel:
        return parallel(kernel, self.loop)


@primitive("loops", "bind x_o block.x", target="cuda")
class Bind(Step):
    """Distributes the iterations over a GPU's blocks or threads."""

    loop: LoopName
    axis: Annotated[LoopKind, OneOf(AXES)]

    def run(self, kernel: Kernel) -> Kernel:
        return bind(kernel, self.loop, self.axis)


def unroll(kernel: Kernel, loop: str) -> Kernel:
    """Mark a loop of constant extent to be replaced by its iterations.

    for i in 0..4: s    ->    for i in 0..4 unroll: s
    """
    require_loops(kernel, "unroll", [loop])

    def rewrite(s: For, context: Context) -> Stmt:
        _require_serial(s, "unroll")
        _require_constant(s, "unroll")
        return _with_kind(s, "unroll")

    return rewrite_loops(kernel, loop, rewrite)


def vectorize(kernel: Kernel, loop: str) -> Kernel:
    """Mark an independent loop of constant extent to become vector code, one lane an iteration.

    for i in 0..16: s    ->    for i in 0..16 vector: s
    """
    require_loops(kernel, "vectorize", [loop])
    _require_place(kernel, "vectorize", loop, "vector")

    def rewrite(s: For, context: Context) -> Stmt:
        _require_serial(s, "vectorize")
        _require_constant(s, "vectorize")
        for p in loops_in(s.body):
            if p.kind not in ("serial", "unroll"):
                raise ScheduleError(f"vectorize {s.var}: the loop '{p.var}' inside it is {p.kind}")
        require_even_lanes(s, f"vectorize {s.var}")
        require_independent(s, context, "vectorize")
        return _with_kind(s, "vector")

    return rewrite_loops(kernel, loop, rewrite)


def parallel(kernel: Kernel, loop: str) -> Kernel:
    """Let the iterations of an independent loop run on any thread, in any order.

    for n in 0..batch: s    ->    for n in 0..batch parallel: s
    """
    require_loops(kernel, "parallel", [loop])
    _require_place(kernel, "parallel", loop, "parallel")

    def rewrite(s: For, context: Context) -> Stmt:
        _require_serial(s, "parallel")
        require_independent(s, context, "parallel")
        return _with_kind(s, "parallel")

    return rewrite_loops(kernel, loop, rewrite)


def bind(kernel: Kernel, loop: str, axis: LoopKind) -> Kernel:
    """Give each iteration of an independent loop a GPU block or thread of its own.

    for y in 0..h: s    ->    for y in 0..h block.x: s

    Threads of a launch do not wait for each other: data exchange between them is refused (`exchange.py`).
    """
    require_loops(kernel, "bind", [loop])
    if axis not in AXES:
        raise ScheduleError(f"bind {loop}: there is no axis '{axis}'", did_you_mean(axis, AXES))
    _require_place(kernel, "bind", loop, axis)
    if axis.startswith("thread"):
        _require_private(kernel, loop)

    def rewrite(s: For, context: Context) -> Stmt:
        _require_serial(s, "bind")
        require_independent(s, context, "bind")
        return _with_kind(s, axis)

    bound = rewrite_loops(kernel, loop, rewrite)
    require_no_exchange(bound, "bind", loop)
    return bound


def _require_place(kernel: Kernel, primitive: str, loop: str, kind: LoopKind) -> None:
    """Refuse a kind that clashes with the loops around or inside.

    Parallel loops and GPU axes do not mix.  None of these (nor lanes) may be nested in itself, nor blocks in threads.
    """
    for s in loops_in(kernel.body):
        if _clash(s.kind, kind) and holds_loop(s.body, loop):
            raise ScheduleError(f"{primitive} {loop}: the loop '{s.var}' around it is {s.kind}")
        if s.var == loop:
            for p in loops_in(s.body):
                if _clash(kind, p.kind):
                    raise ScheduleError(f"{primitive} {loop}: the loop '{p.var}' inside it is {p.kind}")


def _clash(outer: LoopKind, inner: LoopKind) -> bool:
    if outer == "vector":
        return inner in ("parallel", "vector") or "." in inner
    if "parallel" in (outer, inner):
        return outer == inner or "." in outer or "." in inner
    return "." in inner and (outer == inner or (outer.startswith("thread") and inner.startswith("block")))


def _require_private(kernel: Kernel, loop: str) -> None:
    """Refuse threads that would share a local buffer: stack memory must be allocated inside the threads."""
    for s in allocs_in(kernel.body):
        if s.space in ("stack", "register", "tile") and holds_loop(s.body, loop):
            raise ScheduleError(f"bind {loop}: '{s.buffer.name}' is allocated in {s.buffer.space} memory around it")


def _require_serial(s: For, primitive: str) -> None:
    if s.kind != "serial":
        raise ScheduleError(f"{primitive} {s.var}: the loop is already {s.kind}")


def _require_constant(s: For, primitive: str) -> None:
    if constant_extent(s) is None:
        raise ScheduleError(f"{primitive} {s.var}: its extent is not constant", "split the loop by a constant first")


def _with_kind(s: For, kind: LoopKind) -> Stmt:
    return For(s.var, s.start, s.stop, s.body, kind)
