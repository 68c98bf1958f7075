"""Arrays that end (or begin) at a page that must not be touched."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
from numpy.typing import DTypeLike, NDArray

_PROTECT = ctypes.CDLL(None, use_errno=True).mprotect
_PROTECT.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PROTECT.restype = ctypes.c_int
_NO_ACCESS = 0


class Guarded:
    """`count` elements between two protected pages: directly before the second, or directly after the first."""

    def __init__(self, count: int, dtype: DTypeLike, *, at_end: bool = True) -> None:
        size = np.dtype(dtype).itemsize * count
        inner = -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._map = mmap.mmap(-1, inner + 2 * mmap.PAGESIZE)
        whole = np.frombuffer(self._map, np.uint8)
        whole[:] = 0xA5
        start = mmap.PAGESIZE + (inner - size if at_end else 0)
        self.array: NDArray = whole[start : start + size].view(dtype)
        for page in (0, inner + mmap.PAGESIZE):
            address = whole.ctypes.data + page
            assert _PROTECT(address, mmap.PAGESIZE, _NO_ACCESS) == 0
