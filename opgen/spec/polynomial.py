"""Integer polynomials over the atoms of the shape language: when two extents are the same, and what a subscript covers.

An atom is any expression that is not a sum, a product or a number: a dimension, an index, an attribute, a quotient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from opgen.spec import model as m
from opgen.spec.walk import transform

Monomial: TypeAlias = tuple[m.Expr, ...]
"""A product of atoms, in a fixed order; () is 1."""

_MAX_TERMS = 200
_DEEP = 8
"""How many names of names are looked up."""


@dataclass(frozen=True)
class Polynomial:
    """A sum of monomials with integer coefficients; none of them is 0."""

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
        """This polynomial with a value for an atom."""
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
    """An integer expression as a polynomial; a product that would grow out of hand stays an atom."""
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
        if len(left.terms) * len(right.terms) <= _MAX_TERMS:
            return left * right
    return Polynomial({(expr,): 1})


def same(left: m.Expr, right: m.Expr) -> bool:
    """Whether two integer expressions are equal as polynomials."""
    return polynomial(left) == polynomial(right)


def digits(subscript: m.Expr, extent: m.Expr) -> list[tuple[str, m.Expr]] | None:
    """The indices of a mixed-radix composite and their extents, most significant first; None if it is none.

    `g * K + k` covers a dimension of G * K exactly once for 0 <= g < G and 0 <= k < K.
    """
    whole = polynomial(extent).terms
    if len(whole) != 1:
        return None
    ((size, scale),) = whole.items()  # the atoms, and the number before them
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
    """What a product of sizes is divided by some of its factors; None where they are none."""
    above, below = polynomial(whole).terms, polynomial(part).terms
    if len(above) != 1 or len(below) != 1:
        return None
    ((atoms, scale),), ((factors, by),) = above.items(), below.items()
    return _divide(scale, atoms, by, factors)


def inside(
    subscript: m.Expr,
    extent: m.Expr,
    ranges: Mapping[str, m.Expr],
    least: Callable[[m.Expr], int | None],
    required: Sequence[Polynomial] = (),
    names: Mapping[m.Expr, m.Expr] | None = None,
) -> bool:
    """Whether 0 <= subscript < extent is proved for all indices in their ranges.

    `least` gives a lower bound of an atom, or None; `required` are not negative in any call; `names` are what symbols
    stand for.  Where there is anything to prove, every range has an element, and no divisor is 0.
    """
    subscript, ranges = _divided(subscript, ranges)
    place = polynomial(subscript)
    above = polynomial(extent) - constant(1) - _bound(place, ranges, least, upper=True)
    below = _bound(place, ranges, least, upper=False)
    extents = [e for e in ranges.values() if isinstance(e, m.Symbol | m.AttrValue)]

    def floor(atom: m.Expr) -> int | None:
        known = least(atom)
        return max(1, known or 1) if atom in extents else known

    certain = (*required, *(polynomial(e) - constant(1) for e in ranges.values()))

    def proved(value: Polynomial) -> bool:
        if any(_not_negative(value - known, floor) for known in (constant(0), *required)):
            return True
        value = _spelled(value, names or {})
        quotients = [r for a in value.atoms for r in _remainders(a, least)]
        facts = [_spelled(known, names or {}) for known in certain]
        divided = [constant(0), *(_spelled(known, names or {}) for known in quotients)]
        return any(_not_negative(value - known - other, floor) for known in (constant(0), *facts) for other in divided)

    return proved(below) and proved(above)


def _divided(e: m.Expr, ranges: Mapping[str, m.Expr]) -> tuple[m.Expr, Mapping[str, m.Expr]]:
    """A subscript in which remainders, and exact quotients of indices, are indices of their own, with their ranges."""
    found = dict(ranges)

    def index(n: m.Expr) -> m.Expr:
        if not isinstance(n, m.Operation) or n.op not in ("//", "%"):
            return n
        extent: m.Expr | None = n.right
        if n.op == "//":
            whole = found.get(n.left.name) if isinstance(n.left, m.Index) else None
            extent = None if whole is None else quotient(whole, n.right)
        if extent is None:
            return n
        name = f"{n.op} {n!r}"
        found[name] = extent
        return m.Index(name)

    return transform(index, e), found


def _spelled(value: Polynomial, names: Mapping[m.Expr, m.Expr]) -> Polynomial:
    """A polynomial with what symbols stand for in their place, as far as it does not grow out of hand."""
    for _ in range(_DEEP):
        found = [a for a in value.atoms if a in names]
        if not found:
            break
        for atom in found:
            meant = polynomial(names[atom])
            powers = max(monomial.count(atom) for monomial in value.terms)
            if powers > 1 or len(value.terms) * len(meant.terms) > _MAX_TERMS:
                return value
            value = value.substitute(atom, meant)
    return value


def _remainders(atom: m.Expr, least: Callable[[m.Expr], int | None]) -> list[Polynomial]:
    """What is not negative for a quotient that is rounded: what is left over, and what it lacks to the divisor."""
    if not isinstance(atom, m.Operation) or atom.op not in ("//", "ceildiv"):
        return []
    divisor = polynomial(atom.right)
    if not _not_negative(divisor - constant(1), least):
        return []
    left = polynomial(atom.left) - divisor * Polynomial({(atom,): 1})
    left = left if atom.op == "//" else -left
    return [left, divisor - constant(1) - left]


def differences(condition: m.Expr) -> list[Polynomial]:
    """What is not negative where a condition holds."""
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


def _bound(
    place: Polynomial, ranges: Mapping[str, m.Expr], least: Callable[[m.Expr], int | None], upper: bool
) -> Polynomial:
    """The largest or least value, index by index; an index whose coefficient's sign is unknown stays in it."""
    total = constant(0)
    for monomial, coefficient in place.terms.items():
        term = Polynomial({monomial: coefficient})
        indices = [a for a in monomial if isinstance(a, m.Index)]
        others = [a for a in monomial if not isinstance(a, m.Index)]
        if len(indices) == 1 and indices[0].name in ranges and all(_positive(least(a)) for a in others):
            last = polynomial(ranges[indices[0].name]) - constant(1)
            term = term.substitute(indices[0], last if (coefficient > 0) == upper else constant(0))
        total = total + term
    return total


def _positive(bound: int | None) -> bool:
    return bound is not None and bound >= 0


def _not_negative(value: Polynomial, floor: Callable[[m.Expr], int | None]) -> bool:
    """Whether a polynomial is at least 0: every atom is replaced by its floor plus something that is not negative."""
    for atom in value.atoms:
        at_least = floor(atom)
        if at_least is None or at_least < 0:
            return False
        if at_least > 0:
            value = value.substitute(atom, Polynomial({(atom,): 1}) + constant(at_least))
    return all(coefficient >= 0 for coefficient in value.terms.values())
