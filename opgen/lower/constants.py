"""Mathematics over constants, written out: indices that only choose among numbers become those numbers.

`y[n, x] = sum[i](A[i, x % 2] * m[i, n, x // 2])` becomes, for each of the two remainders of x, a sum of four terms with
literal factors.  Terms with the factor 0 are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TypeAlias

from opgen.spec.model.model import Definition, Element, Expr, Index, Negate, Number, Operation, Reduce
from opgen.spec.model.walk import index_names, subexpressions, substitute_indices, transform

MOST = 256
"""Greatest number of copies of a definition, or terms of a sum, that may be written out."""

Term: TypeAlias = "tuple[Fraction, Expr | None]"
"""A number times an expression; the number alone."""


@dataclass(frozen=True)
class Expansion:
    """Treatment of a definition's indices: `chosen` are written out, with their extents.

    For each index in `split`, with its step, the remainder is written out, and `quotient(name)` names the part that
    stays a loop.
    """

    chosen: Mapping[str, int]
    split: Mapping[str, int]

    def copies(self) -> Iterator[Mapping[str, int]]:
        """Yield each choice of values: of a chosen index, or of a split one's remainder."""
        ranges = {**self.chosen, **self.split}
        for values in itertools.product(*(range(n) for n in ranges.values())):
            yield dict(zip(ranges, values, strict=True))

    def settle(self, e: Expr, choice: Mapping[str, int]) -> Expr:
        """Return an expression with a choice in place."""
        if not choice:
            return e
        e = transform(lambda n: self._quotients(n, choice), e)
        values: dict[str, Expr] = {n: Number(choice[n]) for n in self.chosen}
        for name, step in self.split.items():
            whole = Operation("*", Number(step), Index(quotient(name)))
            values[name] = Operation("+", whole, Number(choice[name]))
        return substitute_indices(e, values)

    def _quotients(self, n: Expr, choice: Mapping[str, int]) -> Expr:
        step = self.split.get(n.left.name) if isinstance(n, Operation) and isinstance(n.left, Index) else None
        if isinstance(n, Operation) and isinstance(n.left, Index) and step is not None and step == _number(n.right):
            if n.op == "//":
                return Index(quotient(n.left.name))
            if n.op == "%":
                return Number(choice[n.left.name])
        return n


def quotient(name: str) -> str:
    """Return the index that counts the steps of a split one."""
    return f"{name}'"


def expansion(definition: Definition) -> Expansion:
    """Return the indices to write out of a definition: none if it reads no constants, or if it would grow too large."""
    extents = {r.name: _number(r.extent) for r in definition.indices}
    chosen: dict[str, int] = {}
    split: dict[str, int] = {}
    nothing = Expansion({}, {})
    for subscript in _subscripts(definition.value):
        step = _number(subscript.right) if isinstance(subscript, Operation) and subscript.op == "%" else None
        if isinstance(subscript, Operation) and isinstance(subscript.left, Index) and step:
            if subscript.left.name in extents and split.setdefault(subscript.left.name, step) != step:
                return nothing
            continue
        for name in index_names(subscript) & set(extents):
            extent = extents[name]
            if extent is None:
                return nothing
            chosen[name] = extent
    if set(chosen) & set(split) or prod((*chosen.values(), *split.values())) > MOST:
        return nothing
    return Expansion(chosen, split)


def terms(e: Reduce) -> tuple[Term, ...] | None:
    """Return the nonzero terms of a sum over indices that choose among numbers; None for any other sum."""
    extents = [_number(r.extent) for r in e.indices]
    known = [n for n in extents if n is not None]
    choosing = {n for s in _subscripts(e.body) for n in index_names(s)}
    wanted = e.kind == "sum" and e.condition is None and all(r.name in choosing for r in e.indices)
    if not wanted or len(known) < len(extents) or prod(known) > MOST:
        return None
    found: list[Term] = []
    for values in itertools.product(*(range(n) for n in known)):
        numbers: dict[str, Expr] = {r.name: Number(v) for r, v in zip(e.indices, values, strict=True)}
        factor, rest = _factors(substitute_indices(e.body, numbers))
        if factor:
            found.append((factor, rest))
    return tuple(found)


def _factors(e: Expr) -> Term:
    """Return the number in a product, and the rest of it."""
    match e:
        case Number() if not isinstance(e.value, bool):
            return Fraction(e.value), None
        case Element():
            position = tuple(integer(i) for i in e.indices)
            known = tuple(i for i in position if i is not None)
            return (e.constant.at(known), None) if len(known) == len(position) else (Fraction(1), e)
        case Negate():
            factor, rest = _factors(e.operand)
            return -factor, rest
        case Operation(op="*"):
            (a, left), (b, right) = _factors(e.left), _factors(e.right)
            if left is None or right is None:
                return a * b, left if right is None else right
            return a * b, Operation("*", left, right)
        case _:
            return Fraction(1), e


def integer(e: Expr) -> int | None:
    """Return the value of an integer expression without names."""
    if isinstance(e, Operation):
        left, right = integer(e.left), integer(e.right)
        if left is None or right is None:
            return None
        match e.op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "//" if right:
                return left // right
            case "%" if right:
                return left % right
        return None
    return _number(e)


def _number(e: Expr) -> int | None:
    return e.value if isinstance(e, Number) and type(e.value) is int else None


def _subscripts(e: Expr) -> Iterator[Expr]:
    """Yield the subscripts of the constants in an expression."""
    for n in subexpressions(e):
        if isinstance(n, Element):
            yield from n.indices
