"""Case distinction for reads whose subscript is a choice.

`x[min(i, n - 1)]` is `x[i]` if i <= n - 1, else `x[n - 1]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opgen.spec.model.model import Conditional, Expr, Index, Not, Operation, Read
from opgen.spec.model.walk import index_names, operands, with_operands


def cases(read: Read) -> Iterator[tuple[Read, tuple[Expr, ...]]]:
    """Yield each case of a read with its conditions; exactly one case holds."""
    for axis, subscript in enumerate(read.indices):
        found = _first(subscript)
        if found is None:
            continue
        condition, yes, no = found
        for value, holds in ((yes, condition), (no, Not(condition))):
            indices = (*read.indices[:axis], value, *read.indices[axis + 1 :])
            for one, others in cases(replace(read, indices=indices)):
                yield one, (holds, *others)
        return
    yield read, ()


def _first(e: Expr) -> tuple[Expr, Expr, Expr] | None:
    """Return the first choice in a subscript: its condition, and the subscripts if it holds and if not.

    A choice between two indices, on a condition known to the caller, does not count: the solver solves for one and
    leaves the other free.
    """
    if isinstance(e, Read) or not index_names(e):
        return None
    if isinstance(e, Conditional):
        told = not index_names(e.condition) and isinstance(e.if_true, Index) and isinstance(e.if_false, Index)
        return None if told else (e.condition, e.if_true, e.if_false)
    if isinstance(e, Operation) and e.op in ("min", "max"):
        return Operation("<=" if e.op == "min" else ">=", e.left, e.right), e.left, e.right
    parts = operands(e)
    for at, part in enumerate(parts):
        found = _first(part)
        if found is not None:
            condition, *either = found
            yes, no = (with_operands(e, (*parts[:at], p, *parts[at + 1 :])) for p in either)
            return condition, yes, no
    return None
