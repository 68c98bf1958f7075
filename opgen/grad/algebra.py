"""Small algebra on the expressions of a model: constructors that fold, and affine forms."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from opgen.spec.model.model import Conditional, Expr, Index, Negate, Number, Operation
from opgen.spec.model.walk import index_names

ZERO = Number(0)
ONE = Number(1)


def is_number(e: Expr, value: float) -> bool:
    return isinstance(e, Number) and not isinstance(e.value, bool) and e.value == value


def add(a: Expr, b: Expr) -> Expr:
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    if isinstance(b, Negate):
        return sub(a, b.operand)
    return Operation("+", a, b)


def sub(a: Expr, b: Expr) -> Expr:
    if is_number(b, 0):
        return a
    if is_number(a, 0):
        return negate(b)
    if isinstance(b, Negate):
        return add(a, b.operand)
    return Operation("-", a, b)


def mul(a: Expr, b: Expr) -> Expr:
    if is_number(a, 1) or is_number(b, 0):
        return b
    if is_number(b, 1) or is_number(a, 0):
        return a
    if isinstance(a, Negate):
        return negate(mul(a.operand, b))
    if isinstance(b, Negate):
        return negate(mul(a, b.operand))
    return Operation("*", a, b)


def divide(a: Expr, b: Expr) -> Expr:
    return a if is_number(a, 0) or is_number(b, 1) else Operation("/", a, b)


def negate(a: Expr) -> Expr:
    if isinstance(a, Negate):
        return a.operand
    return a if is_number(a, 0) else Negate(a)


def choose(condition: Expr, a: Expr, b: Expr) -> Expr:
    return a if a == b else Conditional(condition, a, b)


def conjunction(conditions: Collection[Expr]) -> Expr | None:
    """Join all conditions in order; None if there are none."""
    result: Expr | None = None
    for c in conditions:
        result = c if result is None else Operation("and", result, c)
    return result


@dataclass(frozen=True)
class Affine:
    """An affine form: the sum of coefficient * index, plus `rest`; coefficients and rest are free of these indices."""

    coefficients: Mapping[str, Expr]
    rest: Expr


def affine(e: Expr, names: Collection[str]) -> Affine | None:
    """Return the affine form of an expression in the given indices, or None if it has none."""
    if not index_names(e) & set(names):
        return Affine({}, e)
    match e:
        case Index():
            return Affine({e.name: ONE}, ZERO)
        case Negate():
            inner = affine(e.operand, names)
            return None if inner is None else _scale(inner, Number(-1))
        case Operation(op="+") | Operation(op="-"):
            left, right = affine(e.left, names), affine(e.right, names)
            if left is None or right is None:
                return None
            return _sum(left, right if e.op == "+" else _scale(right, Number(-1)))
        case Operation(op="*"):
            for factor, other in ((e.left, e.right), (e.right, e.left)):
                form = affine(factor, names)
                if form is not None and not index_names(other) & set(names):
                    return _scale(form, other)
    return None


def _scale(form: Affine, by: Expr) -> Affine:
    def scaled(e: Expr) -> Expr:
        return negate(e) if is_number(by, -1) else mul(e, by)

    return Affine({n: scaled(c) for n, c in form.coefficients.items()}, scaled(form.rest))


def _sum(a: Affine, b: Affine) -> Affine:
    coefficients = dict(a.coefficients)
    for name, c in b.coefficients.items():
        coefficients[name] = add(coefficients[name], c) if name in coefficients else c
    return Affine({n: c for n, c in coefficients.items() if not is_number(c, 0)}, add(a.rest, b.rest))
