"""Memory that ends, or begins, at a page that nobody may touch."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import numpy.typing as npt

_PROTECT = ctypes.CDLL(None, use_errno=True).mprotect
_PROTECT.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """So many bytes between two protected pages: right before the second, or right after the first."""

    def __init__(self, size: int, at_end: bool) -> None:
        inner = -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._map = mmap.mmap(-1, inner + 2 * mmap.PAGESIZE)
        whole = np.frombuffer(self._map, np.uint8)
        start = mmap.PAGESIZE + (inner - size if at_end else 0)
        self.bytes: npt.NDArray[np.uint8] = whole[start : start + size]
        self.address = whole.ctypes.data + start
        for page in (0, inner + mmap.PAGESIZE):
            if _PROTECT(whole.ctypes.data + page, mmap.PAGESIZE, 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")
