"""Expressions of a model as the syntax that a person would have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from opgen.diagnostics import Source, Span
from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s

NOWHERE = Span(Source("<model>", ""), 1, 1, 1, 1)
"""The span of generated syntax."""

CALLED = (
    "min", "max", "ceildiv", "pow", "rem", "atan2", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right",
    "random",
)  # fmt: skip
"""Operations with the syntax of functions."""


def ident(name: str) -> s.Ident:
    return s.Ident(NOWHERE, name)


def named(name: str) -> s.Named:
    return s.Named(NOWHERE, name)


def constant(value: int | float | bool) -> s.Expression:
    """Return a literal; a negative one is a negation, the least 64-bit integer a difference."""
    if isinstance(value, bool):
        return s.Constant(NOWHERE, str(value).lower())
    if isinstance(value, int) and value == -(2**63):
        return s.Binary(NOWHERE, "-", constant(value + 1), constant(1))
    if value < 0:
        return s.Unary(NOWHERE, "-", s.Constant(NOWHERE, repr(-value)))
    return s.Constant(NOWHERE, repr(value))


def fraction(value: Fraction) -> s.Expression:
    """Return a number of a constant's table."""
    top = constant(value.numerator)
    if value.denominator == 1:
        return top
    return s.Binary(NOWHERE, "/", top, s.Constant(NOWHERE, str(value.denominator)))


def call(name: str, arguments: Sequence[s.Expression]) -> s.Call:
    return s.Call(NOWHERE, ident(name), tuple(arguments))


@dataclass(frozen=True)
class Expressions:
    """Conversion of an op's expressions to syntax; elements of list attributes are named by the letters of a layout.

    One form is not part of the language: `size(x, axis)`, the size that a caller gave a broadcast dimension.
    """

    attrs: Mapping[str, m.Attr]

    def all(self, given: Sequence[m.Expr]) -> tuple[s.Expression, ...]:
        return tuple(map(self.of, given))

    def ranges(self, given: Sequence[m.IndexRange]) -> tuple[s.Range, ...]:
        return tuple(s.Range(NOWHERE, ident(r.name), self.of(r.extent)) for r in given)

    def of(self, e: m.Expr) -> s.Expression:
        """Return an expression as syntax."""
        match e:
            case m.Number():
                return constant(e.value)
            case m.Symbol() | m.Index():
                return named(e.name)
            case m.AttrValue():
                return self._attribute(e)
            case m.EnumIs():
                return s.Binary(NOWHERE, "==", named(e.name), named(e.value))
            case m.Present():
                return call("present", (named(e.attr),))
            case m.SizeOf():
                return call("size", (named(e.tensor), constant(e.axis)))
            case m.Operation():
                return self._operation(e)
            case m.Negate():
                return s.Unary(NOWHERE, "-", self.of(e.operand))
            case m.Not(m.EnumIs(name, value)):
                return s.Binary(NOWHERE, "!=", named(name), named(value))
            case m.Not():
                return s.Unary(NOWHERE, "not", self.of(e.operand))
            case m.Conditional():
                return s.Choice(NOWHERE, self.of(e.condition), self.of(e.if_true), self.of(e.if_false))
            case m.FunctionCall():
                return self._function(e)
            case m.Real():
                return call("float", (self.of(e.operand),))
            case m.Whole():
                inner = self.of(e.operand)
                return call("int", (inner if e.function == "trunc" else call(e.function, (inner,)),))
            case m.Apply():
                return call(e.function, (self.of(e.argument),))
            case m.MultiplyAdd():
                return call("fma", (self.of(e.left), self.of(e.right), self.of(e.added)))
            case m.Convert():
                return call(e.to, (self.of(e.operand),))
            case m.BitCast():
                return call("bit_cast", (named(e.to), self.of(e.operand)))
            case m.Read():
                outside = None if e.outside is None else self.of(e.outside)
                return s.Subscripted(NOWHERE, ident(e.tensor), self.all(e.indices), outside)
            case m.Element():
                return s.Subscripted(NOWHERE, ident(e.constant.name), self.all(e.indices), None)
            case m.Reduce(kind="sum", indices=()) if e.condition is not None:  # a gradient's conditional term
                return s.Choice(NOWHERE, self.of(e.condition), self.of(e.body), constant(0))
            case m.Reduce():
                condition = None if e.condition is None else self.of(e.condition)
                place = None if e.place is None else self.of(e.place)
                return s.Reduction(NOWHERE, e.kind, self.ranges(e.indices), self.of(e.body), condition, place)

    def _attribute(self, e: m.AttrValue) -> s.Expression:
        if not e.element:
            return named(e.attr)
        layout = self.attrs[e.attr].layout if e.attr in self.attrs else None
        if layout is None:
            return s.Subscripted(NOWHERE, ident(e.attr), tuple(map(constant, e.element)), None)
        letter = self.attrs[layout].values[0][e.element[0]]
        return s.Member(NOWHERE, ident(e.attr), ident(letter), tuple(map(constant, e.element[1:])))

    def _operation(self, e: m.Operation) -> s.Expression:
        left, right = self.of(e.left), self.of(e.right)
        return call(e.op, (left, right)) if e.op in CALLED else s.Binary(NOWHERE, e.op, left, right)

    def _function(self, e: m.FunctionCall) -> s.Expression:
        """Return a call; the names of the enclosing `let` select one of several results."""
        arguments = (
            named(a.name or a.value or "") if isinstance(a, m.EnumArgument) else self.of(a) for a in e.arguments
        )
        return call(e.function, tuple(arguments))
