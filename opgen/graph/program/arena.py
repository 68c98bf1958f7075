"""Arenas for concurrent runs: kept between runs, taken and returned by machine code."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from opgen.graph.program import arena_ir
from opgen.graph.program.arena_ir import SLOT_WORDS, SLOTS
from opgen.locks import BUILD, Lock
from opgen.runtime import threads
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import AnyArray, empty_of
from opgen.runtime.native.library import Library, load_library

_BYTE = np.dtype(np.uint8)


@dataclass(frozen=True)
class ArenaCode:
    """The loaded code: `run` is the address of the function that runs a program."""

    run: int
    take: Callable[[int, int, int, int], int]
    give: Callable[[int, int], None]
    library: Library


@functools.cache
def arena_code() -> ArenaCode:
    """Return the code, built on a machine's first use."""
    with BUILD:
        names = (arena_ir.RUN, arena_ir.TAKE, arena_ir.GIVE)
        library = load_library(threads.object_code(arena_ir.IR), *names)
        take = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)(library.address(arena_ir.TAKE))
        give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address(arena_ir.GIVE))
        return ArenaCode(library.address(arena_ir.RUN), take, give, library)


class ArenaPool:
    """Arenas, free and in use: as many as there were runs at once, at most SLOTS."""

    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * (SLOTS * SLOT_WORDS))()
        self._arenas: dict[int, AnyArray] = {}
        self._lock = Lock()
        self._code = arena_code()

    @property
    def address(self) -> int:
        """Return the address of the slots."""
        return ctypes.addressof(self._words)

    @property
    def arenas(self) -> tuple[AnyArray, ...]:
        """Return the memory of all arenas."""
        return tuple(self._arenas.values())

    def take(self, size: int) -> int:
        """Return a slot with an arena of at least `size` bytes, new if none is free; -1 if all slots are in use.

        Raises MemoryError if memory does not suffice.
        """
        slot = self._code.take(self.address, 0, SLOTS, size)
        if slot >= 0:
            return slot
        with self._lock:
            slot = self._free_slot()
            if slot >= 0:
                try:
                    self._put(slot, size)
                except BaseException:
                    self.give(slot)
                    raise
            return slot

    def give(self, slot: int) -> None:
        """Return a slot to the pool."""
        self._code.give(self.address, slot)

    def grow(self, size: int) -> None:
        """Ensure that some arena, which may be in use, has `size` bytes."""
        slot = self.take(size)
        if slot >= 0:
            self.give(slot)

    def arena(self, slot: int) -> int:
        """Return the address of the arena in a slot that is in use."""
        return int(self._words[SLOT_WORDS * slot + 1])

    def trim(self, most: int) -> None:
        """Free unused arenas that are larger than any run needs."""
        with self._lock:
            for slot in range(SLOTS):
                if self._words[SLOT_WORDS * slot + 2] > most and self._take_one(slot):
                    self._put(slot, 0)
                    self.give(slot)

    def _free_slot(self) -> int:
        """Return a slot that is now taken: if possible, one whose arena is too small."""
        slots = sorted(range(SLOTS), key=lambda k: (self._words[SLOT_WORDS * k + 2] == 0, k))
        return next((slot for slot in slots if self._take_one(slot)), -1)

    def _take_one(self, slot: int) -> bool:
        return self._code.take(self.address, slot, slot + 1, 0) >= 0

    def _put(self, slot: int, size: int) -> None:
        """Replace the arena of a slot that is in use; remove it if `size` is 0."""
        at, length = SLOT_WORDS * slot + 1, SLOT_WORDS * slot + 2
        self._words[at], self._words[length] = 0, 0
        self._arenas.pop(slot, None)
        if size:
            arena = self._arenas[slot] = empty_of((size,), _BYTE)
            self._words[at], self._words[length] = address(arena), size
