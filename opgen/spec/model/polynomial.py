"""Integer polynomials over the atoms of the shape language, to compare extents and to analyse subscripts.

An atom is any expression that is not a sum, a product or a number: a dimension, an index, an attribute, a quotient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from opgen.spec.model import model as m

Monomial: TypeAlias = tuple[m.Expr, ...]
"""A product of atoms, in a fixed order; () is 1."""

MAX_TERMS = 200


@dataclass(frozen=True)
class Polynomial:
    """A sum of monomials with nonzero integer coefficients."""

    terms: Mapping[Monomial, int]

    def __add__(self, other: Polynomial) -> Polynomial:
        sums = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            sums[monomial] = sums.get(monomial, 0) + coefficient
        return Polynomial({k: v for k, v in sums.items() if v})

    def __mul__(self, other: Polynomial) -> Polynomial:
        product = constant(0)
        for left, a in self.terms.items():
            shifted = {_ordered((*left, *right)): a * b for right, b in other.terms.items()}
            product = product + Polynomial(shifted)
        return product

    def __neg__(self) -> Polynomial:
        return Polynomial({k: -v for k, v in self.terms.items()})

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def substitute(self, atom: m.Expr, value: Polynomial) -> Polynomial:
        """Substitute a polynomial for an atom."""
        total = constant(0)
        for monomial, coefficient in self.terms.items():
            rest = tuple(a for a in monomial if a != atom)
            part = Polynomial({rest: coefficient})
            for _ in range(len(monomial) - len(rest)):
                part = part * value
            total = total + part
        return total

    @property
    def atoms(self) -> list[m.Expr]:
        return list(dict.fromkeys(a for monomial in self.terms for a in monomial))


def constant(value: int) -> Polynomial:
    return Polynomial({(): value} if value else {})


def _ordered(atoms: Monomial) -> Monomial:
    return tuple(sorted(atoms, key=repr))


def polynomial(expr: m.Expr) -> Polynomial:
    """Return an integer expression as a polynomial; a product that would become too large stays an atom."""
    if isinstance(expr, m.Number) and isinstance(expr.value, int):
        return constant(int(expr.value))
    if isinstance(expr, m.Negate):
        return -polynomial(expr.operand)
    if isinstance(expr, m.Operation) and expr.op in ("+", "-", "*"):
        left, right = polynomial(expr.left), polynomial(expr.right)
        if expr.op == "+":
            return left + right
        if expr.op == "-":
            return left - right
        if len(left.terms) * len(right.terms) <= MAX_TERMS:
            return left * right
    return Polynomial({(expr,): 1})


def same(left: m.Expr, right: m.Expr) -> bool:
    """Return True if two integer expressions are equal as polynomials."""
    return polynomial(left) == polynomial(right)


def digits(subscript: m.Expr, extent: m.Expr) -> list[tuple[str, m.Expr]] | None:
    """Return the indices of a mixed-radix composite and their extents, most significant first; None if it is not one.

    `g * K + k` covers a dimension of G * K exactly once for 0 <= g < G and 0 <= k < K.
    """
    whole = polynomial(extent).terms
    if len(whole) != 1:
        return None
    ((size, scale),) = whole.items()  # the atoms and their coefficient
    places = []
    for monomial, coefficient in polynomial(subscript).terms.items():
        indices = [a for a in monomial if isinstance(a, m.Index)]
        if len(indices) != 1 or coefficient < 1:
            return None
        places.append((coefficient, tuple(a for a in monomial if a != indices[0]), indices[0].name))
    places.sort(key=lambda place: (len(place[1]), place[0]))
    if not places or places[0][:2] != (1, ()) or len({p[2] for p in places}) < len(places):
        return None
    uppers = [(c, atoms) for c, atoms, _ in places[1:]] + [(scale, size)]
    found = []
    for (coefficient, atoms, index), (above, above_atoms) in zip(places, uppers, strict=True):
        quotient = _divide(above, above_atoms, coefficient, atoms)
        if quotient is None:
            return None
        found.append((index, quotient))
    return found[::-1]


def _divide(above: int, above_atoms: Monomial, below: int, below_atoms: Monomial) -> m.Expr | None:
    rest = Counter(above_atoms)
    rest.subtract(Counter(below_atoms))
    if above % below or any(count < 0 for count in rest.values()):
        return None
    factors: list[m.Expr] = [a for a in dict.fromkeys(above_atoms) for _ in range(rest[a])]
    if above // below != 1 or not factors:
        factors.insert(0, m.Number(above // below))
    return reduce(lambda left, right: m.Operation("*", left, right), factors)


def quotient(whole: m.Expr, part: m.Expr) -> m.Expr | None:
    """Divide a product of sizes by some of its factors; None if they are not factors of it."""
    above, below = polynomial(whole).terms, polynomial(part).terms
    if len(above) != 1 or len(below) != 1:
        return None
    ((atoms, scale),), ((factors, by),) = above.items(), below.items()
    return _divide(scale, atoms, by, factors)


def differences(condition: m.Expr) -> list[Polynomial]:
    """Return polynomials that are not negative if a condition holds."""
    if not isinstance(condition, m.Operation):
        return []
    if condition.op == "and":
        return differences(condition.left) + differences(condition.right)
    if condition.op not in ("<", "<=", ">", ">=", "=="):
        return []
    left, right = polynomial(condition.left), polynomial(condition.right)
    if condition.op == "==":
        return [right - left, left - right]
    greater = right - left if condition.op in ("<", "<=") else left - right
    return [greater - constant(1 if condition.op in ("<", ">") else 0)]
