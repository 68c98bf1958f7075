"""Values as error messages show them: short, on one line, and without running code of theirs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_ITEMS = 16
_LENGTH = 60


def describe(value: object, depth: int = 3) -> str:
    """A value in a few words: literals as Python writes them, arrays by type and shape, other objects by their
    class.
    """
    if value is None or type(value) in (bool, int, float, str, bytes):
        return _shortened(repr(value))
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return repr(value.item())
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and value.size <= _ITEMS and value.dtype.kind in "biuf":
            return describe(value.tolist())
        return tensor(value)
    if isinstance(value, list | tuple):
        return _items(value, depth)
    return f"an object of type {type(value).__name__}"


def tensor(value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    """An array's type and shape: `float32[1, 4, 5, 2]`."""
    return f"{value.dtype.name}{list(value.shape)}"


def _items(value: Sequence[object], depth: int) -> str:
    if depth == 0:
        return "[...]"
    shown = [describe(v, depth - 1) for v in value[:_ITEMS]]
    return f"[{', '.join(shown + ['...'] * (len(value) > _ITEMS))}]"


def _shortened(text: str) -> str:
    return text if len(text) <= _LENGTH else text[: _LENGTH - 3] + "..."
