"""Arrays between protected pages: a kernel that reads or writes past an end dies at once instead of passing by luck."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[np.generic]
Side = Literal["end", "start"]

_NONE, _READ = 0, 1
_CANARY = 0x5C


def _protect(address: int, size: int, protection: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    library.mprotect.restype = ctypes.c_int
    if library.mprotect(address, size, protection) != 0:
        raise OSError(ctypes.get_errno(), "mprotect failed")


@dataclass(frozen=True, eq=False)
class GuardedArray:
    """An array that touches a protected page at one side, and the filled slack at its other."""

    array: AnyArray
    slack: npt.NDArray[np.uint8]

    def damaged(self) -> bool:
        """Return True if something was written beside the array, on the side without a protected page."""
        return bool((self.slack != _CANARY).any())


def guarded_empty(shape: tuple[int, ...], dtype: np.dtype[np.generic], side: Side = "end") -> GuardedArray:
    """Return an array, contents undefined, that ends exactly at a protected page (or starts just behind one).

    The memory has a protected page at both ends; `side` says which of them the array touches.  An array that ends at a
    page is aligned to its elements only.
    """
    page = mmap.PAGESIZE
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    room = max(page, -(-size // page) * page)
    memory = mmap.mmap(-1, room + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    whole = np.frombuffer(memory, np.uint8)
    start = whole.ctypes.data
    whole[page : page + room] = _CANARY
    _protect(start, page, _NONE)
    _protect(start + page + room, page, _NONE)
    first = page + room - size if side == "end" else page
    array: AnyArray = np.ndarray(shape, dtype, memory, first)
    slack = whole[page:first] if side == "end" else whole[first + size : page + room]
    return GuardedArray(array, slack)


def guarded_copy(source: AnyArray, side: Side = "end", read_only: bool = False) -> GuardedArray:
    """Return a copy of an array between protected pages; `read_only` also protects the copy from writes."""
    guarded = guarded_empty(source.shape, source.dtype, side)
    guarded.array[...] = source
    if read_only and source.size:
        page = mmap.PAGESIZE
        first = guarded.array.ctypes.data // page * page
        last = guarded.array.ctypes.data + guarded.array.nbytes
        _protect(first, -(-(last - first) // page) * page, _READ)
        guarded.array.flags.writeable = False
    return guarded
