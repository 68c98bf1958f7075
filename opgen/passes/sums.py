"""Sums of integers with equal terms collected."""

from __future__ import annotations

from opgen.dtypes import wrap
from opgen.loop.nodes import Binary, Const, Expr
from opgen.passes.fold import fold, with_offset

Terms = list[tuple[Expr, int]]


def collect(e: Expr) -> Expr:
    """Return the sum with like terms merged (`x*3 + y - x` is `x*2 + y`), or the same object if no two are alike."""
    if not isinstance(e, Binary) or e.op not in ("add", "sub"):
        return e
    terms: Terms = []
    constant = _flatten(e, 1, terms)
    merged: dict[Expr, int] = {}
    for atom, factor in terms:
        merged[atom] = merged.get(atom, 0) + factor
    if len(merged) == len(terms):
        return e
    return with_offset(_rebuild(merged, e), constant)


def _flatten(e: Expr, sign: int, terms: Terms) -> int:
    """Append the terms of sign*e, and return the sum of its constants."""
    if isinstance(e, Const):
        return sign * int(e.value)
    if isinstance(e, Binary) and e.op in ("add", "sub"):
        left = _flatten(e.left, sign, terms)
        return left + _flatten(e.right, sign if e.op == "add" else -sign, terms)
    if isinstance(e, Binary) and e.op == "mul" and isinstance(e.right, Const):
        factor = int(e.right.value)
        if isinstance(e.left, Binary) and e.left.op in ("add", "sub"):
            return _flatten(e.left, sign * factor, terms)
        terms.append((e.left, sign * factor))
        return 0
    terms.append((e, sign))
    return 0


def _rebuild(merged: dict[Expr, int], like: Expr) -> Expr:
    """Return the sum of factor*atom, in order of first appearance, but with a positive term first if there is one."""
    kept = [(atom, wrap(factor, like.type.dtype)) for atom, factor in merged.items()]
    kept = [(atom, factor) for atom, factor in kept if factor]
    kept.sort(key=lambda term: term[1] < 0)
    total: Expr = Const(0, like.type)
    for atom, factor in kept:
        empty = isinstance(total, Const)
        if factor < 0 and not empty:
            total = Binary("sub", total, _times(atom, -factor))
        else:
            total = _times(atom, factor) if empty else Binary("add", total, _times(atom, factor))
    return total


def _times(atom: Expr, factor: int) -> Expr:
    return atom if factor == 1 else fold(Binary("mul", atom, Const(factor, atom.type)))
