"""Large blocks of memory, kept for later results once nobody uses them.

The C library asks the system for each block of 32 MiB or more and gives it back at once, so that all pages of a result
would be made and cleared anew for every call: longer than many a kernel takes.  Smaller ones it keeps, if it has learnt
to.
"""

from __future__ import annotations

import functools
import weakref
from ctypes import Array, c_char

import numpy as np
import numpy.typing as npt

from opgen.runtime.memory.temporaries_ir import LARGE as LARGE

KEPT = 256 << 20
"""Most bytes of blocks that nobody uses."""
SLACK = 1.25
"""A block may be so much larger than what is asked for."""

_Memory = npt.NDArray[np.uint8]

_free: dict[int, _Memory] = {}
"""Blocks that nobody uses, by their identity, the oldest first.  No lock guards it, as collecting garbage may give a
block back at any place: each step on it is a single one of the interpreter's.
"""


@functools.cache
def teach() -> None:
    """Once a process: let the C library keep what kernels and results give back, up to the size of large blocks.

    glibc goes by the largest block that was given back so far (mallopt(3), M_MMAP_THRESHOLD, unless somebody has set
    it): a process that never had a large one returns the end of its heap to the system, only to ask for it again.
    Nothing is read or written of this one, so no page of it is ever made.
    """
    np.empty(LARGE - (1 << 20), np.uint8)


def block(size: int) -> Array[c_char]:
    """At least `size` bytes, contents undefined: kept as long as anything refers to it, then free for the next call."""
    memory = _taken(size)
    if memory is None:
        memory = _new(size)
    owner: Array[c_char] = (c_char * memory.nbytes).from_buffer(memory.data)
    weakref.finalize(owner, _give_back, memory).atexit = False
    return owner


def _taken(size: int) -> _Memory | None:
    for key in list(_free):  # not of its items: making a pair may collect garbage, and a block comes back meanwhile
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
    if memory.nbytes > KEPT:  # would put out all others, and not stay either
        return
    _free[id(memory)] = memory
    for key in list(_free):
        if sum(m.nbytes for m in list(_free.values())) <= KEPT:
            break
        _free.pop(key, None)
