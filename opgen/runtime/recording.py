"""Calls that are not run: a generated function that is given a symbol in the place of a tensor hands its call to it.

This is how Python functions of such calls are captured (`opgen.graph.capture`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opgen.diagnostics import UserError
from opgen.runtime.call import Call

if TYPE_CHECKING:
    from opgen.spec.model import Module


class CaptureError(UserError):
    """A function that is captured does with a symbol what only a tensor with values can do."""


class Callee(Protocol):
    """What is called: an op of a module, and the check of its calls."""

    name: str
    module: Callable[[], Module] | None

    def checked(self, tensors: tuple[object, ...], rest: tuple[object, ...]) -> Call:
        """The call, if its arguments fit together; an ArgumentError if not."""


class Symbol:
    """A tensor of which type and shape are known, and no values."""

    __array_ufunc__ = None  # numpy's arrays leave arithmetic with symbols to the symbols

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.dtype = dtype
        self.shape = shape

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return int(np.prod(self.shape, dtype=object))

    def called(
        self, callee: Callee, tensors: tuple[object, ...], rest: tuple[object, ...], out: object
    ) -> tuple[Symbol, ...]:
        """Takes a call in which the symbol, and perhaps others, stand for tensors; symbols for its results."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<a symbol for {self.dtype.name}{list(self.shape)}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a symbol without dimensions has no length")
        return self.shape[0]

    def _no_value(self, *_: object, **__: object) -> Any:
        given = f"{self.dtype.name}{list(self.shape)}"
        raise CaptureError(
            f"a function that is compiled asks for the values of a tensor ({given}); while it is captured only types "
            "and shapes are known, so it cannot choose by values or hand them to other libraries"
        )

    __array__ = __bool__ = __int__ = __float__ = __index__ = __iter__ = __getitem__ = __setitem__ = _no_value


def symbol_among(values: Sequence[object]) -> Symbol | None:
    """The first symbol among values, if there is one."""
    return next((v for v in values if isinstance(v, Symbol)), None)


def stand_in(dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array of a type and shape that takes no memory, for checks of calls."""
    return np.broadcast_to(np.zeros((), dtype), shape)
