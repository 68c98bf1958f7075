"""Integer expressions of indices, with numbers for all sizes, in a normal form that is mostly the same for equal ones.

An expression is a sum of integer multiples of atoms.  An atom is an index, or a floor quotient `sum // k` that cannot
be simplified.  `x % k` is `x - k * (x // k)`.  A quotient whose ranges show that it is 0 is dropped.  So an element's
place that is split into indices and composed again comes out as the original.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from typing import TypeAlias

from opgen.spec.model import model as m

Atom: TypeAlias = "str | tuple[Sum, int]"
Sum: TypeAlias = "tuple[tuple[Atom | None, int], ...]"
"""Atoms, each with its factor, in a fixed order; None is the atom 1."""


class Sums:
    """Expressions over indices that range from 0 to their extents."""

    def __init__(self, extents: Mapping[str, int], number: Callable[[m.Expr], int | None]) -> None:
        """Start with `number`, which returns the value of an expression without indices, or None if it has none."""
        self._extents = extents
        self._number = number

    def of(self, e: m.Expr) -> Sum | None:
        """Return an expression as a sum; None if it is not a sum."""
        if isinstance(e, m.Index):
            return ((e.name, 1),) if self._extents[e.name] > 1 else ()
        if isinstance(e, m.Negate):
            operand = self.of(e.operand)
            return None if operand is None else times(operand, -1)
        if isinstance(e, m.Operation) and e.op in ("+", "-", "*", "//", "%"):
            left, right = self.of(e.left), self.of(e.right)
            return None if left is None or right is None else self._operation(e.op, left, right)
        found = self._number(e)
        return None if found is None else constant(found)

    def _operation(self, op: str, left: Sum, right: Sum) -> Sum | None:
        if op == "+":
            return plus(left, right)
        if op == "-":
            return plus(left, times(right, -1))
        factor = _value(right)
        if op == "*" and factor is None:
            factor, left = _value(left), right
        if factor is None or (op != "*" and factor < 1):
            return None
        if op == "*":
            return times(left, factor)
        quotient = self.quotient(left, factor)
        return quotient if op == "//" else plus(left, times(quotient, -factor))

    def quotient(self, given: Sum, by: int) -> Sum:
        """Return a sum divided by a number, rounded down."""
        whole = tuple((atom, factor // by) for atom, factor in given if atom is not None and factor % by == 0)
        rest = tuple((atom, factor) for atom, factor in given if atom is None or factor % by)
        low, high = self.range(rest)
        if low // by == high // by:
            return plus(whole, constant(low // by))
        return plus(whole, self._small(rest, by))

    def _small(self, given: Sum, by: int) -> Sum:
        """Return the same for a sum without terms that the number divides."""
        for common in sorted({abs(factor) for _, factor in given}, reverse=True):
            step = gcd(common, by)
            larger = tuple((atom, factor) for atom, factor in given if factor % step == 0)
            low, high = self.range(tuple(t for t in given if t not in larger))
            if step > 1 and low >= 0 and high < step:
                return self.quotient(tuple((atom, factor // step) for atom, factor in larger), by // step)
        if len(given) == 1 and given[0][1] == 1 and isinstance(given[0][0], tuple):
            inner, divisor = given[0][0]
            return self.quotient(inner, divisor * by)
        return ((((given, by)), 1),)

    def range(self, given: Sum) -> tuple[int, int]:
        """Return the least and the largest value that a sum may have."""
        low = high = 0
        for atom, factor in given:
            first, last = self._range(atom)
            low += min(first * factor, last * factor)
            high += max(first * factor, last * factor)
        return low, high

    def _range(self, atom: Atom | None) -> tuple[int, int]:
        if atom is None:
            return 1, 1
        if isinstance(atom, str):
            return 0, max(0, self._extents[atom] - 1)
        low, high = self.range(atom[0])
        return low // atom[1], high // atom[1]


def constant(value: int) -> Sum:
    """Return a number as a sum."""
    return ((None, value),) if value else ()


def plus(one: Sum, other: Sum) -> Sum:
    """Return the sum of two sums."""
    found = dict(one)
    for atom, factor in other:
        found[atom] = found.get(atom, 0) + factor
    return tuple(sorted(((a, f) for a, f in found.items() if f), key=repr))


def times(given: Sum, factor: int) -> Sum:
    """Return a multiple of a sum."""
    return tuple((atom, f * factor) for atom, f in given) if factor else ()


def _value(given: Sum) -> int | None:
    if not given:
        return 0
    return given[0][1] if len(given) == 1 and given[0][0] is None else None
