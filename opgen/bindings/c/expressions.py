"""Expressions of the shape language as C.

Integers are exact in the spec's language, so each operation on them is a call that remembers overflow (see
`library_internal.h`); conditions and floating arithmetic are plain C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from opgen.bindings.expressions import ATOM, NOT, OR, UNARY, Printer
from opgen.diagnostics import InternalError
from opgen.spec.model.model import (
    AttrValue,
    Conditional,
    EnumArgument,
    EnumIs,
    Expr,
    FunctionCall,
    Negate,
    Not,
    Number,
    Operation,
    Present,
    Real,
    SizeOf,
    Whole,
)

_CALLS = {"+": "add", "-": "sub", "*": "mul", "//": "div", "%": "mod", "ceildiv": "ceildiv", "pow": "pow"}
_PURE = ("min", "max")


class CPrinter(Printer):
    """Printer with the names of a scope.

    `helper` begins the library's internal names; `math` is the pointer to the record of failures; `symbols` are the
    spellings of symbols; `word` and `attribute` those of an enumeration's value and of (an element of) an attribute;
    `argument_of` the value of an enumerated argument of a function.
    """

    operators: ClassVar[dict[str, str]] = {"not": "!", "and": "&&", "or": "||"}

    def __init__(
        self,
        helper: str,
        math: str,
        symbols: Mapping[str, str],
        functions: Mapping[str, str],
        is_word: Callable[[EnumIs], str],
        enum_argument: Callable[[str, int, EnumArgument], str],
        attribute: Callable[[AttrValue], str] | None = None,
        size: Callable[[SizeOf], str] | None = None,
        present: Callable[[Present], str] | None = None,
        is_float: Callable[[AttrValue], bool] | None = None,
    ) -> None:
        self._helper = helper
        self._math = math
        self._symbols = symbols
        self._functions = functions
        self._is_word = is_word
        self._enum_argument = enum_argument
        self._attribute = attribute
        self._size = size
        self._present = present
        self._is_float = is_float
        self._exact = False  # whether each floating operation is rounded by itself, and none is divided by 0

    def number(self, value: int | float | bool) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return integer(value)
        return number(value)

    def symbol(self, name: str) -> str:
        return self._symbols[name]

    def word(self, value: str) -> str:
        raise InternalError(f"the word {value!r} stands in no function's argument")

    def attribute(self, e: AttrValue) -> str:
        if self._attribute is None:
            raise InternalError(f"attribute {e.attr!r} in a function")
        return self._attribute(e)

    def comparison_with_word(self, e: EnumIs) -> str:
        return self._is_word(e)

    def present(self, e: Present) -> str:
        if self._present is None:
            raise InternalError(f"attribute {e.attr!r} in a function")
        return self._present(e)

    def size_of(self, e: SizeOf) -> str:
        if self._size is None:
            raise InternalError(f"a size of {e.tensor!r} in a function")
        return self._size(e)

    def print(self, e: Expr) -> tuple[str, int]:
        if isinstance(e, Negate) and not self.floating(e):
            return f"{self._helper}_sub({self._math}, 0, {self.text(e.operand)})", ATOM
        if isinstance(e, Not):
            return f"!{self.text(e.operand, ATOM)}", UNARY
        return super().print(e)

    def operation(self, e: Operation) -> tuple[str, int]:
        if e.op == "or":
            return f"{self._within_or(e.left)} {self.operators['or']} {self._within_or(e.right)}", OR
        if self._exact and e.op in ("*", "/") and self.floating(e):
            name, given = ("times", "") if e.op == "*" else ("over", f"{self._math}, ")
            return f"{self._helper}_{name}({given}{self.text(e.left)}, {self.text(e.right)})", ATOM
        if self.floating(e) or e.op not in (*_CALLS, *_PURE):
            return super().operation(e)
        left, right = self.text(e.left), self.text(e.right)
        if e.op in _PURE:
            return f"{self._helper}_{e.op}({left}, {right})", ATOM
        return f"{self._helper}_{_CALLS[e.op]}({self._math}, {left}, {right})", ATOM

    def real(self, e: Real) -> str:
        return f"(double){self.text(e.operand, ATOM)}"

    def whole(self, e: Whole) -> str:
        rounding = {"round": "rint"}.get(e.function, e.function)
        outer, self._exact = self._exact, True
        value = self.text(e.operand)
        self._exact = outer
        return f"{self._helper}_whole({self._math}, {value}, {rounding})"

    def _within_or(self, e: Expr) -> str:
        """Return an operand of `||`: one of `&&` has parentheses, as compilers ask for."""
        return self.text(e, NOT if isinstance(e, Operation) and e.op == "and" else OR)

    def function_like(self, e: Operation) -> str:
        names = {"min": "fmin", "max": "fmax", "pow": "pow"}
        return f"{names[e.op]}({self.text(e.left)}, {self.text(e.right)})"

    def conditional(self, e: Conditional) -> str:
        return f"{self.text(e.condition, 1)} ? {self.text(e.if_true, 1)} : {self.text(e.if_false)}"

    def call(self, e: FunctionCall) -> str:
        arguments = [
            self._enum_argument(e.function, i, a) if isinstance(a, EnumArgument) else self.text(a)
            for i, a in enumerate(e.arguments)
        ]
        return f"{self._functions[e.function]}({', '.join([self._math, str(e.result), *arguments])})"

    def floating(self, e: Expr) -> bool:
        """Return True if an arithmetic expression has a floating value."""
        match e:
            case Operation(op="==" | "!=" | "<" | "<=" | ">" | ">=" | "and" | "or"):
                return False
            case Operation():
                return e.op == "/" or self.floating(e.left) or self.floating(e.right)
            case Conditional():
                return self.floating(e.if_true) or self.floating(e.if_false)
            case Negate():
                return self.floating(e.operand)
            case Number():
                return isinstance(e.value, float)
            case AttrValue():
                return self._is_float is not None and self._is_float(e)
        return isinstance(e, Real)


def integer(value: int) -> str:
    """Return an integer literal of 64 bits."""
    if value == -(2**63):
        return "INT64_MIN"
    if value == 2**63 - 1:
        return "INT64_MAX"
    return str(value) if -(2**31) < value < 2**31 else f"INT64_C({value})"


def number(value: float) -> str:
    """Return a floating literal."""
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value))
