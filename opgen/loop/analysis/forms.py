"""Integer expressions as sums of multiples of independent variables that are at least 0.

A loop's variable is one of them, counted from the loop's start.  A variable divided into parts (`f // 8` and `f % 8`,
as in fused loops) counts as one variable per part, like the digits of a number.  An expression that is not a sum (the
beginning of the last of overlapping tiles, `min(16*i, 21)`) is known by its range alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from opgen.loop.nodes import Binary, Broadcast, Const, Expr, Let, Ramp, Stmt, Unary, Var
from opgen.loop.walk import expressions, parts, walk_expr


@dataclass(frozen=True, slots=True)
class Variable:
    """0 <= it < `extent`, for each value of all others."""

    name: str
    extent: int


@dataclass(frozen=True, slots=True)
class Form:
    """Multiples of variables, none of them 0, and a number."""

    terms: Mapping[Variable, int]
    number: int = 0

    @property
    def range(self) -> tuple[int, int]:
        """Return the least and the greatest value."""
        ends = [sorted((0, factor * (v.extent - 1))) for v, factor in self.terms.items()]
        return self.number + sum(low for low, _ in ends), self.number + sum(high for _, high in ends)

    def plus(self, other: Form, times: int = 1) -> Form:
        """Return this plus a multiple of another."""
        terms = dict(self.terms)
        for v, factor in other.terms.items():
            terms[v] = terms.get(v, 0) + times * factor
        return Form({v: factor for v, factor in terms.items() if factor}, self.number + times * other.number)

    def quotient(self, by: int) -> Form:
        """Return this divided by a positive number, rounded down."""
        whole = Form({v: f // by for v, f in self.terms.items() if f % by == 0}, self.number // by)
        rest = Form({v: f for v, f in self.terms.items() if f % by}, self.number % by)
        low, high = (end // by for end in rest.range)
        return whole.plus(Form({}, low) if low == high else _opaque(f"({rest}) // {by}", low, high))

    def __str__(self) -> str:
        terms = sorted(f"{factor}*[{v.name}]" for v, factor in self.terms.items())
        return " + ".join([*terms, str(self.number)])


NOTHING = Form({})
Known = Mapping[str, "Form | None"]
"""Forms of the names in scope; None for a value that is not a form."""


def form_of(e: Expr, known: Known, lane: str = "") -> Form | None:
    """Return the form of an expression; for a vector, that of the lane given by the variable `lane`."""
    match e:
        case Const(value=int(value)):
            return Form({}, int(value))
        case Var():
            return known.get(e.name)
        case Broadcast():
            return form_of(e.operand, known, lane)
        case Ramp(stride=Const(value=int(step))):
            base = form_of(e.base, known, lane)
            return None if base is None else base.plus(Form({Variable(lane, e.lanes): 1}), step)
        case Unary(op="neg"):
            operand = form_of(e.operand, known, lane)
            return None if operand is None else NOTHING.plus(operand, -1)
        case Binary():
            left, right = form_of(e.left, known, lane), form_of(e.right, known, lane)
            return None if left is None or right is None else _binary(e.op, left, right)
    return None


def _binary(op: str, left: Form, right: Form) -> Form | None:
    divides = not right.terms and right.number > 0
    match op:
        case "add":
            return left.plus(right)
        case "sub":
            return left.plus(right, -1)
        case "mul" if not right.terms:
            return NOTHING.plus(left, right.number)
        case "mul" if not left.terms:
            return NOTHING.plus(right, left.number)
        case "floordiv" if divides:
            return left.quotient(right.number)
        case "mod" if divides:
            return left.plus(left.quotient(right.number), -right.number)
        case "min":
            return _least(left, right)
        case "max":
            return NOTHING.plus(_least(NOTHING.plus(left, -1), NOTHING.plus(right, -1)), -1)
    return None


def _least(left: Form, right: Form) -> Form:
    low, high = left.plus(right, -1).range
    if high <= 0 or low >= 0:
        return left if high <= 0 else right
    ends = zip(left.range, right.range, strict=True)
    return _opaque(f"min({left}, {right})", *(min(pair) for pair in ends))


def _opaque(name: str, low: int, high: int) -> Form:
    """Return a variable that is known by its range alone; of the same variables it is the same."""
    return Form({Variable(name, high - low + 1): 1}, low)


def span(start: Form, stop: Expr, known: Known) -> int | None:
    """Return the greatest number of values of a loop; None if no number is seen."""
    found = form_of(stop, known)
    if found is not None:
        return max(0, found.plus(start, -1).range[1])
    if isinstance(stop, Binary) and stop.op == "min":
        return min((n for n in (span(start, e, known) for e in (stop.left, stop.right)) if n is not None), default=None)
    return None


def digits(name: str, own: str, count: int, body: Stmt) -> Form:
    """Return a loop's variable that counts up to below `count`, made of new variables, whose names begin with `own`."""
    steps = sorted(step for step in _divisors(name, body) if 1 < step < count)
    if any(larger % step for step, larger in pairwise(steps)):
        steps = []
    edges = [1, *steps]
    ends = [*steps, max(count, 1)]
    return Form({Variable(f"{own}.{edge}", -(-end // edge)): edge for edge, end in zip(edges, ends, strict=True)})


def _divisors(name: str, body: Stmt) -> set[int]:
    """Return the divisors of a variable in a statement, also step by step and under other names."""
    found: set[int] = set()
    _search(body, {name: 1}, found)
    return found


def _search(s: Stmt, units: Mapping[str, int], found: set[int]) -> None:
    for e in expressions(s):
        _note(walk_expr(e), units, found)
    if isinstance(s, Let) and (unit := _unit(s.value, units)) is not None:
        units = {**units, s.var.name: unit}
    for p in parts(s):
        _search(p, units, found)


def _note(nodes: Iterable[Expr], units: Mapping[str, int], found: set[int]) -> None:
    for n in nodes:
        match n:
            case Binary(op="floordiv" | "mod", right=Const(value=int(by))) if by > 0:
                unit = _unit(n.left, units)
                found |= set() if unit is None else {unit * by}


def _unit(e: Expr, units: Mapping[str, int]) -> int | None:
    """Return the unit in which an expression of quotients and remainders counts the variable; None for any other."""
    match e:
        case Var():
            return units.get(e.name)
        case Binary(op="floordiv", right=Const(value=int(by))) if by > 0:
            unit = _unit(e.left, units)
            return None if unit is None else unit * by
        case Binary(op="mod"):
            return _unit(e.left, units)
    return None
