"""Calls that are not run: a generated function that receives a symbol for a tensor hands its call to the symbol.

Python functions of such calls are captured in this way (`opgen.graph.build.capture`).
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
    """A captured function uses a symbol in a way that only a tensor with values supports."""


def counted(count: object, op: str, size: str) -> int:
    """Return a size that was computed from elements.  Raises CaptureError if it is unknown during capture."""
    if isinstance(count, Symbol):
        raise CaptureError(
            f"{op}: the size '{size}' follows from elements, which are known only when the function runs"
        )
    return int(np.asarray(count))


class NoAttributeError(CaptureError, AttributeError):
    """A symbol lacks an attribute that arrays have."""


class Callee(Protocol):
    """The called object: an op of a module, and the check of its calls."""

    name: str
    module: Callable[[], Module] | None

    def checked(self, tensors: tuple[object, ...], rest: tuple[object, ...]) -> Call:
        """Return the call, if its arguments are consistent.  Raises ArgumentError if not."""

    def several(self, tensors: tuple[object, ...], rest: tuple[object, ...], out: object) -> tuple[object, ...]:
        """Return the results of the call."""


class Symbol:
    """A tensor with a known type and shape, and without values."""

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.dtype = dtype
        self.shape = shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=object))

    def called(
        self, callee: Callee, tensors: tuple[object, ...], rest: tuple[object, ...], out: object
    ) -> tuple[Symbol, ...]:
        """Take a call in which the symbol, and perhaps others, replace tensors; return symbols for its results."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<a symbol for {self.dtype.name}{list(self.shape)}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a symbol without dimensions has no length")
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocols that libraries look up
            raise AttributeError(name)
        raise NoAttributeError(f"'{name}' is asked of {self._said}")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, **named: Any) -> Any:
        """Apply arithmetic with numpy's arrays and numbers; other functions of numpy are refused."""
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
"""Python's names of the numpy functions that are its operators, where they differ."""


def symbol_among(values: Sequence[object]) -> Symbol | None:
    """Return the first symbol among values, or None."""
    return next((v for v in values if isinstance(v, Symbol)), None)


def stand_in(dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an array of a type and shape that takes no memory, for checks of calls."""
    return np.broadcast_to(np.zeros((), dtype), shape)
