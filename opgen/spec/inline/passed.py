"""Arguments that one op passes to another, as the called op's expressions need them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from opgen.spec.model import model as m
from opgen.spec.model.visit import attrs_in
from opgen.spec.model.walk import subexpressions
from opgen.spec.resolve.scope import Readable

T = TypeVar("T")


@dataclass(frozen=True)
class Bound:
    """Requirement on an argument of the called op."""

    condition: m.Expr
    argument: str
    expected: tuple[str | m.Expr, ...]


@dataclass(frozen=True)
class Given:
    """Value of an attribute of the called op, in terms of the calling op.

    `values` maps () to the value, or the positions of a list, in the caller's order, to its elements.  It is empty for
    an absent list.  An enumeration or a layout is `word`, or has the value of the calling op's attribute `enum`.
    """

    values: Mapping[tuple[int, ...], m.Expr] = field(default_factory=dict)
    word: str | None = None
    enum: m.Attr | None = None
    present: m.Expr = field(default_factory=lambda: m.Number(True))


@dataclass(frozen=True)
class Passed:
    """Call with its arguments; `tensors` and `attrs` are keyed by the names of the called op."""

    op: m.OpSpec
    tensors: Mapping[str, Readable]
    attrs: Mapping[str, Given]
    types: Mapping[str, str]
    bounds: Sequence[Bound]

    def dtype(self, name: str) -> str:
        """Return the calling op's type for a type or type variable of the called op."""
        return self.types.get(name, name)

    def sources(self, attr: str) -> list[str]:
        """Return the attributes of the calling op from which one of the called op derives."""
        given = self.attrs.get(attr, Given())
        return sorted(
            {n for e in given.values.values() for n in attrs_in(e)} | ({given.enum.name} if given.enum else set())
        )

    def dims(self, tensor: m.Tensor) -> tuple[m.Expr, ...]:
        """Return the sizes of a passed tensor, in the called op's order."""
        dims = self.tensors[tensor.name].dims or ()
        return tuple(dims[self._place(tensor.layout, axis)] for axis in range(tensor.rank))

    def placed(self, tensor: m.Tensor, given: Sequence[T]) -> tuple[T, ...]:
        """Reorder one item per dimension from the called op's order to the calling op's."""
        places = {self._place(tensor.layout, axis): one for axis, one in enumerate(given)}
        return tuple(places[at] for at in range(len(given)))

    def _place(self, layout: str | None, axis: int) -> int:
        """Return the position of a dimension of the called op in the passed tensor."""
        if layout is None:
            return axis
        given, letters = self.attrs[layout], self.op.attr(layout).values[0]
        word = given.word if given.enum is None else given.enum.values[0]
        return str(word).index(letters[axis])

    def node(self, e: m.Expr) -> m.Expr:
        """Rewrite an expression that depends on attributes or types in terms of the calling op."""
        match e:
            case m.AttrValue():
                return self._value(e)
            case m.EnumIs():
                return self._enum_is(e)
            case m.Present():
                return self.attrs[e.attr].present
            case m.FunctionCall():
                return replace(e, arguments=tuple(map(self._argument, e.arguments)))
            case m.Convert() | m.BitCast():
                return replace(e, to=self.dtype(e.to))
            case _:
                return decided(e)

    def _value(self, e: m.AttrValue) -> m.Expr:
        layout = self.op.attr(e.attr).layout
        at = e.element if layout is None else (self._place(layout, e.element[0]), *e.element[1:])
        return self.attrs[e.attr].values.get(at, m.Number(0))

    def _enum_is(self, e: m.EnumIs) -> m.Expr:
        given = self.attrs.get(e.name)
        if given is None:
            return e
        if given.enum is None:
            return m.Number(given.word == e.value)
        return replace(e, name=given.enum.name) if e.value in given.enum.values else m.Number(False)

    def _argument(self, e: m.Expr | m.EnumArgument) -> m.Expr | m.EnumArgument:
        if not isinstance(e, m.EnumArgument) or e.name is None or e.name not in self.attrs:
            return e
        given = self.attrs[e.name]
        return replace(e, name=None if given.enum is None else given.enum.name, value=given.word)


def decided(e: m.Expr) -> m.Expr:
    """Simplify an expression: fold known values, decided conditions, sums with 0 and products with 1."""
    match e:
        case m.Conditional(condition=m.Number(value)):
            return e.if_true if value else e.if_false
        case m.Not(operand=m.Number(value)):
            return m.Number(not value)
        case m.Operation(op="and" | "or", left=m.Number(value)):
            return e.right if value == (e.op == "and") else m.Number(bool(value))
        case m.Operation(op="and" | "or", right=m.Number(value)):
            return e.left if value == (e.op == "and") else m.Number(bool(value))
        case m.Operation(op="==" | "!=" | "<" | "<=" | ">" | ">="):
            left, right = known(e.left), known(e.right)
            if left is not None and right is not None:
                return m.Number(_COMPARISONS[e.op](left, right))
        case m.Operation():
            return _shorter(e)
    return e


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
}  # fmt: skip


def _shorter(e: m.Operation) -> m.Expr:
    """Simplify an operation on known integers, or with a neutral operand."""
    value = known(e)
    if value is not None and 0 <= value < _HELD:
        return m.Number(value, e.span)
    left, right = (_one_or_none(o) for o in (e.left, e.right))
    if right == 1 and e.op in ("*", "//"):
        return e.left
    if left == 1 and e.op == "*":
        return e.right
    if right == 0 and e.op in ("+", "-") and _whole(e.left):
        return e.left
    if left == 0 and e.op == "+" and _whole(e.right):
        return e.right
    if 0 in (left, right) and e.op == "*" and _whole(e.left) and _whole(e.right):
        return m.Number(0, e.span)
    return e


_HELD = 128
"""Bound below which numbers are representable in every element type."""


def _one_or_none(e: m.Expr) -> int | None:
    """Return the value of a number, looking through a cast of 1."""
    return known(e.operand) if isinstance(e, m.Convert) and known(e.operand) == 1 else known(e)


def _whole(e: m.Expr) -> bool:
    """True if an expression is an integer of shapes and indices."""
    kinds = (m.Symbol, m.Index, m.Operation, m.FunctionCall, m.Negate)
    return all(isinstance(n, kinds) or known(n) is not None for n in subexpressions(e))


def known(e: m.Expr) -> int | None:
    """Return the value of an integer expression of literals only, else None."""
    match e:
        case m.Number(value) if isinstance(value, int) and not isinstance(value, bool):
            return value
        case m.Negate():
            operand = known(e.operand)
            return None if operand is None else -operand
        case m.Operation(op="+" | "-" | "*" | "//"):
            left, right = known(e.left), known(e.right)
            if left is None or right is None or (e.op == "//" and right == 0):
                return None
            return _ARITHMETIC[e.op](left, right)
    return None
