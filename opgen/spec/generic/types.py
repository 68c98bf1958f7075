"""Questions about types, answered when an op is made: an answer narrows the type variable that was asked of.

`is_float(T)` is a condition, `bits(T)` and `greatest(T)` are numbers: how many bits of an element count, and the
greatest finite number of the type.  `is_same(T, S)` is a condition, too.
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
    """The greatest finite number of a type."""
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
"""What may be asked of a type, by the names of functions: `is_float(T)`."""

SAME = "is_same"
"""The question about two types."""

QUESTIONS = frozenset({*PREDICATES, SAME})
"""The functions whose arguments are names of types."""


BIT_CAST = "bit_cast"
"""The function whose first argument is the name of a type: `bit_cast(to, x)`."""


def of_types(tree: s.Call, arguments: tuple[s.Expression, ...], settled: Mapping[str, str]) -> s.Call:
    """A call of expanded arguments: types that the form fixes, as those of attributes, stand for their names."""
    if tree.function.name == BIT_CAST and arguments and isinstance(arguments[0], s.Named):
        to = s.Named(arguments[0].span, settled.get(arguments[0].name, arguments[0].name))
        arguments = (to, *arguments[1:])
    function = s.Ident(tree.function.span, settled.get(tree.function.name, tree.function.name))
    return s.Call(tree.span, function, arguments)


@dataclass
class Narrowed:
    """Answers for the types of one call.  `types` are those of variables and attributes by name; `asked` are the
    questions that a form depends on.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    asked: dict[str, set[str]] = field(default_factory=dict)

    def ask(self, tree: s.Call, settled: Mapping[str, str]) -> s.Expression:
        """The answer to `is_...(T)`, as a tree; `settled` are types that the form fixes, as those of attributes."""
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
        """The answer to `is_same(T, S)`."""
        names = [a.name for a in tree.arguments if isinstance(a, s.Named)]
        found = [t for t in (lookup(self.types.get(n, settled.get(n, n))) for n in names) if t is not None]
        if not len(tree.arguments) == len(found) == 2:
            raise Mistake(f"'{SAME}' takes the names of two types", tree.span)
        for name, other in zip(names, reversed(found), strict=True):
            self.asked.setdefault(name, set()).add(other.name)
        return boolean(found[0] == found[1], tree.span)

    def allowed(self, name: str, dtype: DType) -> bool:
        """Whether all that was asked of a variable is answered alike for a type."""
        own = lookup(self.types.get(name, ""))
        return own is None or all(_answer(q, own) == _answer(q, dtype) for q in self.asked.get(name, ()))


def _answer(question: str, dtype: DType) -> bool | int | float:
    """The answer to a question: a predicate, or whether a type is the one of this name."""
    return PREDICATES[question](dtype) if question in PREDICATES else dtype.name == question
