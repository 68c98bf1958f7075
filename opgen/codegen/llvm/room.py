"""Size of the workspace that a kernel needs for its buffers on the heap, if the caller provides the memory.

It mirrors `allocation.py`: each buffer takes whole lines, and the last one acquired is released first.  Each running
piece of a parallel loop has a part of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from opgen.codegen.llvm.allocation import ALIGNMENT
from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Buffer, Expr, For, Kernel, Stmt
from opgen.loop.walk import free_vars, parts


@dataclass(frozen=True)
class RoomNeeded:
    """Bytes, as integers over the kernel's parameters: those of the thread that calls it, and those of each thread of
    its parallel loops.
    """

    shared: Expr
    each: Expr


NOTHING = b.index(0)


def room_of(kernel: Kernel) -> RoomNeeded | None:
    """Return the workspace size of an emitted kernel; None if it depends on more than the parameters."""
    shared, each = _needed(kernel.body, False)
    known = {p.name for p in kernel.parameters}
    return RoomNeeded(shared, each) if free_vars(shared) | free_vars(each) <= known else None


def _needed(s: Stmt, inside: bool) -> tuple[Expr, Expr]:
    """Return the bytes of a statement, and those of each thread of its parallel loops; `inside` one there are none."""
    forks = isinstance(s, For) and s.kind == "parallel" and not inside
    shared, each = NOTHING, NOTHING
    for part in parts(s):
        own, theirs = _needed(part, inside or forks)
        shared, each = _larger(shared, own), _larger(each, theirs)
    if forks:
        return NOTHING, shared
    if isinstance(s, Alloc) and s.space == "heap":
        for buffer in s.buffers:
            shared = b.add(shared, _bytes(buffer))
    return shared, each


def _larger(a: Expr, c: Expr) -> Expr:
    return a if a == c or c == NOTHING else c if a == NOTHING else b.maximum(a, c)


def _bytes(buffer: Buffer) -> Expr:
    size: Expr = b.index(buffer.dtype.bytes)
    for extent in buffer.shape:
        size = b.mul(size, extent)
    return b.mul(b.ceildiv(size, b.index(ALIGNMENT)), b.index(ALIGNMENT))
