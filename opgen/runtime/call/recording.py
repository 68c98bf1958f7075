"""Calls that are not run: a generated function that is given a symbol in the place of a tensor hands its call to it.

This is how Python functions of such calls are captured (`opgen.graph.build.capture`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opgen.diagnostics import UserError
from opgen.runtime.call.call import Call

if TYPE_CHECKING:
    from opgen.spec.model.model import Module


class CaptureError(UserError):
    """A function that is captured does with a symbol what only a tensor with values can do."""


def counted(count: object, op: str, size: str) -> int:
    """A size that was worked out of elements.  Raises CaptureError if it is not known, as a function is captured."""
    if isinstance(count, Symbol):
        raise CaptureError(
            f"{op}: the size '{size}' follows from elements, which are known only when the function runs"
        )
    return int(np.asarray(count))


class NoAttributeError(CaptureError, AttributeError):
    """A symbol has not what arrays have."""


class Callee(Protocol):
    """What is called: an op of a module, and the check of its calls."""

    name: str
    module: Callable[[], Module] | None

    def checked(self, tensors: tuple[object, ...], rest: tuple[object, ...]) -> Call:
        """The call, if its arguments fit together; an ArgumentError if not."""

    def several(self, tensors: tuple[object, ...], rest: tuple[object, ...], out: object) -> tuple[object, ...]:
        """The results of the call."""


class Symbol:
    """A tensor of which type and shape are known, and no values."""

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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocols that are asked for
            raise AttributeError(name)
        raise NoAttributeError(f"'{name}' is asked of {self._said}")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, **named: Any) -> Any:
        """Arithmetic with numpy's arrays and numbers; no other function of numpy."""
        name = _OPERATORS.get(ufunc.__name__, ufunc.__name__)
        if method != "__call__" or named or not hasattr(type(self), f"__{name}__"):
            raise CaptureError(f"numpy.{ufunc.__name__} is called with {self._said}")
        first, *rest = given
        own = isinstance(first, Symbol)
        return getattr(first, f"__{name}__")(*rest) if own else getattr(rest[0], f"__r{name}__")(first)

    def __array_function__(self, function: Callable[..., Any], *_: Any) -> Any:
        raise CaptureError(f"numpy.{function.__name__} is called with {self._said}")

    @property
    def _said(self) -> str:
        takes = "it takes generated functions" + (", and + - * / ** @" if hasattr(type(self), "__add__") else "")
        return f"a tensor of a function that is compiled ({self.dtype.name}{list(self.shape)}); {takes}"

    def _compared(self, other: object) -> Any:
        if not isinstance(other, Symbol | np.ndarray | np.generic | int | float):
            return NotImplemented
        raise CaptureError(f"a comparison is asked of {self._said}")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compared
    __hash__ = object.__hash__

    def _no_value(self, *_: object, **__: object) -> Any:
        given = f"{self.dtype.name}{list(self.shape)}"
        raise CaptureError(
            f"a function that is compiled asks for the values of a tensor ({given}); while it is captured only types "
            "and shapes are known, so it cannot choose by values or hand them to other libraries"
        )

    __array__ = __bool__ = __int__ = __float__ = __index__ = __iter__ = __getitem__ = __setitem__ = _no_value


_OPERATORS = {"subtract": "sub", "multiply": "mul", "divide": "truediv", "power": "pow", "negative": "neg"}
"""What Python calls functions of numpy that are its operators, where it is not the same."""


def symbol_among(values: Sequence[object]) -> Symbol | None:
    """The first symbol among values, if there is one."""
    return next((v for v in values if isinstance(v, Symbol)), None)


def stand_in(dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array of a type and shape that takes no memory, for checks of calls."""
    return np.broadcast_to(np.zeros((), dtype), shape)
