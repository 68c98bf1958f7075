"""Addresses of arrays' elements in memory, found quickly.

`ndarray.ctypes.data` takes about a microsecond, several times the total cost of a small call.  CPython keeps the
pointer to the elements directly behind an object's header (numpy's C interface fixes that place).  Reading that word is
the fast way; it is used only if a test on a few arrays shows that it is right.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

_word_at = ctypes.c_size_t.from_address
_HEADER = object.__basicsize__


def _slow_address(array: npt.NDArray[np.generic]) -> int:
    """Return the address of an array's first element."""
    return array.ctypes.data


def _fast_address(array: npt.NDArray[np.generic]) -> int:
    """Return the address of an array's first element."""
    return _word_at(id(array) + _HEADER).value


def _fast_is_right() -> bool:
    if platform.python_implementation() != "CPython":
        return False
    whole = np.arange(24.0).reshape(2, 3, 4)
    samples = (whole, whole[1], whole[:, ::-1], whole[1:, 2:, 3], np.empty((0, 3)), np.array(1, np.int8))
    return all(_fast_address(a) == _slow_address(a) for a in samples)


address: Callable[[npt.NDArray[np.generic]], int] = _fast_address if _fast_is_right() else _slow_address
