"""Questions about types, answered when an op is made: an answer narrows the type variable that was asked of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from opgen.dtypes import DTYPES, DType
from opgen.spec import syntax as s
from opgen.spec.generic.values import Mistake, boolean

PREDICATES: dict[str, Callable[[DType], bool]] = {
    "is_float": lambda t: t.is_float,
    "is_integer": lambda t: t.is_int,
    "is_bool": lambda t: t.kind == "bool",
    "is_signed": lambda t: t.is_float or (t.is_int and not t.name.startswith("u")),
}
"""What may be asked of a type, by the names of functions: `is_float(T)`."""


@dataclass
class Narrowed:
    """Answers for the types of one call.  `types` are those of variables and attributes by name; `asked` are the
    questions that a form depends on.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    asked: dict[str, set[str]] = field(default_factory=dict)

    def ask(self, tree: s.Call) -> s.Expression:
        """The answer to `is_...(T)`."""
        name = tree.arguments[0].name if tree.arguments and isinstance(tree.arguments[0], s.Named) else ""
        dtype = DTYPES.get(self.types.get(name, name))
        if dtype is None or len(tree.arguments) != 1:
            raise Mistake(f"'{tree.function.name}' takes the name of a type", tree.span)
        self.asked.setdefault(name, set()).add(tree.function.name)
        return boolean(PREDICATES[tree.function.name](dtype), tree.span)

    def allowed(self, name: str, dtype: DType) -> bool:
        """Whether all that was asked of a variable is answered alike for a type."""
        own = DTYPES.get(self.types.get(name, ""))
        return own is None or all(PREDICATES[q](own) == PREDICATES[q](dtype) for q in self.asked.get(name, ()))
