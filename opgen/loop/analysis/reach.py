"""Magnitudes of the integers of a call: a list of steps that Python and C run alike, and claims about the results.

A step computes an integer or a condition of a kernel.  Its `Span` in a call has the interval that contains it, and
`most`, the sum of the magnitudes of all its products.  No rewriting can make more of an expression than `most`:
expanding, factoring, regrouping and comparing by a difference all stay below, since every factor counts as at least 1.
A value that reaches `LIMIT` is treated as unbounded.  Half of an int64's range is left for the few additions that round
loops up to whole tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from opgen.diagnostics import InternalError
from opgen.locks import cached_property

LIMIT = 2**62
"""Limit below which every integer of a kernel must stay."""

Operation = Literal[
    "number", "given", "loop", "add", "sub", "mul", "div", "mod", "min", "max", "select", "lt", "le", "eq", "and", "or",
    "not", "either", "upto", "from", "apart", "unless", "empty", "fits", "nonzero",
]  # fmt: skip
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
"""Operations of steps, in the order of their numbers in C."""


class Step(NamedTuple):
    """One step.  `a`, `b` and `c` are numbers of earlier steps, with these exceptions.

    The exceptions: a number itself (`number`), the position of a parameter (`given`), the step to go on with (`b` of
    `unless` and `empty`), and a claim (`c` of `fits` and `b` of `nonzero`).

    number, given            an integer, or 0 or 1 for a bool
    loop                     an integer that is at least a and below b
    add ... select           arithmetic; select is b where the condition a holds, else c
    lt ... not               conditions; `either` is an unknown one
    upto, from, apart        a where it is at most, at least, or not b
    unless, empty            go on at step b if the condition a cannot hold, if there is no integer in a
    fits                     that a and b together stay below LIMIT
    nonzero                  that a is not 0
    """

    op: Operation
    a: int = 0
    b: int = 0
    c: int = 0


class Span(NamedTuple):
    """Bounds of an integer (`most` at most LIMIT, the others within it on both sides), or of a condition."""

    low: int
    high: int
    most: int = 1


@dataclass(frozen=True)
class Claim:
    """Condition under which a kernel keeps its meaning: `text` completes "numbers for which ...".

    `parameters` are the positions of the parameters that it depends on, in the order in which they come up.
    """

    text: str
    parameters: tuple[int, ...]


@dataclass(frozen=True)
class Reach:
    """The steps of a kernel, and its claims; `ranges` are the promised intervals of its parameters."""

    steps: tuple[Step, ...]
    claims: tuple[Claim, ...]
    ranges: tuple[tuple[int | None, int | None], ...]

    def unmet(self, values: Sequence[int]) -> Claim | None:
        """Return the first claim that the values of the parameters (0 for a floating one) do not meet, if any."""
        if self.easy >= 0 and all(-self.easy <= v <= self.easy for v in values):
            return None
        number = _run(self.steps, [_exactly(v) for v in values])
        return None if number is None else self.claims[number]

    @cached_property
    def easy(self) -> int:
        """Return a number such that all claims hold if no parameter's magnitude exceeds it; -1 if there is none."""
        for exponent in range(56, 7, -4):
            largest = 1 << exponent
            spans = [_promised(low, high, largest) for low, high in self.ranges]
            if _run(self.steps, spans) is None:
                return largest
        return -1


def _promised(low: int | None, high: int | None, largest: int) -> Span:
    least = -largest if low is None else max(low, -largest)
    return Span(least, largest if high is None else min(high, largest), largest)


def _exactly(value: int) -> Span:
    inside = _inside(value)
    return Span(inside, inside, max(abs(inside), 1))


def _inside(value: int) -> int:
    return min(max(value, -LIMIT), LIMIT)


def _run(steps: Sequence[Step], given: Sequence[Span]) -> int | None:
    """Return the number of the first claim that does not hold."""
    found: list[Span] = [Span(0, 0)] * len(steps)
    at = 0
    while at < len(steps):
        s = steps[at]
        at += 1
        match s.op:
            case "number":
                found[at - 1] = _exactly(s.a)
            case "given":
                found[at - 1] = given[s.a]
            case "unless":
                at = s.b if found[s.a].high < 1 else at
            case "empty":
                at = s.b if found[s.a].low > found[s.a].high else at
            case "fits":
                if found[s.a].most + found[s.b].most >= LIMIT:
                    return s.c
            case "nonzero":
                if found[s.a].low <= 0 <= found[s.a].high:
                    return s.b
            case _:
                found[at - 1] = _computed(s, found)
    return None


_Found: TypeAlias = Sequence[Span]


def _computed(s: Step, found: _Found) -> Span:
    a, b = found[s.a], found[s.b]
    match s.op:
        case "add" | "sub" | "mul" | "div" | "mod":
            return _arithmetic(s.op, a, b)
        case "min":
            return Span(min(a.low, b.low), min(a.high, b.high), max(a.most, b.most))
        case "max":
            return Span(max(a.low, b.low), max(a.high, b.high), max(a.most, b.most))
        case "loop":
            return Span(a.low, b.high - 1, max(a.most, b.most))
        case "upto":
            return Span(a.low, min(a.high, b.high), a.most)
        case "from":
            return Span(max(a.low, b.low), a.high, a.most)
        case "apart":
            only = b.low == b.high
            return Span(a.low + (only and a.low == b.low), a.high - (only and a.high == b.high), a.most)
        case "select":
            return _chosen(a, b, found[s.c])
    return _condition(s.op, a, b)


def _chosen(condition: Span, a: Span, b: Span) -> Span:
    if condition.low == 1:
        return a
    if condition.high < 1:
        return b
    return Span(min(a.low, b.low), max(a.high, b.high), max(a.most, b.most))


def _condition(op: Operation, a: Span, b: Span) -> Span:
    """0 and 1 for false and true; the second operand of `and` and `or` counts only where the first leaves it open."""
    match op:
        case "lt":
            return Span(a.high < b.low, a.low < b.high)
        case "le":
            return Span(a.high <= b.low, a.low <= b.high)
        case "eq":
            return Span(a.low == a.high == b.low == b.high, a.low <= b.high and b.low <= a.high)
        case "and":
            return Span(0, 0) if a.high < 1 else Span(min(a.low, b.low), b.high)
        case "or":
            return Span(1, 1) if a.low == 1 else Span(b.low, max(a.high, b.high))
        case "not":
            return Span(1 - a.high, 1 - a.low)
        case "either":
            return Span(0, 1)
    raise InternalError(f"no step is called {op!r}")


def _arithmetic(op: Operation, a: Span, b: Span) -> Span:
    ends = [(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    most = a.most + b.most
    if op == "add":
        values = [a.low + b.low, a.high + b.high]
    elif op == "sub":
        values = [a.low - b.high, a.high - b.low]
    elif op == "mul":
        values, most = [x * y for x, y in ends], a.most * b.most
    elif op == "div":
        firm = b.low > 0 or b.high < 0
        values, most = [x // y for x, y in ends] if firm else [-a.most, a.most], a.most
    elif b.low > 0:
        values = [0, b.high - 1 if a.low < 0 else min(a.high, b.high - 1)]
    else:
        values = [-b.most, b.most]
    return Span(_inside(min(values)), _inside(max(values)), min(most, LIMIT))
