"""What one op gives another that it uses, as far as the other's expressions need it."""

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
    """What must hold of an argument of the called op."""

    condition: m.Expr
    argument: str
    expected: tuple[str | m.Expr, ...]


@dataclass(frozen=True)
class Given:
    """What an attribute of the called op is in the calling one.

    `values` are its value, at (), or those of a list's elements, by their positions in the order in which they are
    given; a list that is absent has none.  Of an enumeration or a layout it is `word`, or what the attribute `enum` of
    the calling op is.
    """

    values: Mapping[tuple[int, ...], m.Expr] = field(default_factory=dict)
    word: str | None = None
    enum: m.Attr | None = None
    present: m.Expr = field(default_factory=lambda: m.Number(True))


@dataclass(frozen=True)
class Passed:
    """A call with all that it gives: `tensors` and `attrs` by the names of the called op."""

    op: m.OpSpec
    tensors: Mapping[str, Readable]
    attrs: Mapping[str, Given]
    types: Mapping[str, str]
    bounds: Sequence[Bound]

    def dtype(self, name: str) -> str:
        """A type, or type variable, of the called op in the calling one."""
        return self.types.get(name, name)

    def sources(self, attr: str) -> list[str]:
        """The attributes of the calling op that one of the called op comes from."""
        given = self.attrs.get(attr, Given())
        return sorted(
            {n for e in given.values.values() for n in attrs_in(e)} | ({given.enum.name} if given.enum else set())
        )

    def dims(self, tensor: m.Tensor) -> tuple[m.Expr, ...]:
        """The sizes of a tensor that is given, in the called op's order."""
        dims = self.tensors[tensor.name].dims or ()
        return tuple(dims[self._place(tensor.layout, axis)] for axis in range(tensor.rank))

    def placed(self, tensor: m.Tensor, given: Sequence[T]) -> tuple[T, ...]:
        """What there is for each dimension in the called op's order, in the calling op's."""
        places = {self._place(tensor.layout, axis): one for axis, one in enumerate(given)}
        return tuple(places[at] for at in range(len(given)))

    def _place(self, layout: str | None, axis: int) -> int:
        """Where a dimension of the called op stands in what is given."""
        if layout is None:
            return axis
        given, letters = self.attrs[layout], self.op.attr(layout).values[0]
        word = given.word if given.enum is None else given.enum.values[0]
        return str(word).index(letters[axis])

    def node(self, e: m.Expr) -> m.Expr:
        """An expression that names attributes or types, or is decided by them, in the calling op."""
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
    """An expression over what is known, without conditions that are decided, sums with 0 and products with 1."""
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
    """An operation of integers that are known, or with one that changes nothing."""
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
"""Numbers below it are the same in every type of elements."""


def _one_or_none(e: m.Expr) -> int | None:
    """The value of a number, also one that is cast."""
    return known(e.operand) if isinstance(e, m.Convert) and known(e.operand) == 1 else known(e)


def _whole(e: m.Expr) -> bool:
    """Whether an expression is an integer of shapes and indices."""
    kinds = (m.Symbol, m.Index, m.Operation, m.FunctionCall, m.Negate)
    return all(isinstance(n, kinds) or known(n) is not None for n in subexpressions(e))


def known(e: m.Expr) -> int | None:
    """The value of an integer expression of numbers alone."""
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
