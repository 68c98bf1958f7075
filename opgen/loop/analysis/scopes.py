"""Contexts passed down a tree of statements."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Barrier, Block, Check, For, If, Kernel, Let, Prefetch, Stmt, Store
from opgen.loop.walk import parts


def inside(s: Stmt, context: Context) -> tuple[Context, ...]:
    """Return the context of each part of a statement (in the order of `walk.parts`), given the statement's own."""
    match s:
        case For():
            return (context.with_loop(s.var, s.start, s.stop),)
        case If():
            then = context.with_condition(s.condition)
            return (then,) if s.otherwise is None else (then, context.with_condition(b.negate(s.condition)))
        case Let():
            return (context.with_let(s.var, s.value),)
        case Alloc():
            return (context.with_buffers(s.buffers),)
        case Block():
            return (context,) * len(s.statements)
        case Store() | Barrier() | Check() | Prefetch():
            return ()


def walk_in_context(s: Stmt, context: Context) -> Iterator[tuple[Stmt, Context]]:
    """Yield every statement in a statement, outermost first, with the context of its place."""
    yield s, context
    for part, inner in zip(parts(s), inside(s, context), strict=True):
        yield from walk_in_context(part, inner)


def walk_kernel(kernel: Kernel) -> Iterator[tuple[Stmt, Context]]:
    """Yield every statement of a kernel with the context of its place."""
    return walk_in_context(kernel.body, Context.of(kernel))
