"""Constant folding on syntax trees: values that are known when an op is made.

Folding makes an expanded op read as if a person had written it: `2 * i + 1`, not `2 * i + (3 - 2)`.  Adding an integer
literal 0 or multiplying by 1 is dropped; everything else keeps its meaning.
"""

from __future__ import annotations

from opgen.diagnostics import Diagnostic, DiagnosticError, Span
from opgen.spec.syntax import nodes as s

CODE = "S065"
"""The code of mistakes that only generic ops can have."""

LEAST = -(2**63)
"""The least 64-bit integer."""


class Mistake(DiagnosticError):
    """A mistake in a generic op, found while it is expanded."""

    def __init__(self, message: str, span: Span, help: str | None = None) -> None:
        super().__init__([Diagnostic(CODE, message, span, help)])


def integer(value: int, span: Span) -> s.Expression:
    """Return an integer as a tree; the least 64-bit integer is not the negation of a literal."""
    if value == LEAST:
        return s.Binary(span, "-", integer(value + 1, span), integer(1, span))
    literal = s.Constant(span, str(abs(value)))
    return s.Unary(span, "-", literal) if value < 0 else literal


def real(value: float, span: Span) -> s.Expression:
    """Return a float as a tree."""
    literal = s.Constant(span, repr(abs(value)))
    return s.Unary(span, "-", literal) if value < 0 else literal


def boolean(value: bool, span: Span) -> s.Expression:
    """Return a known condition as a tree."""
    return s.Constant(span, "true" if value else "false")


def known_integer(tree: s.Expression) -> int | None:
    """Return the value of a tree that `integer` made, else None."""
    if isinstance(tree, s.Binary) and tree.op == "-":
        left, right = known_integer(tree.left), known_integer(tree.right)
        return None if left is None or right is None else left - right
    if isinstance(tree, s.Unary) and tree.op == "-":
        inner = known_integer(tree.operand)
        return None if inner is None else -inner
    if isinstance(tree, s.Constant) and tree.text.removeprefix("-").isdigit():
        return int(tree.text)
    return None


def known_condition(tree: s.Expression) -> bool | None:
    """Return the value of a known condition, else None."""
    return tree.text == "true" if isinstance(tree, s.Constant) and tree.text in ("true", "false") else None


def unary(tree: s.Unary, operand: s.Expression) -> s.Expression:
    """Return `-operand` or `not operand`, folded."""
    if tree.op == "not":
        decided = known_condition(operand)
        return s.Unary(tree.span, "not", operand) if decided is None else boolean(not decided, tree.span)
    value = known_integer(operand)
    return s.Unary(tree.span, "-", operand) if value is None else integer(-value, tree.span)


def binary(op: str, left: s.Expression, right: s.Expression, span: Span) -> s.Expression:
    """Return an operation, folded as far as its operands are known."""
    if op in ("and", "or"):
        return _logic(op, left, right, span)
    a, b = known_integer(left), known_integer(right)
    if a is not None and b is not None:
        found = _worked_out(op, a, b, span)
        if found is not None:
            return found
    if (op == "+" and a == 0) or (op == "*" and a == 1):
        return right
    if (op in ("+", "-") and b == 0) or (op in ("*", "//") and b == 1):
        return left
    return s.Binary(span, op, left, right)


def _logic(op: str, left: s.Expression, right: s.Expression, span: Span) -> s.Expression:
    a, b = known_condition(left), known_condition(right)
    decides = op == "or"
    if decides in (a, b):
        return boolean(decides, span)
    if a is not None:
        return right
    return left if b is not None else s.Binary(span, op, left, right)


def _worked_out(op: str, a: int, b: int, span: Span) -> s.Expression | None:
    match op:
        case "+":
            return integer(a + b, span)
        case "-":
            return integer(a - b, span)
        case "*":
            return integer(a * b, span)
        case "//" | "%" | "ceildiv" if b != 0:
            value = a // b if op == "//" else a % b if op == "%" else -(-a // b)
            return integer(value, span)
        case "min" | "max":
            return integer(min(a, b) if op == "min" else max(a, b), span)
    compared = {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
    return boolean(compared[op], span) if op in compared else None


def choice(tree: s.Choice, condition: s.Expression, if_true: s.Expression, if_false: s.Expression) -> s.Expression:
    """Return `if condition then if_true else if_false`, or the value if both sides are equal."""
    return if_true if if_true == if_false else s.Choice(tree.span, condition, if_true, if_false)
