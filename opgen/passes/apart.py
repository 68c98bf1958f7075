"""Hoisting of constant work: it runs once, and its results are inputs of the kernel.

A scheduled kernel may first copy an operand into an order that its loops read well.  If the operand never changes, nor
does the copy.  The statements hoisted are outside all loops, fill heap buffers from constant inputs and other such
buffers, and do nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Block, Buffer, Check, Const, Kernel, Prefetch, Stmt, Var
from opgen.loop.walk import declared_in, distinct_exprs, skeleton, stores, touched


@dataclass(frozen=True)
class Apart:
    """A kernel in two: `first` runs once, on constants, and `then` each time.

    The outputs of `first` are the last inputs of `then`.
    """

    first: Kernel
    then: Kernel


def taken_apart(kernel: Kernel, constants: Collection[str]) -> Apart | None:
    """Return a kernel in two, if some of its work, of known size, depends only on constant inputs; else None."""
    buffers, statements = _spine(kernel.body)
    known = {x.name: x for x in buffers if all(isinstance(e, Const) for e in x.shape)}
    ready = _ready(known, statements, set(constants)) if constants else set()
    early = [s for s in statements if _stored(s) and _stored(s) <= ready]
    late = [s for s in statements if not any(s is p for p in early)]
    needed = {name for s in late for name in touched(s)}
    results = tuple(x for x in buffers if x.name in ready and x.name in needed)
    if not results:
        return None
    passed = tuple(replace(x, space="global") for x in results)
    own = [x for x in buffers if x.name in ready and x not in results]
    read = {name for s in early for name in touched(s)}
    first = replace(
        kernel,
        inputs=tuple(x for x in kernel.inputs if x.name in read),
        outputs=passed,
        parameters=(),
        assumptions=(),
        body=b.alloc(own, b.block(early)),
    )
    then = replace(
        kernel,
        inputs=(*(x for x in kernel.inputs if x.name in needed), *passed),
        body=_without(kernel.body, ready, early),
    )
    return Apart(first, then)


def _spine(s: Stmt) -> tuple[list[Buffer], list[Stmt]]:
    """Return the heap buffers and the statements outside all loops and conditions."""
    match s:
        case Alloc() if s.space == "heap":
            buffers, statements = _spine(s.body)
            return [*s.buffers, *buffers], statements
        case Block():
            found = [_spine(p) for p in s.statements]
            return [x for buffers, _ in found for x in buffers], [p for _, statements in found for p in statements]
    return [], [s]


def _without(s: Stmt, buffers: Collection[str], statements: Sequence[Stmt]) -> Stmt:
    """Return the spine without some buffers and statements."""
    match s:
        case Alloc() if s.space == "heap":
            return b.alloc([x for x in s.buffers if x.name not in buffers], _without(s.body, buffers, statements))
        case Block():
            return b.block(_without(p, buffers, statements) for p in s.statements)
    return b.EMPTY if any(s is p for p in statements) else s


def _ready(buffers: dict[str, Buffer], statements: Sequence[Stmt], constants: set[str]) -> set[str]:
    """Return the buffers that are filled only from constants and each other."""
    found = {name for s in statements for name in _stored(s) if name in buffers}
    while True:
        spoiled: set[str] = set()
        for s in statements:
            known = found | constants | declared_in(s)
            if not (_stored(s) <= found and touched(s) <= known and _is_plain(s)):
                spoiled |= _stored(s) & found
        if not spoiled:
            return found
        found -= spoiled


def _stored(s: Stmt) -> frozenset[str]:
    """Return the outer buffers that a statement stores to."""
    return frozenset(p.buffer for p in stores(s)) - declared_in(s)


def _is_plain(s: Stmt) -> bool:
    """Return True if a statement neither ends the kernel nor depends on its parameters."""
    used = {e.name for e in distinct_exprs(s) if isinstance(e, Var)}
    return used <= declared_in(s) and not any(isinstance(p, Check | Prefetch) for p in skeleton(s))
