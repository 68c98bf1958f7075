"""Finiteness of all elements of some results, as one number: a sum of products with 0, NaN if one is not finite.

for each index of the result but the last two, and the last:
    rows[...] = sum over the one before the last of (result * 0)
for the last index:
    lanes[k] = sum of rows[..., k]
total = sum of lanes[k]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opgen.loop import build as b
from opgen.loop.nodes import Binary, Buffer, Call, Compare, Expr, For, If, Load, Stmt, Store
from opgen.lower.scope import Names


@dataclass(frozen=True)
class _Sum:
    """`target[kept] = sum over the other dimensions of source * factor` (None: without a factor)."""

    source: Buffer
    target: Buffer
    kept: tuple[int, ...]
    factor: float | None


def unless_finite(outputs: Sequence[Buffer], otherwise: Stmt, names: Names) -> Stmt:
    """Runs a statement if an element of the floating ones among these buffers is infinite or NaN."""
    floating = [o for o in outputs if o.dtype.is_float]
    statements: list[Stmt] = []
    temporaries: list[Buffer] = []
    condition: Expr | None = None
    for output in floating:
        source, factor = output, 0.0 if output.shape else None
        while source.shape:
            rank = len(source.shape)
            rows = (*range(rank - 2), rank - 1)
            kept = () if rank == 1 else rows if source is output else (rank - 1,)
            shape = tuple(source.shape[i] for i in kept)
            target = Buffer(names.fresh("finite"), output.dtype.compute_type, shape, "heap" if kept else "register")
            statements.append(_summed(_Sum(source, target, kept, factor), names))
            temporaries.append(target)
            source, factor = target, None
        compute = output.dtype.compute_type
        total = Binary("mul", b.cast(compute, Load(source.name, (), source.dtype)), b.const(0, compute))
        differs = Compare("ne", total, total)
        condition = differs if condition is None else b.either(condition, differs)
    if condition is None:
        return b.EMPTY
    return b.alloc(temporaries, b.block((*statements, If(condition, otherwise))))


def _summed(e: _Sum, names: Names) -> Stmt:
    variables = [b.var(names.fresh(f"{e.target.name}_{i}")) for i in range(len(e.source.shape))]
    dtype = e.target.dtype
    register = e.target if not e.kept else Buffer(names.fresh("acc"), dtype, (), "register")
    so_far = Load(register.name, (), dtype)
    element = b.cast(dtype, Load(e.source.name, tuple(variables), e.source.dtype))
    if e.factor is None:
        step: Expr = Binary("add", so_far, element)
    else:
        step = Call("fma", (element, b.const(e.factor, dtype), so_far))
    nest: Stmt = Store(register.name, (), step)
    for axis in reversed(range(len(variables))):
        if axis not in e.kept:
            nest = For(variables[axis].name, b.index(0), e.source.shape[axis], nest)
    nest = b.block((Store(register.name, (), b.const(0, dtype)), nest))
    if not e.kept:
        return nest
    nest = b.alloc(register, b.block((nest, Store(e.target.name, tuple(variables[i] for i in e.kept), so_far))))
    for axis in reversed(e.kept):
        nest = For(variables[axis].name, b.index(0), e.source.shape[axis], nest)
    return nest
