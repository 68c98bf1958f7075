"""The gradients of an op with respect to several of its inputs as one function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from opgen.runtime.describe import describe
from opgen.runtime.errors import ArgumentTypeError


def several(op: str, gradients: Sequence[Callable[..., Any]], names: Sequence[str]) -> Callable[..., Any]:
    """Return a function that gives the results of an op's gradients, which have one signature, as a tuple."""

    def together(*arguments: Any, out: Any = None, **named: Any) -> tuple[Any, ...]:
        outs = [None] * len(gradients) if out is None else _each(op, out, len(gradients))
        return tuple(g(*arguments, out=o, **named) for g, o in zip(gradients, outs, strict=True))

    first = inspect.signature(gradients[0])
    parameters = [
        p.replace(annotation="tuple[Array, ...] | None") if p.name == "out" else p for p in first.parameters.values()
    ]
    together.__signature__ = first.replace(parameters=parameters, return_annotation="tuple[Array, ...]")  # type: ignore[attr-defined]
    together.__name__ = together.__qualname__ = f"gradients_by_{'_'.join(names)}"
    together.__doc__ = (
        f"A tuple of the gradients of `{op}` with respect to {', '.join(f'`{n}`' for n in names)}.\n\n"
        f"The arguments are those of each of them; `out` is a tuple, too.  With respect to `{names[0]}`:\n\n    "
        f"{gradients[0].__doc__}"
    )
    return together


def _each(op: str, out: object, count: int) -> Sequence[Any]:
    """One array for each gradient."""
    if not isinstance(out, tuple | list) or len(out) != count:
        raise ArgumentTypeError(op, "out", f"a tuple of {count} arrays", describe(out))
    return out
