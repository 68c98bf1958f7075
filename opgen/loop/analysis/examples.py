"""Examples against a claim: values of the variables for which all facts hold and the claim does not.

Where there is one no proof can be found, and none need be looked for.  Variables are given values from the outermost
in, each as far as the facts about it and those before let it go in the direction in which the claim fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from opgen.loop.analysis.intervals import Intervals
from opgen.loop.analysis.polynomial import Atom, Polynomial

Values = dict[Atom, int]


class _UnknownError(Exception):
    """Something has no value."""


@dataclass
class Examples:
    """Facts (polynomials not negative), bounds of atoms, and the nesting of variables from the outermost in."""

    facts: tuple[Polynomial, ...]
    intervals: Intervals
    order: dict[str, int]

    def against(self, goal: Polynomial) -> bool:
        """Whether an example against `goal >= 0` is found."""
        linear = all(a.kind == "var" for a in goal.atoms)
        try:
            return self._refutes(goal, 1) or (not linear and self._refutes(goal, -1))
        except _UnknownError:
            return False

    def _refutes(self, goal: Polynomial, direction: int) -> bool:
        values: Values = {}
        own = _variables((goal,))
        variables: Iterable[Atom] = (
            self._known if own <= self._known.keys() else sorted({*self._known, *own}, key=self._place)
        )
        for v in variables:
            low, high = self._limits(v, values)
            if low is not None and high is not None and low > high:
                return False
            down = v not in own or direction * _slope(goal, v) >= 0
            chosen = (low, high) if down else (high, low)
            values[v] = next((x for x in chosen if x is not None), 0)
        return self._value(goal, values) < 0 and all(self._value(f, values) >= 0 for f in self.facts)

    def _place(self, v: Atom) -> tuple[int, str]:
        return self.order.get(v.key, -1), v.key

    @cached_property
    def _known(self) -> dict[Atom, None]:
        """The variables of the facts, in order."""
        return dict.fromkeys(sorted(_variables(self.facts), key=self._place))

    @cached_property
    def _about(self) -> dict[Atom, list[tuple[int, Polynomial]]]:
        """By variable the facts about it and variables before it, as c and r of `c * v + r >= 0`."""
        about: dict[Atom, list[tuple[int, Polynomial]]] = {}
        for f in self.facts:
            inner = max(_variables((f,)), key=self._place, default=None)
            c = 0 if inner is None else f.terms.get((inner,), 0)
            if inner is not None and c and inner not in _variables((rest := f - Polynomial({(inner,): c}),)):
                about.setdefault(inner, []).append((c, rest))
        return about

    def _limits(self, v: Atom, values: Values) -> tuple[int | None, int | None]:
        low, high = self.intervals.atom(v)
        for c, rest in self._about.get(v, ()):
            r = self._value(rest, values)
            if c > 0:
                low = -(r // c) if low is None else max(low, -(r // c))
            else:
                high = r // -c if high is None else min(high, r // -c)
        return low, high

    def _value(self, p: Polynomial, values: Values) -> int:
        total = 0
        for monomial, c in p.terms.items():
            for a in monomial:
                c *= values[a] if a in values else self._atom(a, values)
            total += c
        return total

    def _atom(self, a: Atom, values: Values) -> int:
        """The value of what is no variable; what nothing is known about may have any within its bounds."""
        if a.kind in ("floordiv", "min", "max"):
            left, right = (self._value(p, values) for p in a.operands)
            if a.kind == "floordiv":
                if right == 0:
                    raise _UnknownError
                found = left // right
            else:
                found = min(left, right) if a.kind == "min" else max(left, right)
        elif a.kind == "select":
            raise _UnknownError
        else:
            found = next((x for x in self.intervals.atom(a) if x is not None), 0)
        values[a] = found
        return found


def _variables(polynomials: Iterable[Polynomial]) -> set[Atom]:
    """The variables in some polynomials, those within other atoms as well."""
    found: set[Atom] = set()
    for p in polynomials:
        for a in p.atoms:
            if a.kind == "var":
                found.add(a)
            else:
                found |= _variables(a.operands)
    return found


def _slope(p: Polynomial, v: Atom) -> int:
    """Whether a polynomial grows with a variable, roughly: the sum of the factors where that is clear."""
    total = 0
    for monomial, c in p.terms.items():
        for a in monomial:
            if a is v:
                total += c
            elif a.kind != "var" and a.operands and v.key in a.variables:
                total += c * _slope(a.operands[0], v)
    return total
