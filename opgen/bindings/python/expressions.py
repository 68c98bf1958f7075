"""Expressions of the shape language as Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from opgen.bindings.expressions import ADD, AND, COMPARE, NOT, OR, UNARY, Printer
from opgen.bindings.python.text import literal
from opgen.diagnostics import InternalError
from opgen.spec.model.model import (
    AttrValue,
    Conditional,
    EnumIs,
    Expr,
    FunctionCall,
    Not,
    Operation,
    Present,
    SizeOf,
    Whole,
)

_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class PythonPrinter(Printer):
    """Prints with the names that a scope gave: `names` for symbols and enumerations, `functions` for shape functions.

    `attribute` and `size` name an element of an attribute and the size of a broadcast dimension.
    """

    operators: ClassVar[dict[str, str]] = {"not": "not "}

    def __init__(
        self,
        names: Mapping[str, str],
        functions: Mapping[str, tuple[str, int]],
        attribute: Callable[[AttrValue], str] | None = None,
        size: Callable[[SizeOf], str] | None = None,
    ) -> None:
        self._names = names
        self._functions = functions
        self._attribute = attribute
        self._size = size

    def number(self, value: int | float | bool) -> str:
        return literal(value)

    def symbol(self, name: str) -> str:
        return self._names[name]

    def word(self, value: str) -> str:
        return literal(value)

    def attribute(self, e: AttrValue) -> str:
        if self._attribute is None:
            raise InternalError(f"attribute {e.attr!r} in a function")
        return self._attribute(e)

    def comparison_with_word(self, e: EnumIs) -> str:
        return f"{self._names[e.name]} == {literal(e.value)}"

    def negated(self, e: Expr) -> str:
        """Return the opposite of a condition on integers and words."""
        match e:
            case Not():
                return self.text(e.operand)
            case EnumIs():
                return f"{self._names[e.name]} != {literal(e.value)}"
            case Present():
                return f"len({self._names[e.attr]}) == 0"
            case Operation() if e.op in _OPPOSITE:
                return f"{self.text(e.left, ADD)} {_OPPOSITE[e.op]} {self.text(e.right, ADD)}"
            case Operation() if e.op in ("and", "or"):
                level, word = (OR, "or") if e.op == "and" else (AND, "and")
                return f" {word} ".join(self._within(part, level) for part in (e.left, e.right))
        return f"not {self.text(e, NOT)}"

    def _within(self, e: Expr, level: int) -> str:
        """Return the opposite of a part of an `and` (level OR) or an `or` (level AND)."""
        if isinstance(e, Not):
            return self.text(e.operand, level)
        looser = isinstance(e, Operation) and e.op == "and" and level == AND
        return f"({self.negated(e)})" if looser else self.negated(e)

    def print(self, e: Expr) -> tuple[str, int]:
        if isinstance(e, Not) and isinstance(e.operand, EnumIs):
            return self.negated(e.operand), COMPARE
        return super().print(e)

    def present(self, e: Present) -> str:
        return f"len({self._names[e.attr]}) > 0"

    def size_of(self, e: SizeOf) -> str:
        if self._size is None:
            raise InternalError(f"a size of {e.tensor!r} in a function")
        return self._size(e)

    def function_like(self, e: Operation) -> str:
        if e.op == "ceildiv":
            return f"-(-{self.text(e.left, UNARY)} // {self.text(e.right, UNARY)})"
        if e.op == "pow":
            return f"pow({self.text(e.left)}, {self.text(e.right)})"
        return super().function_like(e)

    def whole(self, e: Whole) -> str:
        return f'whole_of("{e.function}", {self.text(e.operand)})'

    def conditional(self, e: Conditional) -> str:
        condition = self.text(e.condition, 1)
        return f"{self.text(e.if_true, 1)} if {condition} else {self.text(e.if_false)}"

    def call(self, e: FunctionCall) -> str:
        name, results = self._functions[e.function]
        called = f"{name}({', '.join(self.argument(a) for a in e.arguments)})"
        return called if results == 1 else f"{called}[{e.result}]"

    def call_all(self, e: FunctionCall) -> str:
        """Return a call for all its results."""
        return f"{self._functions[e.function][0]}({', '.join(self.argument(a) for a in e.arguments)})"
