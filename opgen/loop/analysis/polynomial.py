"""The normal form of integer expressions: polynomials with integer coefficients over atoms.

An atom is a variable or a subexpression that is not a sum or product: `floordiv`, `min`, `max`, `select`, loads, casts
of other things.  `a mod b` is `a - b * (a floordiv b)`, and `(a + b * k) floordiv b` is `k + a floordiv b`.  So the
usual splits of an index meet in one form.

The integers are mathematical ones: conclusions hold where no int64 expression of the program overflows.  That is so in
every call: its numbers are checked before the kernel runs, with bounds that hold for all forms of an expression.
(`reach`: the sum of the magnitudes of its monomials stays below 2**62.)  So a normal form is as safe as its expression.
Sums and products on the way may wrap, which leaves their final value as it is.  Arithmetic narrower than int64 may wrap
and is opaque; int64 arithmetic on values from memory is opaque where wrapping counts.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd

from opgen.diagnostics import InternalError
from opgen.dtypes import UINT64
from opgen.loop import build as b
from opgen.loop.nodes import INDEX, Binary, Cast, Compare, Const, Expr, Select, Unary, Var
from opgen.loop.print import print_expr
from opgen.loop.walk import free_vars, map_expr


class Atom:
    """An indivisible factor.  Equal atoms are the same object (see `atom`); `key` orders them.

    `kind` is "var", "floordiv", "min", "max", "select" or "other"; `operands` are the normal forms of the operands
    of the first three compound kinds and of the two values of a select.
    """

    __slots__ = ("__weakref__", "depth", "expr", "key", "kind", "operands", "variables")

    def __init__(self, key: str, kind: str, expr: Expr, operands: tuple[Polynomial, ...]) -> None:
        self.key = key
        self.kind = kind
        self.expr = expr
        self.operands = operands
        self.variables = free_vars(expr)
        inner = [a.depth for p in operands for a in p.atoms]
        self.depth: int = 0 if kind == "var" else 1 + max(inner, default=0)

    def __repr__(self) -> str:
        return self.key


_ATOMS: weakref.WeakValueDictionary[str, Atom] = weakref.WeakValueDictionary()


def atom(kind: str, expr: Expr, operands: tuple[Polynomial, ...] = ()) -> Atom:
    """Return the atom for an expression, always the same object for equal ones."""
    key = expr.name if isinstance(expr, Var) and expr.type == INDEX else f"{print_expr(expr)}: {expr.type}"
    found = _ATOMS.get(key)
    return _ATOMS.setdefault(key, Atom(key, kind, expr, operands)) if found is None else found


Monomial = tuple[Atom, ...]
"""A product of atoms in order of their keys, repeated as often as their powers."""


def _product(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    return tuple(sorted(left + right, key=lambda a: a.key))


class Polynomial:
    """A sum of monomials with coefficients other than 0; never changed."""

    __slots__ = ("_atoms", "_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int] | None = None) -> None:
        self.terms: Mapping[Monomial, int] = {} if terms is None else terms
        self._hash: int | None = None
        self._atoms: frozenset[Atom] | None = None

    def __repr__(self) -> str:
        return f"Polynomial({self.terms!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    @staticmethod
    def constant(value: int) -> Polynomial:
        return Polynomial({(): value} if value else {})

    @staticmethod
    def of(factor: Atom) -> Polynomial:
        return Polynomial({(factor,): 1})

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    @property
    def value(self) -> int | None:
        """Return the number that a constant polynomial is, else None."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def atoms(self) -> frozenset[Atom]:
        if self._atoms is None:
            self._atoms = frozenset([a for m in self.terms for a in m])
        return self._atoms

    def __add__(self, other: Polynomial | int) -> Polynomial:
        return self._plus(other, 1)

    def _plus(self, other: Polynomial | int, sign: int) -> Polynomial:
        added = {(): other} if isinstance(other, int) else other.terms
        terms = dict(self.terms)
        for monomial, factor in added.items():
            total = terms.get(monomial, 0) + sign * factor
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self._plus(other, -1)

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        if isinstance(other, int):
            return Polynomial({m: c * other for m, c in self.terms.items()} if other else {})
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                product = _product(m, n)
                terms[product] = terms.get(product, 0) + c * d
        return Polynomial({m: c for m, c in terms.items() if c})

    def split(self, factor: Atom) -> tuple[Polynomial, Polynomial] | None:
        """(c, r) with `self == c * factor + r`, neither having the atom as a factor; None if it has a higher power."""
        with_it: dict[Monomial, int] = {}
        without: dict[Monomial, int] = {}
        for monomial, c in self.terms.items():
            power = monomial.count(factor)
            if power > 1:
                return None
            if power:
                with_it[tuple(a for a in monomial if a is not factor)] = c
            else:
                without[monomial] = c
        return Polynomial(with_it), Polynomial(without)

    def replace(self, factor: Atom, value: Polynomial) -> Polynomial:
        """Return the polynomial with an atom's every power replaced."""
        total = Polynomial()
        for monomial, c in self.terms.items():
            term = Polynomial({tuple(a for a in monomial if a is not factor): c})
            for _ in range(monomial.count(factor)):
                term = term * value
            total = total + term
        return total

    def content(self) -> int:
        """Return the greatest common divisor of the coefficients, the constant's left out; 0 if there is none."""
        divisor = 0
        for monomial, c in self.terms.items():
            if monomial:
                divisor = gcd(divisor, c)
        return divisor

    def multiple_of(self, other: Polynomial) -> int:
        """Return the number that times `other` is this; 0 if there is none."""
        if self.terms.keys() != other.terms.keys() or not self.terms:
            return 0
        monomial, coefficient = next(iter(other.terms.items()))
        times = self.terms[monomial] // coefficient
        return times if all(c * times == self.terms[m] for m, c in other.terms.items()) else 0

    def divide_rounding_down(self, divisor: int) -> Polynomial:
        """Divide the coefficients (the constant's rounded down): `p >= 0` iff the result is, over the integers."""
        return Polynomial({m: q for m, c in self.terms.items() if (q := c // divisor)})

    def common_factors(self) -> Monomial:
        """Return the atoms that divide every monomial."""
        monomials = iter(self.terms)
        common = list(next(monomials, ()))
        for monomial in monomials:
            left = list(monomial)
            kept = []
            for a in common:
                if a in left:
                    left.remove(a)
                    kept.append(a)
            common = kept
        return tuple(common)

    def without(self, factors: Monomial) -> Polynomial:
        """Return the polynomial divided by a product that divides every monomial."""
        terms = {}
        for monomial, c in self.terms.items():
            left = list(monomial)
            for a in factors:
                left.remove(a)
            terms[tuple(left)] = c
        return Polynomial(terms)

    def remainders(self) -> Iterator[tuple[Polynomial, Polynomial]]:
        """(d, r) with `self` a multiple of d plus r, for each number and each atom d that divides some terms."""
        numbers = {abs(c) for m, c in self.terms.items() if m and abs(c) > 1}
        for number in sorted(numbers):
            yield Polynomial.constant(number), Polynomial({m: c for m, c in self.terms.items() if c % number})
        for factor in sorted(self.atoms, key=lambda a: a.key):
            if any(factor in m and len(m) > 1 for m in self.terms):
                yield Polynomial.of(factor), Polynomial({m: c for m, c in self.terms.items() if factor not in m})

    def sorted_terms(self) -> Iterator[tuple[Monomial, int]]:
        """Yield the terms in a fixed order: by their atoms' names, the constant last."""
        keyed = sorted(self.terms.items(), key=lambda t: (not t[0], [a.key for a in t[0]]))
        return iter(keyed)


Lookup = Callable[[Var], Expr | None]


@dataclass(frozen=True)
class Normaliser:
    """Finds the normal form of scalar expressions (a bool is an atom); `lookup` gives the values of `let` names."""

    lookup: Lookup

    def polynomial(self, e: Expr) -> Polynomial:
        match e:
            case Const():
                return Polynomial.constant(int(e.value))
            case Var():
                value = self.lookup(e)
                return Polynomial.of(atom("var", e)) if value is None else self.polynomial(value)
            case Cast() if e.type == INDEX and e.operand.type.dtype.is_int and e.operand.type.dtype != UINT64:
                return self.polynomial(e.operand)
            case Unary() if e.op == "neg" and e.type == INDEX:
                return -self.polynomial(e.operand)
            case Binary() if e.type == INDEX:
                return self._binary(e)
            case Select() if e.type == INDEX:
                chosen = (self.polynomial(e.if_true), self.polynomial(e.if_false))
                if chosen[0] == chosen[1]:
                    return chosen[0]
                normal = Select(self._opaque(e.condition), expression(chosen[0]), expression(chosen[1]))
                return Polynomial.of(atom("select", normal, chosen))
        return Polynomial.of(atom("other", self._opaque(e)))

    def ordered(self, e: Expr) -> Polynomial:
        """Return the polynomial of an expression that is compared or divided: there, a wrapped sum counts.

        An expression with unchecked numbers may have wrapped, and is opaque.
        """
        found = self.polynomial(e)
        if not _has_unchecked(found) or (len(found.terms) == 1 and 1 in found.terms.values()):
            return found
        return Polynomial.of(atom("other", expression(found)))

    def difference(self, e: Compare) -> Polynomial:
        """Return the right side minus the left one.

        A test for 0 is valid even for sums that may have wrapped, if the unchecked parts are the same on both sides.
        """
        if e.op in ("eq", "ne"):
            exact = self.polynomial(e.right) - self.polynomial(e.left)
            if not _has_unchecked(exact):
                return exact
        return self.ordered(e.right) - self.ordered(e.left)

    def _opaque(self, e: Expr) -> Expr:
        """Return the expression with `let` names of index type replaced by their values."""
        return map_expr(lambda n: (self.lookup(n) or n) if isinstance(n, Var) else n, e)

    def _binary(self, e: Binary) -> Polynomial:
        normal = self.polynomial if e.op in ("add", "sub", "mul") else self.ordered
        left, right = normal(e.left), normal(e.right)
        match e.op:
            case "add":
                return left + right
            case "sub":
                return left - right
            case "mul":
                return left * right
            case "floordiv":
                return _floordiv(left, right)
            case "mod":
                if left.value is not None and right.value:
                    return Polynomial.constant(left.value % right.value)
                return left - right * _floordiv(left, right)
            case "min" | "max":
                return _extremum(e.op, left, right)
        return Polynomial.of(atom("other", Binary(e.op, expression(left), expression(right))))


def _has_unchecked(p: Polynomial) -> bool:
    """Return True if it has int64s that are not checked before the kernel runs, such as elements of tensors."""
    return any(a.kind == "other" and a.expr.type == INDEX for a in p.atoms)


_WITHOUT_NAMES = Normaliser(lambda _: None)


def polynomial(e: Expr) -> Polynomial:
    """Return the normal form of a scalar expression without `let` names."""
    return _WITHOUT_NAMES.polynomial(e)


def difference(e: Compare) -> Polynomial:
    """Return the right side of a comparison without `let` names less the left one."""
    return _WITHOUT_NAMES.difference(e)


def _floordiv(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the quotient, with multiples of the divisor taken out."""
    if len(right.terms) != 1 or (right.value is not None and left.value is not None):
        if left.value is not None and right.value:
            return Polynomial.constant(left.value // right.value)
        return _quotient(left, right)
    ((divisor, scale),) = right.terms.items()
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, c in left.terms.items():
        reduced = _cancel(monomial, divisor)
        if reduced is None:
            rest[monomial] = c
            continue
        quotient = c // scale if not monomial else abs(c) // abs(scale) * (1 if (c < 0) == (scale < 0) else -1)
        if quotient:
            whole[reduced] = quotient
        if c != quotient * scale:
            rest[monomial] = c - quotient * scale
    return Polynomial(whole) + _quotient(Polynomial(rest), right)


def _quotient(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the quotient once every multiple of the divisor has been taken out."""
    divisor = right.value
    if not left.terms or divisor == 1:
        return left
    if divisor is not None and divisor > 0:
        if left.value is not None:
            return Polynomial.constant(left.value // divisor)
        common = gcd(left.content(), divisor)
        if common > 1:
            return _floordiv(left.divide_rounding_down(common), Polynomial.constant(divisor // common))
        nested = _shifted_quotient(left)
        if nested is not None:
            inner, shift = nested  # (x // y + k) // d == (x + k * y) // (y * d)
            return _floordiv(inner.operands[0] + inner.operands[1] * shift, inner.operands[1] * divisor)
    return Polynomial.of(atom("floordiv", Binary("floordiv", expression(left), expression(right)), (left, right)))


def _shifted_quotient(p: Polynomial) -> tuple[Atom, int] | None:
    """Return (q, k) if the polynomial is a quotient q plus a number k."""
    shift = p.terms.get((), 0)
    rest = [(m, c) for m, c in p.terms.items() if m]
    if len(rest) == 1 and rest[0][1] == 1 and len(rest[0][0]) == 1 and rest[0][0][0].kind == "floordiv":
        return rest[0][0][0], shift
    return None


def _cancel(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    left = list(monomial)
    for a in divisor:
        if a not in left:
            return None
        left.remove(a)
    return tuple(left)


def _extremum(op: str, left: Polynomial, right: Polynomial) -> Polynomial:
    difference = (left - right).value
    if difference is not None:
        return left if (difference <= 0) == (op == "min") else right
    build = b.minimum if op == "min" else b.maximum
    first, second = sorted((expression(left), expression(right)), key=print_expr)
    swapped = first != expression(left)
    return Polynomial.of(atom(op, build(first, second), (right, left) if swapped else (left, right)))


def expression(p: Polynomial) -> Expr:
    """Return the polynomial as an expression; the same for equal polynomials."""
    total: Expr | None = None
    for monomial, c in p.sorted_terms():
        negative = c < 0 and total is not None
        term = _term(monomial, -c if negative else c)
        combine = b.sub if negative else b.add
        total = term if total is None else combine(total, term)
    return b.index(0) if total is None else total


def _term(monomial: Monomial, c: int) -> Expr:
    product: Expr | None = None
    for a in monomial:
        product = _as_index(a.expr) if product is None else b.mul(product, _as_index(a.expr))
    if product is None:
        return b.index(c)
    return b.mul(product, c)


def _as_index(e: Expr) -> Expr:
    return e if e.type == INDEX else Cast(INDEX, e)


def linear(e: Expr, var: str) -> tuple[Expr, Expr] | None:
    """(c, r), both without the variable, with `e == c * var + r`; None if the expression is not linear in it."""
    if e.type.lanes != 1 or not e.type.dtype.is_int:
        raise InternalError(f"a linear form is of a scalar integer, not of {e.type}")
    whole = polynomial(e)
    found = whole.split(atom("var", Var(var, INDEX)))
    if found is None or any(a.kind != "var" and var in a.variables for a in whole.atoms):
        return None
    return expression(found[0]), expression(found[1])


def coefficient(e: Expr, var: str) -> Expr | None:
    """Return the factor of a variable in an expression linear in it (0 if it is absent), else None."""
    found = linear(e, var)
    return None if found is None else found[0]


__all__ = [
    "Atom",
    "Normaliser",
    "Polynomial",
    "atom",
    "coefficient",
    "difference",
    "expression",
    "linear",
    "polynomial",
]
