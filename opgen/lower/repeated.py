"""Repeated reductions of a value, and the parts of a value that are computed in any case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opgen.spec.model.model import Conditional, Expr, Operation, Read, Reduce
from opgen.spec.model.walk import operands, subexpressions


def reductions(e: Expr) -> list[Reduce]:
    """Return every reduction in an expression, outermost first."""
    return [n for n in subexpressions(e) if isinstance(n, Reduce)]


def repeated(e: Expr) -> list[Reduce]:
    """Return the reductions that occur several times in an expression, outside others, and are computed in any case."""
    counts = Counter(_outermost(e))
    taken = {n for n in always(e) if isinstance(n, Reduce)}
    return [reduce for reduce, count in counts.items() if count > 1 and reduce in taken]


def _outermost(e: Expr) -> Iterator[Reduce]:
    if isinstance(e, Reduce):
        yield e
    else:
        for o in operands(e):
            yield from _outermost(o)


def reads_taken(e: Expr) -> Iterator[Read]:
    """Yield the reads outside reductions that are taken for all values of elements."""
    return (n for n in always(e) if isinstance(n, Read))


def always(e: Expr) -> Iterator[Expr]:
    """Yield the parts of an expression computed for all values of elements; reductions without their terms."""
    yield e
    match e:
        case Reduce():
            return
        case Conditional():
            yield from always(e.condition)
        case Operation("and" | "or"):
            yield from always(e.left)
        case Read():
            return
        case _:
            for o in operands(e):
                yield from always(o)
