"""Helpers of all primitives: find loops by name, with the facts known around them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from opgen.diagnostics import InternalError, did_you_mean
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.dependence import independent
from opgen.loop.nodes import Alloc, Block, Buffer, Expr, For, Kernel, Let, Stmt
from opgen.loop.walk import declares, holds_loop, loops_in, parts, with_parts
from opgen.passes.fold import fold_all
from opgen.passes.scope import entered
from opgen.schedule.errors import ScheduleError

Rewrite = Callable[[For, Context], Stmt]


def loop_names(kernel: Kernel) -> tuple[str, ...]:
    """Return the names of a kernel's loops, each once, in program order."""
    return tuple(dict.fromkeys(s.var for s in loops_in(kernel.body)))


def require_loops(kernel: Kernel, primitive: str, names: Iterable[str]) -> None:
    """Refuse names that no loop has."""
    for name in names:
        if not holds_loop(kernel.body, name):
            known = loop_names(kernel)
            hint = did_you_mean(name, known) or f"the loops are {', '.join(known)}"
            raise ScheduleError(f"{primitive}: there is no loop '{name}'", hint)


def require_fresh(kernel: Kernel, primitive: str, names: Iterable[str], replaced: Iterable[str] = ()) -> None:
    """Refuse names that something else already has."""
    used = {p.name for p in kernel.parameters} | {buffer.name for buffer in kernel.buffers}
    free = set(replaced)
    for name in names:
        if name in used or (name not in free and declares(kernel.body, name)):
            raise ScheduleError(f"{primitive}: the name '{name}' is taken", "give the new loop another name")
        used.add(name)


def buffer_at(kernel: Kernel, name: str, loop: For) -> Buffer:
    """Return the buffer that a name means inside a loop.

    Siblings may have local buffers of the same name and different sizes.
    """

    def visit(s: Stmt, found: Buffer | None) -> Buffer | None:
        if s is loop:
            return found
        if isinstance(s, Alloc):
            found = next((o for o in s.buffers if o.name == name), found)
        return next((inside for p in parts(s) if (inside := visit(p, found)) is not None), None)

    around = {buffer.name: buffer for buffer in kernel.buffers}.get(name)
    found = visit(kernel.body, around) or around
    if found is None:
        raise InternalError(f"there is no buffer '{name}' around the loop '{loop.var}'")
    return found


def with_buffer(s: Alloc, name: str, change: Callable[[Buffer], Buffer]) -> Alloc:
    """Return the statement with one of its buffers changed, or itself if it has none of that name."""
    if all(o.name != name for o in s.buffers):
        return s
    return Alloc(tuple(change(o) if o.name == name else o for o in s.buffers), s.body)


def with_body(kernel: Kernel, body: Stmt) -> Kernel:
    """Return the kernel with another body, or itself."""
    return kernel if body is kernel.body else dataclasses.replace(kernel, body=body)


def rewrite_loops(kernel: Kernel, name: str, rewrite: Rewrite) -> Kernel:
    """Rewrite every loop of that name (they are siblings, never nested)."""

    def visit(s: Stmt, context: Context) -> Stmt:
        if isinstance(s, For) and s.var == name:
            return rewrite(s, context)
        if not holds_loop(s, name):  # derive no facts where nothing changes
            return s
        return with_parts(s, tuple(visit(p, c) for p, c in entered(s, context)))

    return with_body(kernel, visit(kernel.body, Context.of(kernel)))


def before_nest(body: Stmt, loop: str, buffers: Sequence[Buffer], made: Sequence[Stmt]) -> Stmt:
    """Return a body that computes buffers just before the outermost statement around a loop that allocates nothing."""
    nest = nest_to_precede(body, loop)

    def visit(s: Stmt) -> Stmt:
        if s is nest:
            return b.alloc(reversed(buffers), b.block((*made, s)))
        return with_parts(s, tuple(visit(p) if holds_loop(p, loop) else p for p in parts(s)))

    return visit(body)


def nest_to_precede(s: Stmt, loop: str) -> Stmt:
    """Return the outermost statement that holds a loop and is not an allocation, a name or a block."""
    while isinstance(s, Alloc | Let | Block):
        s = next(p for p in parts(s) if holds_loop(p, loop))
    return s


def require_independent(loop: For, context: Context, primitive: str) -> None:
    """Refuse loops in which one iteration may touch memory that another one writes."""
    if not is_independent(loop, context):
        raise ScheduleError(
            f"{primitive} {loop.var}: the iterations of '{loop.var}' are not known to be independent",
            "one iteration may write what another reads or writes",
        )


def is_independent(loop: For, context: Context) -> bool:
    """Return True if provably no iteration writes memory that another one reads or writes."""
    return loop.kind not in ("serial", "unroll") or independent(loop, context)


def extent(loop: For) -> Expr:
    """Return the number of iterations (at least 0 only if the loop's bounds are in order)."""
    return fold_all(b.sub(loop.stop, loop.start))
