"""Expressions of a model as text: precedence and parentheses once, for every language that is printed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from opgen.diagnostics import InternalError
from opgen.spec.model.model import (
    Apply,
    AttrValue,
    BitCast,
    Conditional,
    Convert,
    Element,
    EnumArgument,
    EnumIs,
    Expr,
    FunctionCall,
    Index,
    MultiplyAdd,
    Negate,
    Not,
    Number,
    Operation,
    Present,
    Read,
    Real,
    Reduce,
    SizeOf,
    Symbol,
    Whole,
)

CONDITIONAL, OR, AND, NOT, COMPARE, ADD, MULTIPLY, UNARY, ATOM = range(9)
"""Precedence of an expression, loosest first."""

LEVELS = {"or": OR, "and": AND} | dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), COMPARE)
LEVELS |= {"+": ADD, "-": ADD} | dict.fromkeys(("*", "/", "//", "%"), MULTIPLY)


class Printer(ABC):
    """Prints expressions of the shape language; `operators` spells those of its operations that a language spells
    otherwise.
    """

    operators: ClassVar[dict[str, str]] = {}

    def text(self, e: Expr, around: int = CONDITIONAL) -> str:
        """Return the text of an expression, in parentheses if its precedence is below `around`."""
        found, level = self.print(e)
        return f"({found})" if level < around else found

    def print(self, e: Expr) -> tuple[str, int]:
        """Return an expression without outer parentheses, and how tightly it binds."""
        match e:
            case Number():
                return self.number(e.value), UNARY if not isinstance(e.value, bool) and e.value < 0 else ATOM
            case Symbol() | Index():
                return self.symbol(e.name), ATOM
            case AttrValue():
                return self.attribute(e), ATOM
            case EnumIs():
                return self.comparison_with_word(e), COMPARE
            case Present():
                return self.present(e), COMPARE
            case SizeOf():
                return self.size_of(e), ATOM
            case Operation():
                return self.operation(e)
            case Negate():
                return f"-{self.text(e.operand, ATOM)}", UNARY
            case Not():
                return f"{self.operators.get('not', 'not ')}{self.text(e.operand, NOT)}", NOT
            case Conditional():
                return self.conditional(e), CONDITIONAL
            case FunctionCall():
                return self.call(e), ATOM
            case Real():
                return self.real(e), ATOM
            case Whole():
                return self.whole(e), ATOM
            case Apply() | MultiplyAdd() | Convert() | BitCast() | Read() | Element() | Reduce():
                return self.mathematics(e), ATOM

    def operation(self, e: Operation) -> tuple[str, int]:
        """Return a binary operation; comparisons do not chain, the others group to the left."""
        if e.op not in LEVELS:
            return self.function_like(e), ATOM
        level = LEVELS[e.op]
        left = self.text(e.left, level + 1 if level == COMPARE else level)
        return f"{left} {self.operators.get(e.op, e.op)} {self.text(e.right, level + 1)}", level

    def argument(self, a: Expr | EnumArgument) -> str:
        """Return an argument of a shape function."""
        if not isinstance(a, EnumArgument):
            return self.text(a)
        return self.symbol(a.name) if a.name is not None else self.word(a.value or "")

    def function_like(self, e: Operation) -> str:
        """`min`, `max`, `ceildiv` and `pow`."""
        return f"{e.op}({self.text(e.left)}, {self.text(e.right)})"

    def real(self, e: Real) -> str:
        """Return an integer as a float."""
        return f"float({self.text(e.operand)})"

    def whole(self, e: Whole) -> str:
        """Return the integer that a float is rounded to."""
        value = self.text(e.operand)
        return f"int({value})" if e.function == "trunc" else f"int({e.function}({value}))"

    def mathematics(self, e: Apply | MultiplyAdd | Convert | BitCast | Read | Element | Reduce) -> str:
        """Return the text of an expression that only mathematics has."""
        raise InternalError(f"{type(e).__name__} is no expression of the shape language")

    @abstractmethod
    def number(self, value: int | float | bool) -> str: ...

    @abstractmethod
    def symbol(self, name: str) -> str:
        """Return a dimension, a `let`, a parameter or an index."""

    @abstractmethod
    def word(self, value: str) -> str:
        """Return a value of an enumeration."""

    @abstractmethod
    def attribute(self, e: AttrValue) -> str: ...

    @abstractmethod
    def comparison_with_word(self, e: EnumIs) -> str: ...

    @abstractmethod
    def present(self, e: Present) -> str: ...

    @abstractmethod
    def size_of(self, e: SizeOf) -> str: ...

    @abstractmethod
    def conditional(self, e: Conditional) -> str: ...

    @abstractmethod
    def call(self, e: FunctionCall) -> str: ...
