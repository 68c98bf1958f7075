"""Numeric bounds of atoms and polynomials: quick, and exact for linear forms in independent variables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from opgen.dtypes import DTYPES, INT64
from opgen.loop.analysis.polynomial import Atom, Monomial, Polynomial
from opgen.loop.nodes import Cast

Interval = tuple[int | None, int | None]
"""The least and the greatest value, both inclusive; None is unbounded."""

UNBOUNDED: Interval = (None, None)
_TYPE_RANGES: dict[str, Interval] = {
    d.name: (d.least, d.greatest) for d in DTYPES.values() if not d.is_float and d != INT64
}


def meet(a: Interval, b: Interval) -> Interval:
    """Return the intersection of two intervals."""
    low = b[0] if a[0] is None else a[0] if b[0] is None else max(a[0], b[0])
    high = b[1] if a[1] is None else a[1] if b[1] is None else min(a[1], b[1])
    return low, high


def join(a: Interval, b: Interval) -> Interval:
    """Return the smallest interval that contains both."""
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return low, high


def scale(a: Interval, c: int) -> Interval:
    low, high = (None if x is None else x * c for x in a)
    return (low, high) if c >= 0 else (high, low)


def multiply(a: Interval, b: Interval) -> Interval:
    """Return the products of a number in each."""
    inf = float("inf")
    rows = (-inf if a[0] is None else a[0], inf if a[1] is None else a[1])
    columns = (-inf if b[0] is None else b[0], inf if b[1] is None else b[1])
    products = [0 if x == 0 or y == 0 else x * y for x in rows for y in columns]
    low, high = min(products), max(products)
    return (None if low == -inf else int(low)), (None if high == inf else int(high))


def floor_divide(a: Interval, divisor: Interval) -> Interval:
    """Return quotients, rounded down, by a positive number; anything for an empty interval (code that never runs)."""
    least, most = divisor
    if least is None or least < 1 or (most is not None and most < least):
        return UNBOUNDED
    low = None if a[0] is None else (a[0] // least if a[0] < 0 else 0 if most is None else a[0] // most)
    high = None if a[1] is None else (a[1] // least if a[1] >= 0 else -1 if most is None else a[1] // most)
    return low, high


@dataclass
class Intervals:
    """Bounds of variables, and from them those of every other atom."""

    ranges: dict[Atom, Interval] = field(default_factory=dict)
    _derived: dict[Atom, Interval] = field(default_factory=dict)
    _products: dict[Monomial, Interval] = field(default_factory=dict)

    def of(self, p: Polynomial) -> Interval:
        low: int | None = 0
        high: int | None = 0
        for monomial, c in p.terms.items():
            if not monomial:
                term: Interval = (c, c)
            else:
                term = scale(self._monomial(monomial), c)
            low = None if low is None or term[0] is None else low + term[0]
            high = None if high is None or term[1] is None else high + term[1]
            if low is None and high is None:
                return UNBOUNDED
        return low, high

    def least(self, p: Polynomial, less: Polynomial) -> int | None:
        """Return the least value of `p - less`."""
        total = 0
        for monomial, c in p.terms.items():
            low = self._least(monomial, c - less.terms.get(monomial, 0))
            if low is None:
                return None
            total += low
        for monomial, c in less.terms.items():
            if monomial not in p.terms:
                low = self._least(monomial, -c)
                if low is None:
                    return None
                total += low
        return total

    def _least(self, monomial: Monomial, c: int) -> int | None:
        """Return the least value of a term."""
        if not monomial or c == 0:
            return c
        bound = self._monomial(monomial)[0 if c > 0 else 1]
        return None if bound is None else c * bound

    def _monomial(self, monomial: Monomial) -> Interval:
        if len(monomial) == 1:
            return self.atom(monomial[0])
        if monomial not in self._products:
            product = self.atom(monomial[0])
            for factor in monomial[1:]:
                product = multiply(product, self.atom(factor))
            if len(monomial) == 2 and monomial[0] is monomial[1]:
                product = meet(product, (0, None))
            self._products[monomial] = product
        return self._products[monomial]

    def atom(self, a: Atom) -> Interval:
        if a not in self._derived:
            self._derived[a] = meet(self.ranges.get(a, UNBOUNDED), self._structure(a))
        return self._derived[a]

    def _structure(self, a: Atom) -> Interval:
        """Return the bounds implied by the operands of an atom, or by the type of an opaque one."""
        inner = [self.of(p) for p in a.operands]
        match a.kind:
            case "floordiv":
                return floor_divide(inner[0], inner[1])
            case "min":
                either = join(inner[0], inner[1])
                return either[0], meet((None, inner[0][1]), (None, inner[1][1]))[1]
            case "max":
                either = join(inner[0], inner[1])
                return meet((inner[0][0], None), (inner[1][0], None))[0], either[1]
            case "select":
                return join(inner[0], inner[1])
        return _type_range(a)

    def learn(self, fact: Polynomial) -> None:
        """Tighten the bounds of the atoms that a fact (a polynomial not negative) bounds numerically."""
        terms_with = Counter(a for monomial in fact.terms for a in set(monomial))
        alone = (m[0] for m in fact.terms if len(m) == 1)
        for a in sorted((a for a in alone if terms_with[a] == 1), key=lambda a: a.key):
            c = fact.terms[(a,)]
            rest = self.of(fact - Polynomial({(a,): c}))[1]
            if rest is not None:  # c * a >= -rest
                bound: Interval = (-(rest // c), None) if c > 0 else (None, rest // -c)
                self.ranges[a] = meet(self.ranges.get(a, UNBOUNDED), bound)
                self._derived.clear()
                self._products.clear()


def _type_range(a: Atom) -> Interval:
    """Return the range of an atom's type; for a cast that keeps every value, that of its operand."""
    own = _TYPE_RANGES.get(a.expr.type.dtype.name, UNBOUNDED)
    if not isinstance(a.expr, Cast) or a.expr.operand.type.dtype.is_float:
        return own
    to, given = a.expr.type.dtype, a.expr.operand.type.dtype
    kept = to.least <= given.least and given.greatest <= to.greatest
    return _TYPE_RANGES.get(given.name, UNBOUNDED) if kept else own
