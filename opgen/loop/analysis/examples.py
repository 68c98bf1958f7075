"""Counterexamples to a claim: values of the variables for which all facts hold and the claim does not.

If one exists, no proof can be found, so none is searched for.  Variables get values from the outermost in.  Each goes
as far in the direction in which the claim fails as the facts about it and earlier variables allow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from opgen.locks import cached_property
from opgen.loop.analysis.intervals import Interval, Intervals
from opgen.loop.analysis.polynomial import Atom, Polynomial

Values = dict[Atom, int]

MANY = 8
"""Terms of an equation beyond which it gives the value of its outermost variable, and not of its innermost."""

FAR = 1 << 40
"""Value of a variable that has no limit: greater than any size."""


class _UnknownError(Exception):
    """Something has no value."""


@dataclass
class Examples:
    """Facts (polynomials not negative), bounds of atoms, and the nesting of variables from the outermost in."""

    facts: tuple[Polynomial, ...]
    intervals: Intervals
    order: dict[str, int]
    _points: dict[frozenset[Atom], Values | None] = field(default_factory=dict)

    def against(self, goal: Polynomial) -> bool:
        """Return True if an example against `goal >= 0` is found."""
        own = _variables((goal,))
        rising = frozenset(v for v in own if _slope(goal, v) > 0)
        falling = frozenset(v for v in own if _slope(goal, v) < 0)
        unclear = frozenset(_variables(p for a in goal.atoms for p in a.operands))
        ways = (falling, rising, falling ^ unclear) if any(a.kind != "var" for a in goal.atoms) else (falling,)
        return any(self._refutes(goal, own, up) for up in ways)

    def _refutes(self, goal: Polynomial, own: set[Atom], up: frozenset[Atom]) -> bool:
        """Return True if the goal fails where the variables `up` are as great as possible, and the others as small."""
        values = self._point(up.intersection(self._known))
        if values is None:
            return False
        free = own - self._known.keys()
        if free:
            values = {**values, **{v: _far_end(self.intervals.atom(v), v in up) for v in free}}
        try:
            return self._value(goal, values) < 0
        except _UnknownError:
            return False

    def _point(self, up: frozenset[Atom]) -> Values | None:
        """Return values of the facts' variables, those in `up` great, if all facts hold for them."""
        if up not in self._points:
            self._points[up] = self._found(up)
        return self._points[up]

    def _found(self, up: frozenset[Atom]) -> Values | None:
        values: Values = {}
        try:
            for v in self._known:
                low, high = limits = self._limits(v, values)
                if low is not None and high is not None and low > high:
                    return None
                values[v] = _end(limits, v in up)
            return values if all(self._value(f, values) >= 0 for f in self.facts) else None
        except _UnknownError:
            return None

    def _place(self, v: Atom) -> tuple[int, str]:
        return self.order.get(v.key, -1), v.key

    @cached_property
    def _known(self) -> dict[Atom, None]:
        """Return the variables of the facts, in order; last are those for which an equation has a value."""
        ordered = sorted(_variables(self.facts), key=self._place)
        facts = set(self.facts)
        solved = {_solved(f, ordered): None for f in self.facts if len(f.terms) > MANY and -f in facts}
        return dict.fromkeys([*(v for v in ordered if v not in solved), *(v for v in solved if v is not None)])

    @cached_property
    def _rank(self) -> dict[Atom, int]:
        """Return the place of each variable in the order in which they get values."""
        return {v: number for number, v in enumerate(self._known)}

    @cached_property
    def _about(self) -> dict[Atom, list[tuple[int, Polynomial]]]:
        """Return, by variable, the facts about it and variables before it, as c and r of `c * v + r >= 0`."""
        about: dict[Atom, list[tuple[int, Polynomial]]] = {}
        for f in self.facts:
            inner = max(_variables((f,)), key=self._rank.__getitem__, default=None)
            c = 0 if inner is None else f.terms.get((inner,), 0)
            if inner is not None and c and inner not in _variables((rest := f - Polynomial({(inner,): c}),)):
                about.setdefault(inner, []).append((c, rest))
        return about

    def _limits(self, v: Atom, values: Values) -> Interval:
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
        """Return the value of an atom that is not a variable; an unknown atom may have any value within its bounds."""
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


def _end(limits: Interval, great: bool) -> int:
    """Return the greatest or the least number within limits, the other end where there is none."""
    low, high = limits
    return next((x for x in ((high, low) if great else (low, high)) if x is not None), 0)


def _far_end(limits: Interval, great: bool) -> int:
    """Return the greatest or the least number within limits, a great one where there is none: no fact is about it."""
    limit = limits[1 if great else 0]
    if limit is not None:
        return limit
    other = limits[0 if great else 1] or 0
    return max(other, 0) + FAR if great else min(other, 0) - FAR


def _solved(equation: Polynomial, ordered: Iterable[Atom]) -> Atom | None:
    """Return the outermost variable whose value follows from an equation with others."""
    own = _variables((equation,))
    return next((v for v in ordered if v in own and abs(equation.terms.get((v,), 0)) == 1), None)


def _variables(polynomials: Iterable[Polynomial]) -> set[Atom]:
    """Return the variables in some polynomials, those within other atoms as well."""
    found: set[Atom] = set()
    for p in polynomials:
        for a in p.atoms:
            if a.kind == "var":
                found.add(a)
            else:
                found |= _variables(a.operands)
    return found


def _slope(p: Polynomial, v: Atom) -> int:
    """Return the direction in which a polynomial grows with a variable, roughly: the sum of its clear factors."""
    total = 0
    for monomial, c in p.terms.items():
        for a in monomial:
            if a is v:
                total += c
            elif a.kind != "var" and a.operands and v.key in a.variables:
                total += c * _slope(a.operands[0], v)
    return total
