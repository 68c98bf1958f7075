"""Visitors and rewriters for the expressions of a model.

A rewrite that changes nothing returns the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from opgen.spec.model.model import (
    Apply,
    BitCast,
    Conditional,
    Convert,
    Element,
    EnumArgument,
    Expr,
    FunctionCall,
    Index,
    IndexRange,
    MultiplyAdd,
    Negate,
    Not,
    Operation,
    Read,
    Real,
    Reduce,
    Scatter,
    Whole,
)


def operands(e: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions.

    A read has its subscripts, then the outside value; a reduction its place, condition and body.  Updates have the
    initial value and the subscripts, then the operands of a reduction.
    """
    match e:
        case Operation():
            return (e.left, e.right)
        case Negate() | Not() | Convert() | BitCast() | Real() | Whole():
            return (e.operand,)
        case Conditional():
            return (e.condition, e.if_true, e.if_false)
        case Apply():
            return (e.argument,)
        case MultiplyAdd():
            return (e.left, e.right, e.added)
        case Element():
            return e.indices
        case Read():
            return e.indices if e.outside is None else (*e.indices, e.outside)
        case Reduce():
            given = (e.body,) if e.condition is None else (e.condition, e.body)
            if isinstance(e, Scatter):
                return (e.start, *e.at, *given)
            return given if e.place is None else (e.place, *given)
        case FunctionCall():
            return tuple(a for a in e.arguments if not isinstance(a, EnumArgument))
        case _:
            return ()


def with_operands(e: Expr, new: tuple[Expr, ...]) -> Expr:
    """Return the same node over other subexpressions (in the order of `operands`)."""
    if all(x is y for x, y in zip(operands(e), new, strict=True)):
        return e
    match e:
        case Operation():
            return replace(e, left=new[0], right=new[1])
        case Negate() | Not() | Convert() | BitCast() | Real() | Whole():
            return replace(e, operand=new[0])
        case Conditional():
            return replace(e, condition=new[0], if_true=new[1], if_false=new[2])
        case Apply():
            return replace(e, argument=new[0])
        case MultiplyAdd():
            return replace(e, left=new[0], right=new[1], added=new[2])
        case Element():
            return replace(e, indices=new)
        case Read():
            n = len(e.indices)
            return replace(e, indices=new[:n], outside=new[n] if e.outside is not None else None)
        case Reduce():
            condition = new[-2] if e.condition is not None else None
            if isinstance(e, Scatter):
                return replace(e, condition=condition, body=new[-1], start=new[0], at=new[1 : 1 + len(e.at)])
            place = None if e.place is None else new[0]
            return replace(e, place=place, condition=condition, body=new[-1])
        case FunctionCall():
            rest = iter(new)
            arguments = tuple(a if isinstance(a, EnumArgument) else next(rest) for a in e.arguments)
            return replace(e, arguments=arguments)
        case _:
            return e


def subexpressions(e: Expr) -> Iterator[Expr]:
    """Yield every node, outermost first."""
    left = [e]
    while left:
        e = left.pop()
        yield e
        left += operands(e)[::-1]


def depth(e: Expr) -> int:
    """Return the nesting depth."""
    level, depth = [e], 0
    while level:
        level = [o for p in level for o in operands(p)]
        depth += 1
    return depth


def transform(fn: Callable[[Expr], Expr], e: Expr) -> Expr:
    """Apply `fn` to every node, innermost first; extents of reductions are rewritten too."""
    new = with_operands(e, tuple(transform(fn, o) for o in operands(e)))
    if isinstance(new, Reduce):
        ranges = tuple(IndexRange(r.name, transform(fn, r.extent)) for r in new.indices)
        if ranges != new.indices:
            new = replace(new, indices=ranges)
    return fn(new)


def substitute_indices(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace index variables by expressions; the caller makes sure that no reduction inside rebinds one."""
    return transform(lambda n: values.get(n.name, n) if isinstance(n, Index) else n, e)


def index_names(e: Expr) -> frozenset[str]:
    """Return the index variables that occur in an expression, bound or free."""
    return frozenset(n.name for n in subexpressions(e) if isinstance(n, Index))


def conjuncts(condition: Expr | None) -> tuple[Expr, ...]:
    """Split a condition into its conjuncts, in order; () for None."""
    if condition is None:
        return ()
    if isinstance(condition, Operation) and condition.op == "and":
        return conjuncts(condition.left) + conjuncts(condition.right)
    return (condition,)


def reads_values(e: Expr) -> bool:
    """Return True if an expression depends on elements of tensors, on a reduction, or on random numbers."""
    return any(isinstance(n, Read | Reduce) or is_random(n) for n in subexpressions(e))


def is_random(e: Expr) -> bool:
    """Return True if an expression is a random number."""
    return isinstance(e, Operation) and e.op == "random"


def reads_constants(e: Expr) -> bool:
    """Return True if an expression depends on elements of constants."""
    return any(isinstance(n, Element) for n in subexpressions(e))


def is_order(e: Expr) -> bool:
    """Return True if an expression is the order of some values."""
    return isinstance(e, Reduce) and e.place is not None


def reads(e: Expr) -> Iterator[Read]:
    """Yield every read of a tensor in an expression."""
    return (n for n in subexpressions(e) if isinstance(n, Read))
