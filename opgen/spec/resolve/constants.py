"""Constants: exact values of a table's numbers, checked against its shape."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from fractions import Fraction
from math import prod

from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import CONSTANT_BITS, CONSTANT_DIGITS, CONSTANT_NUMBERS, RANK
from opgen.spec.syntax.report import Report
from opgen.spec.syntax.strings import plural

LARGEST = Fraction(sys.float_info.max)
"""Largest finite number of float64."""

EXPONENT = 400
"""Largest power of ten that may be written; float64 reaches from -324 to 308."""

_ARITHMETIC: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


def constant_of(report: Report, decl: s.ConstantDecl) -> m.Constant | None:
    """Return the declared constant, or None with its mistakes noted."""
    if not report.at_most(len(decl.shape), RANK, "dimensions", decl.name.span):
        return None
    shape = tuple(int(size[:9]) for size in decl.shape)
    if 0 in shape or prod(shape) > CONSTANT_NUMBERS:
        message = f"'{decl.name.name}' has {prod(shape)} numbers, expected 1 to {CONSTANT_NUMBERS}"
        report.add("S054", message, decl.span)
        return None
    values: list[Fraction] = []
    if not _gather(report, decl.table, shape, values):
        return None
    return m.Constant(decl.name.name, shape, tuple(values))


def _gather(report: Report, table: s.Table, shape: tuple[int, ...], values: list[Fraction]) -> bool:
    """Append the numbers of a table of shape `shape` to `values`; return False if it has another shape."""
    if len(table.items) != shape[0]:
        message = f"expected {plural(shape[0], 'element')} here, found {len(table.items)}"
        report.add("S054", message, table.span)
        return False
    fine = True
    for item in table.items:
        if isinstance(item, s.Table) != (len(shape) > 1):
            expected = "a list" if len(shape) > 1 else "a number"
            report.add("S054", f"expected {expected}", item.span)
            fine = False
        elif isinstance(item, s.Table):
            fine = _gather(report, item, shape[1:], values) and fine
        else:
            value = _held(report, item)
            fine = fine and value is not None
            values += [] if value is None else [value]
    return fine


def _held(report: Report, tree: s.Expression) -> Fraction | None:
    """Return the exact value of an expression of literals, which must round to a finite float64."""
    value = _number(report, tree)
    if value is not None and abs(value) > LARGEST:
        report.add("S054", "this is beyond float64", tree.span)
        return None
    return value


def _number(report: Report, tree: s.Expression) -> Fraction | None:
    """Return the exact value of an expression of literals."""
    if isinstance(tree, s.Constant) and tree.text not in ("true", "false"):
        return _literal(report, tree)
    if isinstance(tree, s.Unary) and tree.op == "-":
        operand = _number(report, tree.operand)
        return None if operand is None else -operand
    if isinstance(tree, s.Binary) and tree.op in _ARITHMETIC:
        left, right = _number(report, tree.left), _number(report, tree.right)
        if left is None or right is None:
            return None
        if tree.op == "/" and right == 0:
            report.add("S054", "this divides by 0", tree.span)
            return None
        value = _ARITHMETIC[tree.op](left, right)
        bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        return value if report.at_most(bits, CONSTANT_BITS, "bits in an exact number", tree.span) else None
    report.add("S054", "a constant is made of numbers, with + - * / between them", tree.span)
    return None


def _literal(report: Report, tree: s.Constant) -> Fraction | None:
    """Return the exact value of a written number, or None if it has too many digits or an exponent beyond float64."""
    if not report.at_most(len(tree.text), CONSTANT_DIGITS, "characters in a number", tree.span):
        return None
    _, _, exponent = tree.text.lower().partition("e")
    if exponent and abs(int(exponent)) > EXPONENT:
        report.add("S054", f"{tree.text} is beyond float64", tree.span)
        return None
    return Fraction(tree.text)
