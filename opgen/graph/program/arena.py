"""Arenas for runs at the same time: kept between runs, taken and given back by machine code."""

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
    """The loaded code: `run` is the address of what runs a program."""

    run: int
    take: Callable[[int, int, int, int], int]
    give: Callable[[int, int], None]
    library: Library


@functools.cache
def arena_code() -> ArenaCode:
    """The code, built on a machine's first use."""
    with BUILD:
        names = (arena_ir.RUN, arena_ir.TAKE, arena_ir.GIVE)
        library = load_library(threads.object_code(arena_ir.IR), *names)
        take = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)(library.address(arena_ir.TAKE))
        give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address(arena_ir.GIVE))
        return ArenaCode(library.address(arena_ir.RUN), take, give, library)


class ArenaPool:
    """Arenas that no run is using, and those in use: as many as runs there were at once, SLOTS at most."""

    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * (SLOTS * SLOT_WORDS))()
        self._arenas: dict[int, AnyArray] = {}
        self._lock = Lock()
        self._code = arena_code()

    @property
    def address(self) -> int:
        """Where the slots are."""
        return ctypes.addressof(self._words)

    @property
    def arenas(self) -> tuple[AnyArray, ...]:
        """The memory of all arenas."""
        return tuple(self._arenas.values())

    def take(self, size: int) -> int:
        """A slot with an arena of at least so many bytes, new if none is free; -1 if all slots are taken.

        Raises MemoryError if there is no memory for it.
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
        """Give a slot back."""
        self._code.give(self.address, slot)

    def grow(self, size: int) -> None:
        """See to it that some arena, which may be in use, has so many bytes."""
        slot = self.take(size)
        if slot >= 0:
            self.give(slot)

    def arena(self, slot: int) -> int:
        """The address of the arena in a slot that is taken."""
        return int(self._words[SLOT_WORDS * slot + 1])

    def trim(self, most: int) -> None:
        """Let go of free arenas that are larger than any run needs."""
        with self._lock:
            for slot in range(SLOTS):
                if self._words[SLOT_WORDS * slot + 2] > most and self._take_one(slot):
                    self._put(slot, 0)
                    self.give(slot)

    def _free_slot(self) -> int:
        """A slot that is taken now: if there is one, one whose arena is too small."""
        slots = sorted(range(SLOTS), key=lambda k: (self._words[SLOT_WORDS * k + 2] == 0, k))
        return next((slot for slot in slots if self._take_one(slot)), -1)

    def _take_one(self, slot: int) -> bool:
        return self._code.take(self.address, slot, slot + 1, 0) >= 0

    def _put(self, slot: int, size: int) -> None:
        """Another arena for a slot that is taken; none if `size` is 0."""
        at, length = SLOT_WORDS * slot + 1, SLOT_WORDS * slot + 2
        self._words[at], self._words[length] = 0, 0
        self._arenas.pop(slot, None)
        if size:
            arena = self._arenas[slot] = empty_of((size,), _BYTE)
            self._words[at], self._words[length] = address(arena), size
