"""Values as error messages show them: short, on one line, and without running code of theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

_LENGTH = 80
_ITEMS = 1 + _LENGTH // 3


def describe(value: object) -> str:
    """Return a short description: literals and lists as in Python, arrays by type and shape, others by class."""
    text = _text(value, 4)
    return text if len(text) <= _LENGTH else text[: _LENGTH - 3] + "..."


class HasTypeAndShape(Protocol):
    """An array, in any memory."""

    @property
    def dtype(self) -> np.dtype[np.generic]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


def tensor(value: HasTypeAndShape) -> str:
    """Return an array's type and shape: `float32[1, 4, 5, 2]`."""
    return f"{value.dtype.name}{list(value.shape)}"


def _text(value: object, depth: int) -> str:
    if value is None or type(value) in (bool, int, float, str, bytes):
        return _literal(value)
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return repr(value.item())
    if isinstance(value, np.ndarray):
        short = value.ndim == 1 and value.size <= _ITEMS and value.dtype.kind in "biuf"
        return _text(value.tolist(), depth) if short else tensor(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_items(value, depth))}]"
    return f"an object of type {type(value).__name__}"


def _literal(value: object) -> str:
    """Return a literal's text; a very long one is cut first, since `repr` of a huge integer is slow, or refused."""
    if isinstance(value, str | bytes):
        return repr(value[: _LENGTH + 1])
    if isinstance(value, int) and value.bit_length() > 4 * _LENGTH:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def _items(value: Sequence[object], depth: int) -> Iterator[str]:
    """Yield the texts of the elements; elements that do not fit are not read."""
    if depth == 0:
        yield "..."
        return
    for v in value[: _ITEMS + 1]:
        yield _text(v, depth - 1)
