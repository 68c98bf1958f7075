"""Masked products of a sum, as products that change nothing: they add -0.

    select(m, fma(x[i if m], w, acc), acc)    ->    fma(x[i if m], select(m, w, -0), acc)

Where `m` is off, `x` is read as +0, so that `acc + (+0 * -0)` is `acc` for every `acc` (`acc + 0` would make +0 of -0).
The select moves to a factor, often the same for many sums, and away from the chain of additions.  A factor loaded under
the mask keeps only the part of it that keeps lanes in bounds: so it is the same for more sums.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from opgen.loop import build as b
from opgen.loop.nodes import Broadcast, Call, Cast, Const, Expr, Kernel, Load, Ramp, Select
from opgen.loop.walk import buffers_in, distinct_exprs, map_stmt
from opgen.passes.known import decided
from opgen.passes.lanes import conjunction
from opgen.passes.tighten import conjuncts

Shapes = Mapping[str, tuple[Expr, ...]]


def select_factors(kernel: Kernel) -> Kernel:
    """Move selects from sums to factors; return the same object if there are none."""
    if not any(isinstance(e, Select) for e in distinct_exprs(kernel.body)):
        return kernel
    shapes = {buffer.name: buffer.shape for buffer in kernel.buffers}
    shapes |= {o.name: o.shape for o in buffers_in(kernel.body)}
    body = map_stmt(kernel.body, expr=lambda e: _moved(e, shapes))
    return kernel if body is kernel.body else dataclasses.replace(kernel, body=body)


def _moved(e: Expr, shapes: Shapes) -> Expr:
    match e:
        case Select(condition, Call("fma", (left, right, total)), if_false) if total == if_false:
            if not total.type.dtype.is_float or condition.type.lanes == 1:
                return e
            if not any(on is not False for on in decided(condition)):
                return total
            choices = [(left, right), (right, left)]
            choices.sort(key=lambda p: isinstance(p[1], Broadcast) or _loosened(p[1], condition, shapes) != p[1])
            for factor, selected in reversed(choices):
                if zero_unless(condition, factor):
                    zero = b.const(-0.0, total.type.dtype, total.type.lanes)
                    kept = Select(condition, _loosened(selected, condition, shapes), zero)
                    return Call("fma", (factor, kept, total) if factor is left else (kept, factor, total))
    return e


def zero_unless(condition: Expr, e: Expr) -> bool:
    """Return True if an expression is +0 in the lanes in which a condition does not hold."""
    if isinstance(e, Cast) and e.type.dtype.is_float and e.operand.type.dtype.is_float:
        return zero_unless(condition, e.operand)
    return isinstance(e, Load) and e.mask is not None and set(conjuncts(condition)) <= set(conjuncts(e.mask))


def _loosened(e: Expr, condition: Expr, shapes: Shapes) -> Expr:
    """Return a load (or a cast of it) under the smallest part of its mask that keeps it in bounds.

    Its value is unchanged where `condition` holds.
    """
    if isinstance(e, Cast):
        return dataclasses.replace(e, operand=_loosened(e.operand, condition, shapes))
    if not isinstance(e, Load) or e.mask is None:
        return e
    inside, on = _inside(e, shapes[e.buffer]), decided(e.mask)
    if inside is None or True not in on:  # where a lane is on, indices that all lanes share are in bounds
        return e
    parts = list(dict.fromkeys(conjuncts(e.mask)))
    implied = [p for p in parts if p in conjuncts(condition)]
    for part in sorted(implied, key=lambda p: sum(lane is not False for lane in decided(p))):
        rest = conjunction(tuple(p for p in parts if p != part))
        lanes = (True,) * len(on) if rest is None else decided(rest)
        if all(known or lane is False for known, lane in zip(inside, lanes, strict=True)):
            parts.remove(part)
    return dataclasses.replace(e, mask=conjunction(tuple(parts)))


def _inside(e: Load, shape: tuple[Expr, ...]) -> list[bool] | None:
    """Return for each lane whether it is in bounds along the last dimension.

    None if lanes are not constants along that dimension alone.
    """
    *others, last = e.indices
    size = shape[-1]
    if any(i.type.lanes != 1 for i in others) or not isinstance(last, Ramp) or not isinstance(size, Const):
        return None
    if not isinstance(last.base, Const) or not isinstance(last.stride, Const):
        return None
    places = [int(last.base.value) + k * int(last.stride.value) for k in range(last.lanes)]
    return [0 <= place < int(size.value) for place in places]
