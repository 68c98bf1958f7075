"""Gradients of lets that are not taken or not used: 0, even if their derivative is infinite or NaN.

The adjoint of such a `let` is 0, and 0 times an infinite derivative would be NaN. Written inline, the `let` would be on
a side that is not taken.  Therefore the product counts as 0 where both may occur.  Products and sums of finite numbers
are finite (unless they overflow), so they stay plain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from opgen.grad.algebra import ZERO
from opgen.spec.model.model import (
    Apply,
    BitCast,
    Conditional,
    Convert,
    Definition,
    Expr,
    Index,
    Number,
    Operation,
    Read,
    Reduce,
    Scatter,
)
from opgen.spec.model.walk import index_names, reads, subexpressions

_UNBOUNDED = frozenset(
    [
        "exp",
        "log",
        "sqrt",
        "exp2",
        "expm1",
        "log1p",
        "log2",
        "rsqrt",
        "asin",
        "acos",
        "sinh",
        "cosh",
        "acosh",
        "atanh",
        "lgamma",
        "digamma",
    ]
)
"""Functions that are infinite or NaN for some finite numbers, or whose derivatives are."""


def may_be_infinite(e: Expr, infinite: Collection[str]) -> bool:
    """Return True if a value may be infinite or NaN for finite inputs; `infinite` are the lets that may be."""
    return any(_unbounded(n, infinite) for n in subexpressions(e))


def _unbounded(e: Expr, infinite: Collection[str]) -> bool:
    match e:
        case Apply():
            return e.function in _UNBOUNDED
        case Operation(op="pow" | "atan2") | BitCast():
            return True
        case Operation(op="/" | "%" | "rem"):
            return not _is_count(e.right)
        case Read():
            return e.tensor in infinite
        case Reduce(kind="max" | "min"):
            return True  # a condition, reads outside or a size of 0 may leave no term
    return False


def _is_count(e: Expr) -> bool:
    """Return True if a divisor is a nonzero number, or a cast shape integer: if that is 0, nothing is divided."""
    match e:
        case Number():
            return e.value != 0
        case Convert():
            return _is_count(e.operand) if isinstance(e.operand, Number) else not any(reads(e.operand))
    return False


def may_be_nothing(adjoint: Definition, size: Callable[[str, int], Expr], nothing: Collection[str]) -> bool:
    """Return True if elements of an adjoint may be 0 because nothing takes the forward value.

    `size` returns the dimensions of tensors; `nothing` holds the other adjoints that may be 0 in this way.
    """
    extents = {r.name: r.extent for r in adjoint.indices}
    extents |= {r.name: r.extent for e in subexpressions(adjoint.value) if isinstance(e, Reduce) for r in e.indices}
    for e in subexpressions(adjoint.value):
        if isinstance(e, Conditional | Scatter) or (isinstance(e, Reduce) and e.condition is not None):
            return True
        if isinstance(e, Read) and e.tensor in nothing:
            return True
        if isinstance(e, Read):
            for axis, s in enumerate(e.indices):
                if not (isinstance(s, Index) and extents.get(s.name) == size(e.tensor, axis)):
                    return True
    return False


def unless_nothing(seed: Expr, weight: Expr) -> Expr:
    """Guard a weight that is a multiple of the seed: it is 0 if the seed is 0 and the weight NaN.

    Otherwise the weight and its derivatives are unchanged.
    """
    undefined = Operation("and", Operation("!=", weight, weight), Operation("==", seed, ZERO))
    return Conditional(undefined, ZERO, weight)


def product_of(e: Expr) -> Expr | None:
    """Return the product in a term guarded by `unless_nothing`, if both factors are reused, as in a matrix product.

    There, a choice in each term takes several times as long as the product.
    """
    match e:
        case Conditional(condition=Operation(op="and", left=Operation(op="!=", left=a, right=b)), if_false=product):
            names = {n for read in reads(product) for s in read.indices for n in index_names(s)}
            misses = [names - {n for s in read.indices for n in index_names(s)} for read in reads(product)]
            mixes = any(m - other and other - m for m in misses for other in misses)
            return product if a == b == product and e.if_true == ZERO and mixes else None
    return None
