"""Results in place of operands: a kernel reads an operand from the buffer that it writes a result to.

kernel f(x: float32[n], z: float32[n]) -> (y: float32[n])      y[i] = x[i] + z[i] -> kernel f(z: float32[n]) -> (y:
float32[n])                     y[i] = y[i] + z[i]

The caller puts the operand's elements where the result will be.  The kernel then reads a buffer that it also writes, as
any other may, so later passes need no special case: no two of its buffers overlap.  The pass runs on scheduled kernels,
whose iterations may have been moved, shared, or doubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from opgen.loop.analysis.overwriting import may_overwrite
from opgen.loop.nodes import Expr, Kernel, Load, Prefetch, Stmt
from opgen.loop.walk import map_stmt

Pair: TypeAlias = "tuple[str, str]"
"""An operand and a result, by name."""


@dataclass(frozen=True)
class InPlace:
    """A kernel, and the pairs that share memory; of these, the kernel has only the results."""

    kernel: Kernel
    pairs: tuple[Pair, ...]


def in_place(kernel: Kernel, wanted: Sequence[Pair]) -> InPlace:
    """Return the kernel with those of the wanted pairs in place that may be: for each result the first operand."""
    pairs: list[Pair] = []
    for operand, result in wanted:
        free = all(operand != x and result != y for x, y in pairs)
        if free and may_overwrite(kernel, operand, result):
            pairs.append((operand, result))
    return InPlace(joined(kernel, pairs), tuple(pairs))


def joined(kernel: Kernel, pairs: Sequence[Pair]) -> Kernel:
    """Return the kernel that reads operands where it leaves results, without a check that this is correct."""
    if not pairs:
        return kernel
    place = dict(pairs)

    def expr(e: Expr) -> Expr:
        return replace(e, buffer=place[e.buffer]) if isinstance(e, Load) and e.buffer in place else e

    def stmt(s: Stmt) -> Stmt:
        return replace(s, buffer=place[s.buffer]) if isinstance(s, Prefetch) and s.buffer in place else s

    shared = set(place.values())
    outputs = (replace(x, space="global") if x.name in shared else x for x in kernel.outputs)  # lines in cache
    inputs = (x for x in kernel.inputs if x.name not in place)
    body = map_stmt(kernel.body, expr=expr, stmt=stmt)
    return replace(kernel, inputs=tuple(inputs), outputs=tuple(outputs), body=body)
