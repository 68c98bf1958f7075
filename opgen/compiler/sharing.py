"""The rule that decides which kernels threads share.

Calls from Python and the C library use the same rule: a kernel that takes less than WORTH_SHARING is run by the calling
thread.  Where a kernel's sizes are numbers, its time is `opgen.schedule.estimate.seconds`.  Where they are parameters,
`work_of` returns expressions that a call's numbers are put into.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Binary, Block, Buffer, Call, Const, Expr, For, If, Kernel, Let, Stmt, Store, Unary
from opgen.loop.walk import buffers_in, free_vars, loads, map_expr, stores, substitute_expr, walk_expr

if TYPE_CHECKING:
    from opgen.machine import Machine

WORTH_SHARING = 2e-5
"""Seconds on one core, by an estimate that is two to three times the time of well scheduled kernels.

To fork and join takes a few microseconds where threads are awake, and several times as much where they are not.
"""


@dataclass(frozen=True)
class Work:
    """Approximate work of a kernel: fixed seconds, and seconds for each operation and each byte.

    `operations` and `bytes` are integer expressions over the kernel's parameters.
    """

    always: float
    per_operation: float
    operations: Expr
    per_byte: float
    bytes: Expr


def is_for_one(kernel: Kernel, machine: Machine) -> bool:
    """Return True if the calling thread is to do all work of a (simplified) kernel, parallel loops or not."""
    from opgen.schedule.estimate import seconds  # cached programs need the rule, but not the scheduler

    return kernel.is_bound and seconds(kernel, machine) < WORTH_SHARING


def work_of(kernel: Kernel, machine: Machine) -> Work:
    """Return the work of a kernel whose sizes are parameters; compare `opgen.schedule.estimate`, which needs numbers.

    Each loop nest reads and writes its buffers once, at the rate of the second cache.  More traffic than that means
    more time than WORTH_SHARING.
    """
    from opgen.schedule.cost.calibration import NEST

    buffers = {x.name: x for x in (*kernel.buffers, *buffers_in(kernel.body))}
    found = list(_nests(kernel.body))
    operations = map_expr(_divisible, _sum(_operations(n) for n in found))
    touched = _sum(_bytes(buffers[name]) for n in found for name in _touched(n))
    per_operation = 1 / (machine.fma_per_second * machine.vector_bytes)
    return Work(NEST * len(found), per_operation, operations, 1 / machine.l2.bytes_per_second, touched)


def _nests(s: Stmt) -> Iterator[For]:
    match s:
        case For():
            yield s
        case Block():
            for p in s.statements:
                yield from _nests(p)
        case Alloc() | Let():
            yield from _nests(s.body)
        case If():
            yield from _nests(s.then)
            if s.otherwise is not None:
                yield from _nests(s.otherwise)


def _touched(nest: For) -> list[str]:
    return sorted({e.buffer for e in loads(nest)} | {s.buffer for s in stores(nest)})


def _bytes(buffer: Buffer) -> Expr:
    size: Expr = b.index(buffer.dtype.bytes)
    for extent in buffer.shape:
        size = b.mul(size, extent)
    return size


def _operations(s: Stmt) -> Expr:
    """Return the float arithmetic, weighted by the bytes of its type; the slower of two branches."""
    match s:
        case Store():
            return b.index(sum(_cost(e) for e in walk_expr(s.value)))
        case For():
            extent = b.maximum(b.sub(s.stop, s.start), 0)
            inside = _operations(s.body)
            if s.var in free_vars(inside):  # an inner loop's extent: about that of the middle iteration
                inside = substitute_expr(inside, {s.var: b.add(s.start, b.floordiv(extent, b.index(2)))})
            return b.mul(extent, inside)
        case If():
            then = _operations(s.then)
            return then if s.otherwise is None else b.maximum(then, _operations(s.otherwise))
        case Let() | Alloc():
            return _operations(s.body)
        case Block():
            return _sum(_operations(p) for p in s.statements)
        case _:
            return b.index(0)


def _divisible(e: Expr) -> Expr:
    """Return a quotient or remainder that is defined for any numbers: branches not taken are counted, too."""
    if isinstance(e, Binary) and e.op in ("floordiv", "mod") and not isinstance(e.right, Const):
        return b.binary(e.op, e.left, b.maximum(e.right, 1))
    return e


def _sum(terms: Iterator[Expr]) -> Expr:
    """Return a balanced sum: a sequential one over hundreds of loop nests would be an expression of that depth."""
    left: list[Expr] = [b.index(0), *terms]
    while len(left) > 1:
        left = [b.add(*left[at : at + 2]) if at + 1 < len(left) else left[at] for at in range(0, len(left), 2)]
    return left[0]


def _cost(e: Expr) -> int:
    counts = isinstance(e, Binary | Unary | Call) and e.type.dtype.is_float
    return e.type.dtype.bytes if counts else 0
