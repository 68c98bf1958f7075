"""Reads that decide whether a reduction has a term: those that are taken.

A term is left out if a read of it is outside its tensor.  Reads that are not taken do not count: the other side of an
`if`, the right operand of an `and` or `or` that its left decides, the `else` value of a read that is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from opgen.grad.algebra import conjunction, is_number
from opgen.spec.model.model import Conditional, Expr, Not, Operation, Read, Reduce
from opgen.spec.model.walk import conjuncts, operands

Inside = Callable[[Read], Sequence[Expr]]
"""The conditions under which a read is inside, unless that is evident."""


def always_taken(e: Expr) -> Iterator[Read]:
    """Yield the reads that leave a term out if they are outside, for any values; inner reductions are skipped."""
    match e:
        case Read():
            if e.outside is None:
                yield e
        case Reduce():
            return
        case Conditional():
            yield from always_taken(e.condition)
        case Operation(op="and" | "or"):
            yield from always_taken(e.left)
        case _:
            for o in operands(e):
                yield from always_taken(o)


def taken_where(weight: Expr) -> tuple[list[Expr], Expr]:
    """Return the conditions without which a weight is 0, and its value if they hold.

    A read on the side of an `if` that is not taken may be out of bounds, so its adjoint is not gathered there.
    """
    found: list[Expr] = []
    while isinstance(weight, Conditional):
        if is_number(weight.if_false, 0):
            found += conjuncts(weight.condition)
            weight = weight.if_true
        elif is_number(weight.if_true, 0):
            found.append(Not(weight.condition))
            weight = weight.if_false
        else:
            break
    return found, weight


def choices(e: Expr, inside: Inside) -> Iterator[Expr]:
    """Yield the conditions that all reads taken by choice are inside."""
    match e:
        case Reduce():
            return
        case Read():
            if e.outside is not None:
                yield from _unless(conjunction(inside(e)), e.outside, inside)
        case Conditional():
            yield from choices(e.condition, inside)
            yield from _unless(Not(e.condition), e.if_true, inside)
            yield from _unless(e.condition, e.if_false, inside)
        case Operation(op="and" | "or"):
            yield from choices(e.left, inside)
            yield from _unless(Not(e.left) if e.op == "and" else e.left, e.right, inside)
        case _:
            for o in operands(e):
                yield from choices(o, inside)


def _unless(condition: Expr | None, e: Expr, inside: Inside) -> Iterator[Expr]:
    """Yield the conditions of an expression that is taken unless `condition` holds; None always holds."""
    if condition is None:
        return
    wanted = [*(c for read in always_taken(e) for c in inside(read)), *choices(e, inside)]
    yield from (Operation("or", condition, c) for c in dict.fromkeys(wanted))
