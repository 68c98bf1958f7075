"""Type predicates, evaluated when an op is made: the answer narrows the type variable.

`is_float(T)` and `is_same(T, S)` are conditions.  `bits(T)` is the number of significant bits of an element, and
`greatest(T)` the greatest finite number of the type.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from opgen.dtypes import DType, lookup, small_value
from opgen.spec.generic.values import Mistake, boolean, integer, real
from opgen.spec.syntax import nodes as s

_LARGEST = {"float16": 65504.0, "bfloat16": 2.0**128 - 2.0**120, "float32": 2.0**128 - 2.0**104}


def _greatest(t: DType) -> int | float:
    """Return the greatest finite number of a type."""
    if not t.is_float:
        return t.greatest
    if t.small is None:
        return _LARGEST.get(t.name, sys.float_info.max)
    return small_value(t.small.overflow - (t.small.nan is not None), t)


PREDICATES: dict[str, Callable[[DType], bool | int | float]] = {
    "is_float": lambda t: t.is_float,
    "is_integer": lambda t: t.is_int,
    "is_bool": lambda t: t.kind == "bool",
    "is_signed": lambda t: t.kind != "bool" and (t.signed if t.small is None else t.small.signed),
    "bits": lambda t: t.digits,
    "greatest": _greatest,
}
"""Predicates and numbers of a type, by function name: `is_float(T)`."""

SAME = "is_same"
"""The predicate on two types."""

QUESTIONS = frozenset({*PREDICATES, SAME})
"""The functions whose arguments are names of types."""


BIT_CAST = "bit_cast"
"""The function whose first argument is the name of a type: `bit_cast(to, x)`."""


def of_types(tree: s.Call, arguments: tuple[s.Expression, ...], settled: Mapping[str, str]) -> s.Call:
    """Return a call with expanded arguments, and with the types that the form fixes in place of their names."""
    if tree.function.name == BIT_CAST and arguments and isinstance(arguments[0], s.Named):
        to = s.Named(arguments[0].span, settled.get(arguments[0].name, arguments[0].name))
        arguments = (to, *arguments[1:])
    function = s.Ident(tree.function.span, settled.get(tree.function.name, tree.function.name))
    return s.Call(tree.span, function, arguments)


@dataclass
class Narrowed:
    """Answers to predicates on the types of one call.

    `types` has the types of variables and attributes by name; `asked` the predicates that a form depends on.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    asked: dict[str, set[str]] = field(default_factory=dict)

    def ask(self, tree: s.Call, settled: Mapping[str, str]) -> s.Expression:
        """Evaluate a predicate `is_...(T)` to a tree; `settled` has the types that the form fixes."""
        if tree.function.name == SAME:
            return self._same(tree, settled)
        name = tree.arguments[0].name if tree.arguments and isinstance(tree.arguments[0], s.Named) else ""
        dtype = lookup(self.types.get(name, settled.get(name, name)))
        if dtype is None or len(tree.arguments) != 1:
            raise Mistake(f"'{tree.function.name}' takes the name of a type", tree.span)
        self.asked.setdefault(name, set()).add(tree.function.name)
        answer = PREDICATES[tree.function.name](dtype)
        if isinstance(answer, bool):
            return boolean(answer, tree.span)
        return integer(answer, tree.span) if isinstance(answer, int) else real(answer, tree.span)

    def _same(self, tree: s.Call, settled: Mapping[str, str]) -> s.Expression:
        """Evaluate `is_same(T, S)`."""
        names = [a.name for a in tree.arguments if isinstance(a, s.Named)]
        found = [t for t in (lookup(self.types.get(n, settled.get(n, n))) for n in names) if t is not None]
        if not len(tree.arguments) == len(found) == 2:
            raise Mistake(f"'{SAME}' takes the names of two types", tree.span)
        for name, other in zip(names, reversed(found), strict=True):
            self.asked.setdefault(name, set()).add(other.name)
        return boolean(found[0] == found[1], tree.span)

    def allowed(self, name: str, dtype: DType) -> bool:
        """Return True if all evaluated predicates on a variable have the same value for another type."""
        own = lookup(self.types.get(name, ""))
        return own is None or all(_answer(q, own) == _answer(q, dtype) for q in self.asked.get(name, ()))


def _answer(question: str, dtype: DType) -> bool | int | float:
    """Evaluate a predicate; any other question is the name of a type to compare with."""
    return PREDICATES[question](dtype) if question in PREDICATES else dtype.name == question
