"""Proofs that a subscript stays inside a dimension.

A proof shows that an integer polynomial is not negative.  Each index is replaced by the end of its range that minimises
the polynomial.  Other operations are split: a `min` or `max` into its sides, an `if` into its cases.  A quotient or
remainder by a positive divisor is replaced by its bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from opgen.spec.model import model as m
from opgen.spec.model.polynomial import MAX_TERMS, Polynomial, constant, differences, polynomial

_DEEP = 8
"""Limit of nested name look-ups, and of nested splits of a subscript."""
_STEPS = 200
"""Limit of polynomials examined for one subscript."""

_Goal: TypeAlias = tuple[Polynomial, tuple[Polynomial, ...]]
"""A polynomial to prove non-negative, and the polynomials assumed non-negative in its case."""


def inside(
    subscript: m.Expr,
    extent: m.Expr,
    ranges: Mapping[str, m.Expr],
    least: Callable[[m.Expr], int | None],
    required: Sequence[Polynomial] = (),
    names: Mapping[m.Expr, m.Expr] | None = None,
) -> bool:
    """True if 0 <= subscript < extent is proved for all indices in their ranges.

    `least` returns a lower bound of an atom, or None.  `required` are not negative in any call.  `names` maps symbols
    to their values.  The proof may assume that every range has an element and no divisor is 0.
    """
    proof, place = _Proof(ranges, least, required, names or {}), polynomial(subscript)
    return proof.holds((place, ())) and proof.holds((polynomial(extent) - constant(1) - place, ()))


@dataclass
class _Proof:
    ranges: Mapping[str, m.Expr]
    least: Callable[[m.Expr], int | None]
    required: Sequence[Polynomial]
    names: Mapping[m.Expr, m.Expr]
    _steps: int = 0
    _floors: dict[m.Expr, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        extents = [polynomial(e) - constant(1) for e in self.ranges.values()]
        self._certain = (*self.required, *extents)
        for known in self._certain:
            atoms = [monomial for monomial in known.terms if monomial]
            if len(atoms) == 1 and len(atoms[0]) == 1 and known.terms[atoms[0]] == 1:
                atom, bound = atoms[0][0], -known.terms.get((), 0)
                self._floors[atom] = max(self._floors.get(atom, bound), bound)

    def floor(self, atom: m.Expr) -> int | None:
        """Return a lower bound of an atom, assuming that every range has an element."""
        known, told = self.least(atom), self._floors.get(atom)
        return known if told is None else told if known is None else max(known, told)

    def holds(self, goal: _Goal, depth: int = 0) -> bool:
        """True if a polynomial is proved to be at least 0."""
        self._steps += 1
        if self._steps > _STEPS:
            return False
        value, facts = goal
        if self._plain(value, facts):
            return True
        if depth >= _DEEP:
            return False
        for form in (_spelled(value, self.names), _spelled(self._bounded(value), self.names)):
            ways = next((w for w in (self._ways(a, form, facts) for a in form.atoms) if w), None)
            if ways is not None and any(all(self.holds(part, depth + 1) for part in way) for way in ways):
                return True
        return False

    # One polynomial -------------------------------------------------------------------------------

    def _plain(self, value: Polynomial, facts: Sequence[Polynomial]) -> bool:
        """True if a polynomial is proved non-negative without splitting an operation."""
        known = [constant(0), *facts, *(r for a in value.atoms for r in self._remainders(a))]
        return any(self._seen(self._bounded(value - k)) for k in known)

    def _seen(self, value: Polynomial) -> bool:
        if any(_not_negative(value - known, self.floor) for known in (constant(0), *self.required)):
            return True
        value = _spelled(value, self.names)
        quotients = [r for a in value.atoms for r in self._remainders(a)]
        facts = [_spelled(known, self.names) for known in self._certain]
        divided = [constant(0), *(_spelled(known, self.names) for known in quotients)]
        differences = ((known, other) for known in (constant(0), *facts) for other in divided)
        return any(_not_negative(value - known - other, self.floor) for known, other in differences)

    def _remainders(self, atom: m.Expr) -> list[Polynomial]:
        """Return the polynomials a rounded quotient keeps non-negative: remainder or excess r, and divisor - 1 - r."""
        if not isinstance(atom, m.Operation) or atom.op not in ("//", "ceildiv"):
            return []
        divisor = polynomial(atom.right)
        if not _not_negative(divisor - constant(1), self.floor):
            return []
        left = polynomial(atom.left) - divisor * Polynomial({(atom,): 1})
        left = left if atom.op == "//" else -left
        return [left, divisor - constant(1) - left]

    def _bounded(self, place: Polynomial) -> Polynomial:
        """Minimise a polynomial index by index; an index whose coefficient has unknown sign is kept."""
        total = constant(0)
        for monomial, coefficient in place.terms.items():
            term = Polynomial({monomial: coefficient})
            indices = [a for a in monomial if isinstance(a, m.Index)]
            others = [a for a in monomial if not isinstance(a, m.Index)]
            if len(indices) == 1 and indices[0].name in self.ranges and all(map(self._positive, others)):
                last = polynomial(self.ranges[indices[0].name]) - constant(1)
                term = term.substitute(indices[0], last if coefficient < 0 else constant(0))
            total = total + term
        return total

    def _positive(self, atom: m.Expr) -> bool:
        """True if an atom is never negative."""
        bound = 0 if isinstance(atom, m.Index) else self.floor(atom)
        return bound is not None and bound >= 0

    # Splits ---------------------------------------------------------------------------------------

    def _ways(self, atom: m.Expr, value: Polynomial, facts: tuple[Polynomial, ...]) -> list[list[_Goal]]:
        """Return alternative lists of goals; proving every goal of one list proves the polynomial with this atom."""
        match atom:
            case m.Conditional():
                then = (*facts, *differences(atom.condition))
                otherwise = (*facts, *_otherwise(atom.condition))
                sides = (atom.if_true, then), (atom.if_false, otherwise)
                return [[(value.substitute(atom, polynomial(side)), known) for side, known in sides]]
            case m.Operation(op="min" | "max"):
                return list(self._sides(atom, value, facts))
            case m.Operation(op="//" | "%" | "ceildiv"):
                divisor = polynomial(atom.right)
                small = len(divisor.terms) * len(value.terms) <= MAX_TERMS
                if small and self.holds((divisor, facts), _DEEP):  # divisors are known not to be 0
                    return list(self._divided(atom, divisor, value, facts))
        return []

    def _sides(self, atom: m.Operation, value: Polynomial, facts: tuple[Polynomial, ...]) -> Iterator[list[_Goal]]:
        """Yield goals for a `min` or `max`: either side, or the mean of both, if its sign allows; else both sides."""
        left, right = polynomial(atom.left), polynomial(atom.right)
        sign = self._sign(atom, value)
        if (sign < 0) == (atom.op == "min") and sign:
            for side in (left, right):
                yield [(value.substitute(atom, side), facts)]
            twice = Polynomial({k: v if atom in k else 2 * v for k, v in value.terms.items()})
            yield [(twice.substitute(atom, left + right), facts)]
        else:
            above = right - left if atom.op == "min" else left - right  # where the left one is taken
            cases = (left, above), (right, -above)
            yield [(value.substitute(atom, side), (*facts, known)) for side, known in cases]

    def _divided(
        self, atom: m.Operation, divisor: Polynomial, value: Polynomial, facts: tuple[Polynomial, ...]
    ) -> Iterator[list[_Goal]]:
        """Yield goals for a quotient or remainder by a positive divisor; its sign selects the relevant bound."""
        dividend, sign = polynomial(atom.left), self._sign(atom, value)
        not_negative = (dividend, facts)
        if not sign:
            return
        if atom.op == "%":
            yield [(value.substitute(atom, constant(0) if sign > 0 else divisor - constant(1)), facts)]
        elif (alone := value.terms.get((atom,))) and not any(atom in k for k in value.terms if k != (atom,)):
            yield [(_without_quotient(atom, divisor, value, alone), facts)]
        if atom.op != "ceildiv":
            yield [not_negative, (value.substitute(atom, constant(0) if sign > 0 else dividend), facts)]

    def _sign(self, atom: m.Expr, value: Polynomial) -> int:
        """Return 1 if a polynomial grows with an atom, -1 if it falls, 0 if neither is known."""
        parts = [(k, v) for k, v in value.terms.items() if atom in k]
        plain = all(k.count(atom) == 1 and all(self._positive(a) for a in k if a != atom) for k, _ in parts)
        signs = {v > 0 for _, v in parts}
        return 0 if not plain or len(signs) > 1 else 1 if True in signs else -1


def _without_quotient(atom: m.Operation, divisor: Polynomial, value: Polynomial, times: int) -> Polynomial:
    """Return a polynomial without the quotient that is non-negative only if rest + times * quotient is.

    It is that sum multiplied by the divisor, with the quotient replaced by its bound.

    A quotient is at most q if the dividend is below (q + 1) * divisor, and at least q if it is not below q * divisor.
    """
    rest = value - Polynomial({(atom,): times})
    dividend = polynomial(atom.left)
    if atom.op == "ceildiv":
        dividend = dividend + divisor - constant(1)
    lost = divisor - constant(1)
    if times == -1:
        return rest * divisor + lost - dividend
    scaled = rest * divisor + constant(times) * dividend
    return scaled - constant(times) * lost if times > 1 else scaled


def _otherwise(condition: m.Expr) -> list[Polynomial]:
    """Return polynomials that are not negative where a condition is false."""
    found = differences(condition)
    compared = isinstance(condition, m.Operation) and condition.op in ("<", "<=", ">", ">=")
    return [-known - constant(1) for known in found] if compared else []


def _spelled(value: Polynomial, names: Mapping[m.Expr, m.Expr]) -> Polynomial:
    """Return a polynomial with symbols replaced by their values, as long as it keeps to MAX_TERMS."""
    for _ in range(_DEEP):
        found = [a for a in value.atoms if a in names]
        if not found:
            break
        for atom in found:
            meant = polynomial(names[atom])
            powers = max(monomial.count(atom) for monomial in value.terms)
            if powers > 1 or len(value.terms) * len(meant.terms) > MAX_TERMS:
                return value
            value = value.substitute(atom, meant)
    return value


def _not_negative(value: Polynomial, floor: Callable[[m.Expr], int | None]) -> bool:
    """True if a polynomial is at least 0 once every atom is written as its floor plus a non-negative remainder."""
    for atom in value.atoms:
        at_least = floor(atom)
        if at_least is None or at_least < 0:
            return False
        if at_least > 0:
            value = value.substitute(atom, Polynomial({(atom,): 1}) + constant(at_least))
    return all(coefficient >= 0 for coefficient in value.terms.values())
