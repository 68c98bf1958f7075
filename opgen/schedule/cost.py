"""About how long a kernel takes once it is scheduled, told from its loops before they are.

Arithmetic runs at the machine's rate in full vectors; what a nest reads and writes comes once from the nearest cache
that holds it, line by line where it is read across.  That is what schedules reach; it serves to choose between
kernels, not to predict one.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from opgen.loop.nodes import (
    Alloc,
    Binary,
    Block,
    Buffer,
    Call,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Unary,
)
from opgen.loop.walk import loads, stores, walk, walk_expr
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, contiguous_loop, depends, is_contiguous, nests, reduces

NEST = 2e-6
"""What a nest costs besides its work, in seconds: a fork and a join."""


def seconds(kernel: Kernel, machine: Machine) -> float:
    """The estimate for a kernel on one core; its sizes must be constant.  What runs only if some data ask for it does
    not count.
    """
    buffers = {b.name: b for b in (*kernel.buffers, *(s.buffer for s in walk(kernel.body) if isinstance(s, Alloc)))}
    counted = list(_nests(kernel.body))
    crossed = sum(_crossed(n) for n in nests(kernel) if n.loops[0] in counted)
    lines = crossed * machine.l1.line / machine.l2.bytes_per_second
    return lines + sum(_nest(nest, buffers, machine) for nest in counted)


def _nests(s: Stmt) -> Iterable[Stmt]:
    match s:
        case Block():
            for p in s.statements:
                yield from _nests(p)
        case Alloc() | Let():
            yield from _nests(s.body)
        case If():
            yield from () if any(isinstance(e, Load) for e in walk_expr(s.condition)) else _nests(s.then)
        case For():
            yield s


def _crossed(nest: Nest) -> float:
    """How many elements a nest without reduction reads across memory, while its results lie along it."""
    along = contiguous_loop(nest)
    if along is None or reduces(nest):
        return 0
    reads = {e for e in nest.outside_loads if depends(e.indices, along) and not is_contiguous(e, along, nest.shapes)}
    return len(reads) * prod(nest.extent(n) or 1 for n in nest.names)


def _nest(nest: Stmt, buffers: dict[str, Buffer], machine: Machine) -> float:
    touched = {e.buffer for e in loads(nest)} | {s.buffer for s in stores(nest)}
    outside = [buffers[n] for n in touched if buffers[n].space in ("global", "heap")]
    arithmetic = _operations(nest) / (machine.fma_per_second * machine.vector_bytes)
    return NEST + arithmetic + sum(_bytes(b) / _rate(_bytes(b), machine) for b in outside)


def _bytes(buffer: Buffer) -> int:
    return buffer.dtype.bytes * prod(int(n.value) if isinstance(n, Const) else 1 for n in buffer.shape)


def _rate(size: int, machine: Machine) -> float:
    """Bytes a second for data that were used not long ago, beside others of their size."""
    for cache in (machine.l1, machine.l2, machine.l3):
        if 2 * size <= cache.size:
            return cache.bytes_per_second
    return machine.memory_bytes_per_second


def _operations(s: Stmt) -> float:
    """Multiply-adds and other arithmetic on floats, each times the bytes of its type."""
    match s:
        case Store():
            return sum(_cost(e) for e in walk_expr(s.value))
        case For():
            return (constant_extent(s) or 1) * _operations(s.body)
        case If():
            return max(_operations(s.then), 0 if s.otherwise is None else _operations(s.otherwise))
        case Let() | Alloc():
            return _operations(s.body)
        case Block():
            return sum(map(_operations, s.statements))
        case _:
            return 0


def _cost(e: Expr) -> int:
    counts = isinstance(e, Binary | Unary | Call) and e.type.dtype.is_float
    return e.type.dtype.bytes if counts else 0
