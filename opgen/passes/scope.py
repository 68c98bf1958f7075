"""Traversal of a tree with the facts known at each place."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Barrier, Block, Check, For, If, Let, Prefetch, Stmt, Store


def entered(s: Stmt, context: Context) -> Iterator[tuple[Stmt, Context]]:
    """Yield the direct substatements (as `walk.parts`), each with the facts known inside it."""
    match s:
        case Store() | Barrier() | Check() | Prefetch():
            return
        case Block():
            for p in s.statements:
                yield p, context
        case For():
            yield s.body, context.with_loop(s.var, s.start, s.stop)
        case Let():
            yield s.body, context.with_let(s.var, s.value)
        case Alloc():
            yield s.body, context.with_buffers(s.buffers)
        case If():
            yield s.then, context.with_condition(s.condition)
            if s.otherwise is not None:
                yield s.otherwise, context.with_condition(b.negate(s.condition))
