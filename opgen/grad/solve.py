"""Iterations that read an element: a solver for `subscripts(i) = target` in some of the indices i.

The adjoint of a read gathers over all iterations that read the element, so its subscripts are equations.  A subscript
that is one index, or a mixed-radix composite of several, is renamed.  An affine one is solved for one of its indices,
`i = (target - rest) / c`, under the conditions that c divides and that i is in its range.  The remaining equations
become conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeGuard

from opgen.grad.algebra import ONE, ZERO, Affine, affine, is_number, mul, negate, sub
from opgen.grad.equations import Equation, joined, parts, refused
from opgen.grad.facts import Facts
from opgen.spec.model.model import Conditional, Expr, Index, IndexRange, Negate, Not, Number, Operation
from opgen.spec.model.polynomial import Polynomial, digits, polynomial
from opgen.spec.model.walk import index_names, substitute_indices, transform


@dataclass(frozen=True)
class Solution:
    """Solved indices as expressions of the target's indices and of the `remain`ing ones, under `conditions`.

    `searched`: a condition holds for few values of the remaining indices, and all of them are tried.
    """

    values: Mapping[str, Expr]
    remaining: tuple[IndexRange, ...]
    conditions: tuple[Expr, ...]
    searched: bool


def solve(
    equations: Sequence[Equation],
    ranges: Sequence[IndexRange],
    conditions: Sequence[Expr],
    preferred: frozenset[str],
    facts: Facts,
) -> Solution:
    """Solve all equations, for preferred indices if possible.  Divisors are known to be nonzero."""
    return _Solver(ranges, conditions, preferred, facts).run(equations)


def within(e: Expr, extent: Expr) -> tuple[Expr, Expr]:
    """Return the conditions 0 <= e < extent."""
    return Operation(">=", e, ZERO), Operation("<", e, extent)


class _Solver:
    def __init__(
        self,
        ranges: Sequence[IndexRange],
        conditions: Sequence[Expr],
        preferred: frozenset[str],
        facts: Facts,
    ) -> None:
        self._facts = facts
        self._extents = {r.name: r.extent for r in ranges}
        bounding = {n for extent in self._extents.values() for n in index_names(extent)}
        self._order = sorted(self._extents, key=lambda n: (n in bounding, n not in preferred))
        self._conditions = list(conditions)
        self._values: dict[str, Expr] = {}
        self._added: dict[str, Expr] = {}

    def run(self, equations: Sequence[Equation]) -> Solution:
        steps = (
            self._stretch,
            self._choice,
            self._rename,
            self._composite,
            self._digits,
            self._quotient,
            self._remainder,
            self._linear,
            self._rotation,
        )
        pending = joined(equations)
        for step in steps:
            pending = [e for e in pending if not step(e)]
        for e in pending:
            self._check(e)
        open_names = [n for n in self._extents if n not in self._values]
        left = {n for e in pending for n in index_names(substitute_indices(e.subscript, self._values))}
        extents = {n: self._extents[n] for n in open_names} | self._added
        remaining = self._in_order({n: substitute_indices(e, self._values) for n, e in extents.items()}, equations)
        found = (transform(exact, substitute_indices(c, self._values)) for c in self._conditions)
        conditions = tuple(c for c in dict.fromkeys(found) if c != Operation("==", ZERO, ZERO))
        values = {n: transform(exact, v) for n, v in self._values.items()}
        return Solution(values, tuple(remaining), conditions, bool(left & set(extents)))

    def _in_order(self, extents: Mapping[str, Expr], equations: Sequence[Equation]) -> list[IndexRange]:
        """Order indices so that each follows those that its range depends on; cycles keep their order."""
        pending, result = dict(extents), list[IndexRange]()
        while pending:
            free = next((n for n, extent in pending.items() if not index_names(extent) & set(pending)), None)
            if free is None:
                message = "this cannot be solved for an index whose range depends on another"
                raise refused(message, next((e.span for e in equations), None))
            result.append(IndexRange(free, pending.pop(free)))
        return result

    def _is_open(self, e: Expr) -> bool:
        return isinstance(e, Index) and e.name in self._extents and e.name not in self._values

    def _set(self, name: str, value: Expr) -> None:
        value = substitute_indices(value, self._values)
        self._values = {n: substitute_indices(v, {name: value}) for n, v in self._values.items()}
        self._values[name] = value

    def _stretch(self, e: Equation) -> bool:
        """Solve for a broadcast dimension: all iterations if the caller's size is 1, else the target's."""
        if e.actual is None or self._chosen(e) is not None:
            return False
        if self._stretch_pair(e, e.actual):
            return True
        if not isinstance(e.subscript, Index) or not self._is_open(e.subscript):
            raise refused("a broadcast dimension can be differentiated only if it is read at a plain index", e.span)
        name, extent = e.subscript.name, self._extents[e.subscript.name]
        stretched = Operation("==", e.actual, ONE)
        over = f"{name}_all"
        reach = extent if extent == e.size else Operation("min", extent, e.size)
        self._added[over] = Conditional(stretched, reach, ONE)
        self._set(name, Conditional(stretched, Index(over), e.target))
        if extent != e.size:
            self._conditions += within(e.target, extent)
        return True

    def _stretch_pair(self, e: Equation, actual: Expr) -> bool:
        """Solve a broadcast a * M + b with b < M: all a and all b, or quotient and remainder."""
        pair = composite(e.subscript, self._extents)
        if pair is None or not all(self._is_open(Index(n)) for n in pair):
            return False
        high, low = (self._extents[n] for n in pair)
        divisor = low if self._facts.nonzero(low) else Operation("max", low, ONE)
        stretched = Operation("==", actual, ONE)
        ones = Operation("//", e.target, divisor), Operation("%", e.target, divisor)
        for name, extent, one in zip(pair, (high, low), ones, strict=True):
            over = f"{name}_all"
            self._added[over] = Conditional(stretched, extent, ONE)
            self._set(name, Conditional(stretched, Index(over), one))
        if not self._facts.same(e.size, Operation("*", high, low)):
            place = substitute_indices(e.subscript, self._values)
            self._conditions += [*within(self._values[pair[0]], high), Operation("<", place, e.size)]
        return True

    def _choice(self, e: Equation) -> bool:
        """Solve `if c then a else b`, c known to the caller: for a if c holds, else for b; the other index is free.

        If the dimension is broadcast with size 1, both are free.
        """
        found = self._chosen(e)
        if found is None:
            if e.actual is not None:  # another equation solved for its indices
                raise refused("a broadcast dimension can be differentiated only if it is read at a plain index", e.span)
            return False
        condition, a, b = found
        first, second = self._extents[a.name], self._extents[b.name]
        solved, free = condition, condition  # a is solved for; b is free
        if e.actual is not None:
            stretched = Operation("==", e.actual, ONE)
            solved = Operation("and", condition, Not(stretched))
            free = Operation("or", condition, stretched)
        free_a, free_b = f"{a.name}'", f"{b.name}'"
        self._added[free_a] = Conditional(solved, ONE, first)
        self._added[free_b] = Conditional(free, second, ONE)
        self._set(a.name, Conditional(solved, e.target, Index(free_a)))
        self._set(b.name, Conditional(free, Index(free_b), e.target))
        self._conditions.append(Operation("<", e.target, Conditional(condition, first, second)))
        if e.actual is not None and not first == second == e.size:
            chosen = Conditional(condition, self._values[a.name], self._values[b.name])
            self._conditions.append(Operation("<", chosen, e.size))
        return True

    def _chosen(self, e: Equation) -> tuple[Expr, Index, Index] | None:
        """Return c and the two open indices of a subscript `if c then a else b`, with c known to the caller."""
        s = e.subscript
        if not isinstance(s, Conditional) or index_names(s.condition):
            return None
        a, b = s.if_true, s.if_false
        if not (isinstance(a, Index) and isinstance(b, Index) and self._is_open(a) and self._is_open(b)) or a == b:
            return None
        return s.condition, a, b

    def _rename(self, e: Equation) -> bool:
        if not isinstance(e.subscript, Index) or not self._is_open(e.subscript):
            return False
        extent = self._extents[e.subscript.name]
        self._set(e.subscript.name, e.target)
        if not self._facts.same(extent, e.size):
            self._conditions += within(e.target, extent)
        return True

    def _composite(self, e: Equation) -> bool:
        """Solve a * M + b with b < M: by the same composite on the target's side, or by quotient and remainder."""
        pair = composite(e.subscript, self._extents)
        if pair is None or not all(self._is_open(Index(n)) for n in pair):
            return False
        high, low = pair
        radix = self._extents[low]
        target = affine(e.target, index_names(e.target))
        quotient: Expr
        remainder: Expr
        if target is not None and _is_pair(target, radix):
            quotient, remainder = _ordered_pair(target)
        elif e.size == Operation("*", self._extents[high], radix) or self._facts.nonzero(radix):
            quotient, remainder = Operation("//", e.target, radix), Operation("%", e.target, radix)
        else:
            return False  # the division by a radix may be by 0
        self._set(high, quotient)
        self._set(low, remainder)
        if e.size != Operation("*", self._extents[high], radix):
            self._conditions += within(quotient, self._extents[high])
        return True

    def _digits(self, e: Equation) -> bool:
        """Solve (a * M + b) * N + c with b < M, c < N: the indices are the digits of the target."""
        names = index_names(e.subscript)
        if len(names) < 2 or not all(self._is_open(Index(n)) for n in names):
            return False
        whole = reduce(mul, (self._extents[n] for n in sorted(names)))
        places = digits(self._facts.plain(e.subscript), self._facts.plain(whole))
        if places is None or not all(self._facts.same(extent, self._extents[name]) for name, extent in places):
            return False
        exactly = self._facts.same(whole, e.size)
        (first, _), *lower = places
        if not exactly and not all(self._facts.nonzero(self._extents[name]) for name, _ in lower):
            return False  # the division by a size may be by 0
        for (name, _), value in zip(places, parts(e.target, [self._extents[n] for n, _ in places]), strict=True):
            self._set(name, value)
        if not exactly:
            self._conditions += within(self._values[first], self._extents[first])
        return True

    def _quotient(self, e: Equation) -> bool:
        """Solve i // c = t for c >= 0: i = c * t + remainder, with the remainder as a new index."""
        s = e.subscript
        if not isinstance(s, Operation) or s.op != "//" or not isinstance(s.left, Index) or not self._is_open(s.left):
            return False
        if index_names(s.right) or not self._facts.not_negative(s.right):
            return False
        name = s.left.name
        extent, remainder = self._extents[name], f"{name}_rest"
        self._added[remainder] = s.right
        self._set(name, Operation("+", mul(s.right, e.target), Index(remainder)))
        if not self._facts.same(extent, mul(s.right, e.size)):
            self._conditions += within(self._values[name], extent)
        return True

    def _remainder(self, e: Equation) -> bool:
        """Solve i % c = t for c >= 0: i = c * quotient + t, with the quotient as a new index."""
        s = e.subscript
        if not isinstance(s, Operation) or s.op != "%" or not isinstance(s.left, Index) or not self._is_open(s.left):
            return False
        if index_names(s.right) or not self._facts.not_negative(s.right):
            return False
        name = s.left.name
        extent, quotient = self._extents[name], f"{name}_times"
        divisor = s.right if self._facts.nonzero(s.right) else Operation("max", s.right, ONE)
        self._added[quotient] = Operation("//", Operation("+", extent, sub(s.right, ONE)), divisor)
        self._set(name, Operation("+", mul(s.right, Index(quotient)), e.target))
        self._conditions += within(self._values[name], extent)
        if not self._facts.same(s.right, e.size):
            self._conditions += within(e.target, s.right)
        return True

    def _linear(self, e: Equation) -> bool:
        subscript, target, implied = self._without_division(e)
        subscript = substitute_indices(subscript, self._values)
        unknown = [n for n in self._order if n not in self._values and n in index_names(subscript)]
        if not unknown:
            return False
        form, rest = affine(subscript, unknown), None
        if form is None and _is_quotient(subscript) and self._facts.not_negative(subscript.right):
            form, rest = affine(subscript.left, unknown), subscript.right
        if form is None:
            if _in_steps(subscript):
                return False
            raise refused("only subscripts that are affine in the indices can be differentiated", e.span)
        candidates = [n for n in unknown if n in form.coefficients and self._facts.nonzero(form.coefficients[n])]
        if not candidates:
            return False
        if rest is not None:  # e // c = t: e = c * t + remainder, with the remainder as a new index
            remainder = f"{candidates[0]}_rest"
            self._added[remainder] = rest
            target = Operation("+", mul(rest, target), Index(remainder))
        self._drop(implied)
        self._solve_for(candidates[0], form, target)
        return True

    def _rotation(self, e: Equation) -> bool:
        """Solve (i + rest) % c = t for c >= 0: i = (t - rest) % c + c * quotient, with the quotient as a new index."""
        s = e.subscript
        if not isinstance(s, Operation) or s.op != "%" or index_names(s.right) or not self._facts.not_negative(s.right):
            return False
        left = substitute_indices(s.left, self._values)
        form = affine(left, [n for n in self._order if n not in self._values and n in index_names(left)])
        ones = [] if form is None else [n for n in self._order if form.coefficients.get(n) in (ONE, negate(ONE))]
        if form is None or not ones:
            return False
        name, extent, size = ones[0], self._extents[ones[0]], s.right
        distance = _distance(name, form, e.target)
        whole = self._facts.same(size, e.size)  # the target element exists, so it is nonzero
        divisor = size if whole or self._facts.nonzero(size) else Operation("max", size, ONE)
        value: Expr = Operation("%", distance if form.coefficients[name] == ONE else negate(distance), divisor)
        if not self._facts.same(extent, size):
            quotient = f"{name}_times"
            self._added[quotient] = Operation("//", Operation("+", extent, sub(size, ONE)), divisor)
            value = Operation("+", mul(size, Index(quotient)), value)
            self._conditions += within(value, extent)
        self._set(name, value)
        if not whole:
            self._conditions += within(e.target, size)
        return True

    def _solve_for(self, name: str, form: Affine, target: Expr) -> None:
        coefficient = form.coefficients[name]
        distance = _distance(name, form, target)
        if is_number(coefficient, 1):
            value = distance
        elif coefficient == negate(ONE):
            value = negate(distance)
        else:
            self._conditions.append(Operation("==", Operation("%", distance, coefficient), ZERO))
            value = Operation("//", distance, coefficient)
        extent = self._extents[name]
        self._set(name, value)
        self._conditions += within(self._values[name], extent)

    def _without_division(self, e: Equation) -> tuple[Expr, Expr, Expr | None]:
        """Rewrite `E // c = t` to `E = c * t` if a condition says that c divides E; also return that condition."""
        s = e.subscript
        if isinstance(s, Operation) and s.op == "//":
            divides = Operation("==", Operation("%", s.left, s.right), ZERO)
            if divides in self._conditions:
                return s.left, mul(s.right, e.target), divides
        return s, e.target, None

    def _drop(self, implied: Expr | None) -> None:
        """Remove a condition that an equation implies."""
        if implied is not None:
            self._conditions.remove(implied)

    def _check(self, e: Equation) -> None:
        subscript, target, implied = self._without_division(e)
        self._drop(implied)
        self._conditions.append(Operation("==", substitute_indices(subscript, self._values), target))


def _distance(name: str, form: Affine, target: Expr) -> Expr:
    """Return the target minus all other terms, which the index times its coefficient has to equal."""
    distance = sub(target, form.rest)
    for other, c in form.coefficients.items():
        if other != name:
            distance = sub(distance, mul(Index(other), c))
    return distance


def _is_quotient(e: Expr) -> TypeGuard[Operation]:
    """Return True if an expression is a quotient whose divisor has no indices."""
    return isinstance(e, Operation) and e.op == "//" and not index_names(e.right)


def _in_steps(e: Expr) -> bool:
    """Return True if a subscript is affine, except for quotients and remainders with divisors without indices."""
    if isinstance(e, Index) or not index_names(e):
        return True
    match e:
        case Negate():
            return _in_steps(e.operand)
        case Operation(op="+" | "-"):
            return _in_steps(e.left) and _in_steps(e.right)
        case Operation(op="*"):
            return any(_in_steps(a) and not index_names(b) for a, b in ((e.left, e.right), (e.right, e.left)))
        case Operation(op="//" | "%"):
            return _in_steps(e.left) and not index_names(e.right)
    return False


def composite(e: Expr, extents: Mapping[str, Expr]) -> tuple[str, str] | None:
    """Return (a, b) if the expression is a * M + b with M the extent of b."""
    form = affine(e, index_names(e))
    if form is None or len(form.coefficients) != 2 or not is_number(form.rest, 0):
        return None
    for low, high in (tuple(form.coefficients), tuple(form.coefficients)[::-1]):
        if low in extents and is_number(form.coefficients[low], 1) and form.coefficients[high] == extents[low]:
            return high, low
    return None


def _is_pair(form: Affine, radix: Expr) -> bool:
    coefficients = list(form.coefficients.values())
    return len(coefficients) == 2 and is_number(form.rest, 0) and radix in coefficients and ONE in coefficients


def _ordered_pair(form: Affine) -> tuple[Index, Index]:
    high, low = sorted(form.coefficients, key=lambda n: form.coefficients[n] == ONE)
    return Index(high), Index(low)


def exact(e: Expr) -> Expr:
    """Simplify a quotient or remainder of a product by one of its factors."""
    if not isinstance(e, Operation) or e.op not in ("//", "%"):
        return e
    dividend, divisor = polynomial(e.left), polynomial(e.right)
    if len(dividend.terms) != 1 or len(divisor.terms) != 1:
        return e
    (above, count), (below, each) = next(iter(dividend.terms.items())), next(iter(divisor.terms.items()))
    rest = list(above)
    for atom in below:
        if atom not in rest:
            return e
        rest.remove(atom)
    if count % each:
        return e
    return ZERO if e.op == "%" else _product(Polynomial({tuple(rest): count // each}))


def digits_apart(e: Expr, ranges: Sequence[IndexRange]) -> Expr:
    """Simplify `(c * t + r) // c` to t and `(c * t + r) % c` to r for r below c."""
    extents = {r.name: r.extent for r in ranges}

    def apart(n: Expr) -> Expr:
        match n:
            case Operation(op="//" | "%", left=Operation(op="+", left=Operation(op="*") as high, right=Index() as low)):
                if high.left == n.right and extents.get(low.name) == n.right:
                    return high.right if n.op == "//" else low
        return n

    return transform(apart, e)


def _product(single: Polynomial) -> Expr:
    (atoms, coefficient) = next(iter(single.terms.items()))
    value: Expr = Number(coefficient)
    for atom in atoms:
        value = mul(value, atom)
    return value
