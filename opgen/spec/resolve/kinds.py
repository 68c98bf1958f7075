"""Kinds of expressions, and the meaning of literals and operators in a text."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s

Kind: TypeAlias = str
"""Kind of an expression's value.

'int' is an integer of the shape language.  'number' and 'real' are literals (and float attributes) that take the type
of the other operand.  'bool' is a condition.  Elements of tensors have the name of a scalar type or type variable.
"""

INT, NUMBER, REAL, BOOL = "int", "number", "real", "bool"
ARITHMETIC = {"+", "-", "*", "/", "//", "%"}
LOGIC = {"and", "or"}

SHAPE_FUNCTIONS: dict[str, Literal["min", "max", "ceildiv", "pow"]] = {
    "min": "min", "max": "max", "ceildiv": "ceildiv", "pow": "pow",
}  # fmt: skip


ROUNDINGS: dict[str, Literal["floor", "ceil", "round", "trunc"]] = {
    "floor": "floor", "ceil": "ceil", "round": "round", "trunc": "trunc",
}  # fmt: skip
"""Functions that round a float to an integer among sizes."""


class Typed(NamedTuple):
    """A resolved expression and its kind."""

    expr: m.Expr
    kind: Kind


def operator(text: str) -> m.Operator:
    """Return the model's operator for one in the text."""
    table: dict[str, m.Operator] = {
        "+": "+", "-": "-", "*": "*", "/": "/", "//": "//", "%": "%", "==": "==", "!=": "!=", "<": "<", "<=": "<=",
        ">": ">", ">=": ">=",
    }  # fmt: skip
    return table[text]


def number(tree: s.Constant) -> int | float | bool | None:
    """Return the value of a literal, or None for an integer beyond int64 or a float beyond float64."""
    if tree.text in ("true", "false"):
        return tree.text == "true"
    if tree.text.removeprefix("-").isdigit():
        value = int(tree.text) if len(tree.text) < 25 else 2**64
        return value if -(2**63) <= value < 2**63 else None
    real = float(tree.text)
    return real if math.isfinite(real) else None
