"""The gradients of an op with respect to several of its inputs as one function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from opgen.diagnostics.calls import ArgumentTypeError
from opgen.diagnostics.describe import describe


class Several:
    """A function that gives the results of an op's gradients, which have one signature, as a tuple."""

    def __init__(self, op: str, gradients: Sequence[Callable[..., Any]], names: Sequence[str]) -> None:
        self._op = op
        self._gradients = tuple(gradients)
        self._names = tuple(names)
        first = inspect.signature(gradients[0])
        parameters = [
            p.replace(annotation="tuple[Array, ...] | None") if p.name == "out" else p
            for p in first.parameters.values()
        ]
        self.__signature__ = first.replace(parameters=parameters, return_annotation="tuple[Array, ...]")
        self.__name__ = self.__qualname__ = f"gradients_by_{'_'.join(names)}"
        self.__doc__ = (
            f"A tuple of the gradients of `{op}` with respect to {', '.join(f'`{n}`' for n in names)}.\n\n"
            f"The arguments are those of each of them; `out` is a tuple, too.  With respect to `{names[0]}`:\n\n    "
            f"{gradients[0].__doc__}"
        )

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> tuple[Any, ...]:
        """Return the gradients, in the order of the names; `out` is a tuple of as many arrays."""
        count = len(self._gradients)
        outs = [None] * count if out is None else self._each(out)
        return tuple(g(*arguments, out=o, **named) for g, o in zip(self._gradients, outs, strict=True))

    def _each(self, out: object) -> Sequence[Any]:
        """One array for each gradient."""
        count = len(self._gradients)
        if not isinstance(out, tuple | list) or len(out) != count:
            title = f"gradient of {self._op} with respect to {', '.join(map(repr, self._names))}"
            raise ArgumentTypeError(title, "out", f"a tuple of {count} arrays", describe(out))
        return out

    def __repr__(self) -> str:
        return f"<function {self.__name__} of {self._op}>"

    def __reduce__(self) -> tuple[type[Several], tuple[object, ...]]:
        return Several, (self._op, self._gradients, self._names)
