"""Large blocks of memory, kept for later results once nobody uses them.

The C library requests each block of 32 MiB or more from the system and returns it at once.  So all pages of a result
would be mapped and cleared again for every call, which takes longer than many kernels.  It keeps smaller blocks, if its
threshold has adapted (`teach`).
"""

from __future__ import annotations

import functools
import weakref
from ctypes import Array, c_char

import numpy as np
import numpy.typing as npt

from opgen.runtime.memory.temporaries_ir import LARGE as LARGE

KEPT = 256 << 20
"""The most bytes of unused blocks."""
SLACK = 1.25
"""Largest ratio of a block's size to the requested one."""

_Memory = npt.NDArray[np.uint8]

_free: dict[int, _Memory] = {}
"""Unused blocks by their identity, the oldest first.

No lock guards it, as garbage collection may return a block at any point: each step on it is a single one of the
interpreter's.
"""


@functools.cache
def teach() -> None:
    """Let the C library keep freed memory of kernels and results, up to the size of large blocks; once a process.

    glibc adapts its threshold to the largest block freed so far (mallopt(3), M_MMAP_THRESHOLD, unless somebody has set
    it).  A process that never had a large one returns the end of its heap to the system, only to request it again.
    This block is never read or written, so none of its pages is ever mapped.
    """
    np.empty(LARGE - (1 << 20), np.uint8)


def block(size: int) -> Array[c_char]:
    """Return at least `size` bytes, contents undefined; freed for the next call when nothing refers to them."""
    memory = _taken(size)
    if memory is None:
        memory = _new(size)
    owner: Array[c_char] = (c_char * memory.nbytes).from_buffer(memory.data)
    weakref.finalize(owner, _give_back, memory).atexit = False
    return owner


def _taken(size: int) -> _Memory | None:
    for key in list(_free):  # not its items: making a pair may collect garbage, which returns blocks
        memory = _free.get(key)
        if memory is not None and size <= memory.nbytes <= SLACK * size and _free.pop(key, None) is not None:
            return memory
    return None


def _new(size: int) -> _Memory:
    try:
        return np.empty(size, np.uint8)
    except MemoryError:
        _free.clear()
        return np.empty(size, np.uint8)


def _give_back(memory: _Memory) -> None:
    if memory.nbytes > KEPT:  # it would evict all others, and not stay either
        return
    _free[id(memory)] = memory
    for key in list(_free):
        if sum(m.nbytes for m in list(_free.values())) <= KEPT:
            break
        _free.pop(key, None)
