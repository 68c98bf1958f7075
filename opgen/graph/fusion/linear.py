"""Affine forms: an expression as a factor times a value that it reads, plus a term."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from opgen.grad.algebra import add, divide, is_number, mul, negate, sub
from opgen.graph.fusion.rewrite import with_children
from opgen.spec.model import model as m
from opgen.spec.model.walk import reads, subexpressions, substitute_indices

ZERO, ONE = m.Number(0), m.Number(1)


@dataclass(frozen=True)
class Affine:
    """Affine form `factor` * x + `term`; neither reads x."""

    factor: m.Expr
    term: m.Expr


def affine_in(e: m.Expr, tensor: str, dtype: str) -> Affine | None:
    """Return the affine form of an expression in the elements of a tensor, all at one place; None if it has none."""
    if not any(r.tensor == tensor for r in reads(e)):
        return Affine(ZERO, e)
    match e:
        case m.Read() if e.tensor == tensor and e.outside is None:
            return Affine(ONE, ZERO)
        case m.Negate():
            inner = affine_in(e.operand, tensor, dtype)
            return None if inner is None else Affine(negate(inner.factor), negate(inner.term))
        case m.Convert() if e.to == dtype:
            return affine_in(e.operand, tensor, dtype)
        case m.Operation("+" | "-" | "*" | "/"):
            left, right = affine_in(e.left, tensor, dtype), affine_in(e.right, tensor, dtype)
            return None if left is None or right is None else _combined(e.op, left, right)
    return None


def _combined(op: str, left: Affine, right: Affine) -> Affine | None:
    match op:
        case "+":
            return Affine(add(left.factor, right.factor), add(left.term, right.term))
        case "-":
            return Affine(sub(left.factor, right.factor), sub(left.term, right.term))
        case "/" if is_number(right.factor, 0):
            return Affine(divide(left.factor, right.term), divide(left.term, right.term))
        case "*" if is_number(right.factor, 0):
            return Affine(mul(left.factor, right.term), mul(left.term, right.term))
        case "*" if is_number(left.factor, 0):
            return Affine(mul(left.term, right.factor), mul(left.term, right.term))
    return None


def terms_of(e: m.Expr, dtype: str) -> Iterator[m.Expr]:
    """Yield the terms that a value adds up."""
    match e:
        case m.Operation("+"):
            yield from terms_of(e.left, dtype)
            yield from terms_of(e.right, dtype)
        case m.Convert() if e.to == dtype:
            yield from terms_of(e.operand, dtype)
        case _:
            yield e


def linear_read(term: m.Expr, constant: Collection[str], dtype: str) -> m.Read | None:
    """Return the one read of a constant tensor that a term is linear in: a factor of it, or of the terms of its sum."""
    for factor in _factors(term, dtype):
        if isinstance(factor, m.Read) and factor.tensor in constant and factor.outside is None:
            return factor
        if isinstance(factor, m.Reduce) and factor.kind == "sum" and not isinstance(factor, m.Scatter):
            return linear_read(factor.body, constant, dtype)
    return None


def _factors(e: m.Expr, dtype: str) -> Iterator[m.Expr]:
    match e:
        case m.Operation("*"):
            yield from _factors(e.left, dtype)
            yield from _factors(e.right, dtype)
        case m.Convert() if e.to == dtype:
            yield from _factors(e.operand, dtype)
        case _:
            yield e


def without_lets(definitions: tuple[m.Definition, ...]) -> m.Expr | None:
    """Return the value of the last of some definitions, with intermediates inlined; None if one of them reduces."""
    lets = {d.tensor: d for d in definitions[:-1]}
    if any(isinstance(n, m.Reduce) for d in lets.values() for n in subexpressions(d.value)):
        return None

    def put(e: m.Expr) -> m.Expr:
        new = with_children(e, put)
        if not isinstance(new, m.Read) or new.tensor not in lets:
            return new
        let = lets[new.tensor]
        names = [s.name for s in let.subscripts if isinstance(s, m.Index)]
        return substitute_indices(put(let.value), dict(zip(names, new.indices, strict=True)))

    if any(r.outside is not None and r.tensor in lets for d in definitions for r in reads(d.value)):
        return None
    return put(definitions[-1].value)
