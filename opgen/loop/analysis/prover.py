"""Proving that polynomials are not negative, from polynomials known not to be.

The goal's innermost atom is eliminated: with `goal = a * v + r` and a fact `k * v + s >= 0` where a and k have the
same sign, it is enough that `|k| * r - |a| * s` plus `|k| - 1` (integers have no fractions) is not negative.  This
replaces a variable by its bound according to the sign of its coefficient, uses conditions and promises alike, and
ends at a number.  `min`, `max` and `select` are split into their cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from opgen.locks import cached_property
from opgen.loop.analysis.conditions import gaps, leaves
from opgen.loop.analysis.examples import Examples
from opgen.loop.analysis.intervals import Interval, Intervals
from opgen.loop.analysis.polynomial import Atom, Polynomial, difference
from opgen.loop.nodes import Expr, Select

FUEL = 400
"""Steps after which a proof is given up."""

SHALLOW_FUEL = 100
"""Steps of the first attempt, which looks for short proofs only."""

MANY = 64
"""Facts beyond which a step counts for several, as it looks at all of them."""

_DEPTH = 14
_SHALLOW = 4
_ASIDES = 8


@dataclass
class Prover:
    """Facts (polynomials not negative), bounds of atoms, and the nesting of variables from the outermost in."""

    facts: tuple[Polynomial, ...]
    intervals: Intervals
    order: dict[str, int]
    _failed: dict[Polynomial, int] = field(default_factory=dict)
    _proved: set[Polynomial] = field(default_factory=set)
    _extra: dict[Atom, tuple[Polynomial, ...]] = field(default_factory=dict)
    _fuel: int = 0
    _asides: int = 0

    def proves(self, goal: Polynomial, fuel: int = FUEL) -> bool:
        """Return True if `goal >= 0` follows."""
        if any(f.value is not None for f in self.facts):
            return True  # a false constant among the facts: this place is never reached
        goal = self._reduce(goal)
        low = self.intervals.of(goal)[0]
        if (low is not None and low >= 0) or self._by_one_fact(goal):
            return True
        short = fuel < SHALLOW_FUEL and len(self.facts) > MANY  # then the search is less work than an example
        if not short and self._examples.against(goal):
            return False
        self._failed.clear()  # what failed for lack of fuel may be tried again
        self._proved.clear()  # an answer does not depend on what was asked before
        if fuel > SHALLOW_FUEL:  # a short proof first, lest a long way that leads nowhere use up the fuel
            self._fuel = SHALLOW_FUEL
            if self._prove(goal, _SHALLOW):
                return True
            self._failed.clear()
        self._fuel = fuel
        return self._prove(goal, _DEPTH)

    @cached_property
    def _examples(self) -> Examples:
        return Examples(self.facts, self.intervals, self.order)

    def interval(self, p: Polynomial) -> Interval:
        """Numeric bounds of a polynomial."""
        self._fuel = FUEL
        low = self._lower(p, 8)
        self._fuel = FUEL
        high = self._lower(-p, 8)
        return low, None if high is None else -high

    # Goals ----------------------------------------------------------------------------------------

    def _prove(self, goal: Polynomial, depth: int) -> bool:
        goal = self._reduce(goal)
        if goal.value is not None:
            return goal.value >= 0
        low, high = self.intervals.of(goal)
        if low is not None and low >= 0:
            return True
        if (high is not None and high < 0) or depth == 0 or self._fuel <= 0:
            return False
        if goal in self._proved:
            return True
        if self._failed.get(goal, -1) >= depth:
            return False
        self._fuel -= 1 + len(self.facts) // MANY
        self._failed[goal] = depth
        if (
            self._by_one_fact(goal)
            or self._by_one_quotient(goal)
            or self._by_operands(goal, depth)
            or self._by_elimination(goal, depth)
            or self._by_common_factor(goal, depth)
            or self._by_cases(goal, depth)
        ):
            del self._failed[goal]
            self._proved.add(goal)
            return True
        return False

    def _reduce(self, goal: Polynomial) -> Polynomial:
        """Return an equivalent goal without common positive factors."""
        common = tuple(a for a in goal.common_factors() if self._least(a) >= 1)
        if common:
            goal = goal.without(common)
        divisor = goal.content()
        return goal.divide_rounding_down(divisor) if divisor > 1 else goal

    def _least(self, a: Atom) -> int:
        low = self.intervals.atom(a)[0]
        return -1 if low is None else low

    def _by_common_factor(self, goal: Polynomial, depth: int) -> bool:
        """Try the goal as a product of atoms that are not negative and a factor that is not either."""
        common = tuple(a for a in goal.common_factors() if self._least(a) >= 0)
        return bool(common) and self._prove(goal.without(common), depth - 1)

    def _by_one_fact(self, goal: Polynomial) -> bool:
        """Try the goal as a fact plus something whose bounds are enough."""
        for f in self.facts:
            if goal.atoms.isdisjoint(f.atoms):
                continue
            low = self.intervals.least(goal, f)
            if low is not None and low >= 0:
                return True
        return False

    def _by_one_quotient(self, goal: Polynomial) -> bool:
        """Try the goal as a quotient's remainder, or its distance to the divisor, plus something whose bounds are
        enough.
        """
        for v in sorted((a for a in goal.atoms if a.kind == "floordiv"), key=lambda a: a.key):
            for f in self._facts_about(v):
                low = self.intervals.least(goal, f)
                if low is not None and low >= 0:
                    return True
        return False

    def _by_operands(self, goal: Polynomial, depth: int) -> bool:
        """Try the goal as something at least `max(x, y)`, or at most `min(x, y)`: it must hold for both operands."""
        for v in self._innermost_first(goal):
            factor = goal.terms.get((v,), 0)
            wanted = {"max": -1, "min": 1}.get(v.kind, 0)
            if factor * wanted > 0 and sum(v in term for term in goal.terms) == 1:
                return all(self._prove(goal.replace(v, operand), depth - 1) for operand in v.operands)
        return False

    def _by_elimination(self, goal: Polynomial, depth: int) -> bool:
        for v in self._innermost_first(goal)[:4]:
            parts = goal.split(v)
            if parts is None:
                continue
            sign = self._sign(parts[0], depth)
            if sign == 0:
                if self._at_both_ends(goal, v, parts[0], depth):
                    return True
                continue
            if any(self._prove(g, depth - 1) for g in self._eliminations(goal, v, parts[0], sign)):
                return True
        return False

    def _eliminations(self, goal: Polynomial, v: Atom, a: Polynomial, sign: int) -> Iterator[Polynomial]:
        """Yield goals without `v` (each enough for this one), by a fact that bounds it on the side that matters."""
        for f in (*self._facts_about(v), *_between_quotients(goal, v)):
            parts = f.split(v)
            if parts is None:
                continue
            k = parts[0]
            times = a.multiple_of(k)
            if times > 0:
                yield goal - f * times
            elif k.value is not None:
                if k.value * sign > 0:
                    size = abs(k.value)
                    yield goal * size + (size - 1) - a * sign * f
            elif self._sign_at_once(k, strict=True) == sign:
                yield goal * (k * sign) + (k * sign - 1) - (a * sign) * f

    def _at_both_ends(self, goal: Polynomial, v: Atom, a: Polynomial, depth: int) -> bool:
        """Prove a goal with a coefficient of unknown sign: a linear form is least at one end of the range of `v`."""
        lower = [f for f in self._facts_about(v) if _unit(f, v) == 1]
        upper = [f for f in self._facts_about(v) if _unit(f, v) == -1]
        return any(self._prove(goal - a * f, depth - 1) for f in lower) and any(
            self._prove(goal + a * f, depth - 1) for f in upper
        )

    def _sign(self, p: Polynomial, depth: int) -> int:
        """Return 1 if p >= 0, -1 if p <= 0, 0 if neither is known."""
        quick = self._sign_at_once(p)
        if quick or depth < 3 or p.value is not None:
            return quick
        if self._prove(p, min(depth // 2, 5)):
            return 1
        return -1 if self._prove(-p, min(depth // 2, 5)) else 0

    def _sign_at_once(self, p: Polynomial, strict: bool = False) -> int:
        low, high = self.intervals.of(p)
        least = 1 if strict else 0
        if low is not None and low >= least:
            return 1
        if high is not None and high <= -least:
            return -1
        if strict:
            return 1 if self._by_one_fact(p - 1) else -1 if self._by_one_fact(-p - 1) else 0
        return 0

    # Cases ----------------------------------------------------------------------------------------

    def _by_cases(self, goal: Polynomial, depth: int) -> bool:
        for v in self._innermost_first(goal):
            if v.kind not in ("min", "max", "select"):
                continue
            if isinstance(v.expr, Select):
                return all(self._in_case(*case, depth) for case in _select_cases(goal, v.expr.condition))
            first, second = v.operands
            gap = second - first if v.kind == "min" else first - second
            return self._in_case([gap], goal.replace(v, first), depth) and self._in_case(
                [-gap], goal.replace(v, second), depth
            )
        return False

    def _in_case(self, facts: list[Polynomial], goal: Polynomial, depth: int) -> bool:
        """Return True if the goal follows with some facts more."""
        if any(f.value is not None and f.value < 0 for f in facts):
            return True
        intervals = Intervals(dict(self.intervals.ranges))
        for f in facts:
            intervals.learn(f)
        case = Prover((*self.facts, *facts), intervals, self.order, _fuel=self._fuel, _asides=self._asides)
        proved = case._prove(goal, depth - 1)
        self._fuel = case._fuel
        return proved

    # Facts ----------------------------------------------------------------------------------------

    def _innermost_first(self, p: Polynomial) -> list[Atom]:
        return sorted(p.atoms, key=lambda a: (self._level(a), a.depth, a.key), reverse=True)

    def _level(self, a: Atom) -> int:
        return max((self.order.get(name, 0) for name in a.variables), default=-1)

    def _facts_about(self, v: Atom) -> tuple[Polynomial, ...]:
        """Return the facts in which an atom occurs, those that define it included."""
        if v not in self._extra:
            self._extra[v] = ()  # while its own facts are looked for
            own = tuple(self._definition(v))
            low, high = self.intervals.atom(v)
            one = Polynomial.of(v)
            numeric = [one - low] if low is not None else []
            numeric += [-one + high] if high is not None else []
            shared = [f for f in self.facts if v in f.atoms]
            self._extra[v] = tuple(dict.fromkeys([*reversed(shared), *own, *numeric]))
        return self._extra[v]

    def _definition(self, v: Atom) -> Iterator[Polynomial]:
        """Yield the facts that hold for an atom by its definition."""
        one = Polynomial.of(v)
        if v.kind == "min":
            yield from (operand - one for operand in v.operands)
        elif v.kind == "max":
            yield from (one - operand for operand in v.operands)
        elif v.kind == "floordiv":
            dividend, divisor = v.operands
            if self._sign_at_once(divisor, strict=True) == 1 or self._aside(divisor - 1):
                yield dividend - divisor * one
                yield divisor * one + divisor - 1 - dividend

    def _aside(self, goal: Polynomial) -> bool:
        """Prove something short on behalf of another proof; such asides may not start further asides."""
        if self._asides >= _ASIDES:
            return False
        self._asides += 1
        proved = self._prove(goal, 4)
        self._asides -= 1
        return proved

    # Numbers --------------------------------------------------------------------------------------

    def _lower(self, p: Polynomial, depth: int) -> int | None:
        """Return the greatest number found that `p` does not go below."""
        if p.value is not None:
            return p.value
        best = self.intervals.of(p)[0]
        if depth == 0 or self._fuel <= 0:
            return best
        self._fuel -= 1
        for v in self._innermost_first(p)[:2]:
            parts = p.split(v)
            sign = 0 if parts is None else self._sign_at_once(parts[0])
            if parts is None or not sign:
                continue
            for f in self._facts_about(v):
                k = _unit_or_more(f, v)
                if k * sign > 0:
                    found = self._lower(p * abs(k) - parts[0] * sign * f, depth - 1)
                    if found is not None:
                        bound = -(-found // abs(k))
                        best = bound if best is None else max(best, bound)
        return best


def strongest(facts: Sequence[Polynomial]) -> tuple[Polynomial, ...]:
    """Return, of facts that differ by a number only, the one from which the others follow."""
    least: dict[frozenset[tuple[tuple[Atom, ...], int]], tuple[int, Polynomial]] = {}
    for f in facts:
        number = f.terms.get((), 0)
        rest = frozenset((monomial, factor) for monomial, factor in f.terms.items() if monomial)
        if rest not in least or number < least[rest][0]:
            least[rest] = number, f
    return tuple(f for _, f in least.values())


def _select_cases(goal: Polynomial, condition: Expr) -> Iterator[tuple[list[Polynomial], Polynomial]]:
    """Yield the facts and the goal for each side of a condition: where it holds and where it does not."""
    same = [a for a in goal.atoms if isinstance(a.expr, Select) and a.expr.condition == condition]
    for holds in (True, False):
        chosen = goal
        for a in same:
            chosen = chosen.replace(a, a.operands[0 if holds else 1])
        yield [g for leaf, truth in leaves(condition, holds) for g in gaps(leaf, truth, difference)], chosen


def _between_quotients(goal: Polynomial, v: Atom) -> Iterator[Polynomial]:
    """Yield facts about `x // (m * n)` when a goal also has `x // n`: the one is a quotient of the other by `m`."""
    if v.kind != "floordiv":
        return
    dividend, divisor = v.operands[0], v.operands[1].value
    for w in sorted(goal.atoms - {v}, key=lambda a: a.key):
        if w.kind == "floordiv" and w.operands[0] == dividend:
            part = w.operands[1].value
            if divisor is not None and part is not None and 0 < part < divisor and divisor % part == 0:
                times, whole, one = divisor // part, Polynomial.of(w), Polynomial.of(v)
                yield whole - one * times
                yield one * times + (times - 1) - whole


def _unit_or_more(f: Polynomial, v: Atom) -> int:
    """Return the coefficient of an atom in a fact if it is a number (and linear), else 0."""
    parts = f.split(v)
    return 0 if parts is None else parts[0].value or 0


def _unit(f: Polynomial, v: Atom) -> int:
    """Return 1 or -1 if that is the coefficient of an atom in a fact, else 0."""
    k = _unit_or_more(f, v)
    return k if abs(k) == 1 else 0
