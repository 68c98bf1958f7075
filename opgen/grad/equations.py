"""Equations between the subscripts of a read and the element that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opgen.diagnostics import Diagnostic, DiagnosticError, Span
from opgen.grad.algebra import add, mul
from opgen.spec.model.model import Expr, Operation
from opgen.spec.model.polynomial import Polynomial, constant, polynomial, same


@dataclass(frozen=True)
class Equation:
    """The equation `subscript` = `target` along a dimension of size `size`.

    `actual` is the caller's size of a broadcast dimension, else None; `span` is the place of the read.
    """

    subscript: Expr
    target: Expr
    size: Expr
    actual: Expr | None = None
    span: Span | None = None


def refused(message: str, span: Span | None) -> DiagnosticError:
    return DiagnosticError([Diagnostic("S062", message, span)])


# Digits of one number ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Digit:
    """An equation for `number // below % size`; for the first digit, a plain quotient, `size` is None."""

    equation: Equation
    number: Expr
    below: Polynomial
    size: Expr | None


def joined(equations: Sequence[Equation]) -> list[Equation]:
    """Merge the equations for all digits of a number into one equation for the number.

    `x[e // 12, e // 3 % 4, e % 3]` is the element (a, b, c) for e = (a * 4 + b) * 3 + c.
    """
    found = {n: d for n, e in enumerate(equations) if (d := _digit(e)) is not None}
    result = dict(enumerate(equations))
    for number in dict.fromkeys(d.number for d in found.values()):
        chain = _chain([n for n, d in found.items() if d.number == number], found)
        if chain:
            result[chain[0]] = _one([found[n] for n in chain])
            for n in chain[1:]:
                del result[n]
    return [result[n] for n in sorted(result)]


def _digit(e: Equation) -> _Digit | None:
    s = e.subscript
    if e.actual is not None or not isinstance(s, Operation):
        return None
    if s.op == "//":
        return _Digit(e, s.left, polynomial(s.right), None)
    if s.op != "%" or not same(s.right, e.size):  # otherwise the target may exceed a digit
        return None
    if isinstance(s.left, Operation) and s.left.op == "//":
        return _Digit(e, s.left.left, polynomial(s.left.right), s.right)
    return _Digit(e, s.left, constant(1), s.right)


def _chain(members: Sequence[int], digits: dict[int, _Digit]) -> list[int]:
    """Return all digits of a number, most significant first; empty if some are missing."""
    left, below = list(members), constant(1)
    found: list[int] = []
    while left:
        following = next((n for n in left if digits[n].below == below), None)
        if following is None:
            return []
        left.remove(following)
        found.insert(0, following)
        size = digits[following].size
        if size is None:
            return [] if left else found
        below = below * polynomial(size)
    return []


def _one(digits: Sequence[_Digit]) -> Equation:
    first, *rest = (d.equation for d in digits)
    target, size = first.target, first.size
    for e in rest:
        target, size = add(mul(target, e.size), e.target), mul(size, e.size)
    return replace(first, subscript=digits[0].number, target=target, size=size)


def parts(number: Expr, sizes: Sequence[Expr]) -> Iterator[Expr]:
    """Return the digits of a number, most significant first; the number is below the product of the sizes."""
    below: Expr | None = None
    found: list[Expr] = []
    for at, size in enumerate(reversed(sizes)):
        quotient = number if below is None else Operation("//", number, below)
        found.append(quotient if at == len(sizes) - 1 else Operation("%", quotient, size))
        below = size if below is None else mul(size, below)
    return reversed(found)
