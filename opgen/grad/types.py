"""Scalar types of values."""

from __future__ import annotations

from collections.abc import Mapping

from opgen.dtypes import BOOL, INT64, lookup
from opgen.spec.model.model import (
    PREDICATES,
    Apply,
    BitCast,
    Conditional,
    Convert,
    Expr,
    MultiplyAdd,
    Negate,
    Operation,
    Read,
    Reduce,
)

Types = Mapping[str, str]
"""The type (a type variable or a scalar type) of each tensor."""


def type_of(e: Expr, types: Types) -> str | None:
    """Return the type of a value's elements, or None if it takes the type of its context."""
    match e:
        case Read():
            return types[e.tensor]
        case Convert() | BitCast():
            return e.to
        case Negate():
            return type_of(e.operand, types)
        case Apply():
            return BOOL.name if e.function in PREDICATES else type_of(e.argument, types)
        case Reduce():
            return type_of(e.body, types) if e.place is None else INT64.name
        case Operation():
            return type_of(e.left, types) or type_of(e.right, types)
        case MultiplyAdd():
            return type_of(e.left, types) or type_of(e.right, types) or type_of(e.added, types)
        case Conditional():
            return type_of(e.if_true, types) or type_of(e.if_false, types)
        case _:
            return None


def may_vary(name: str) -> bool:
    """Return True if values of a type vary continuously; type variables are assumed to."""
    dtype = lookup(name)
    return dtype is None or dtype.is_float
