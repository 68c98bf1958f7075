"""Lifetimes of memory in steps, and the least that any plan needs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import accumulate

ALIGNMENT = 64
"""Alignment of everything in an arena, in bytes: a cache line, and the widest vector."""


@dataclass(frozen=True, slots=True)
class Life:
    """Bytes that a value or a kernel needs from step `first` to step `last`, both included."""

    owner: Hashable
    size: int
    first: int
    last: int

    @property
    def lines(self) -> int:
        """Return the bytes that it takes in an arena: whole lines."""
        return whole_lines(self.size)


def whole_lines(size: int) -> int:
    """Return bytes rounded up to whole lines."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def most_alive(lives: Iterable[Life]) -> int:
    """Return the largest sum, over all steps, of the bytes that are needed at once: no plan needs fewer."""
    changes: dict[int, int] = {}
    for life in lives:
        changes[life.first] = changes.get(life.first, 0) + life.lines
        changes[life.last + 1] = changes.get(life.last + 1, 0) - life.lines
    return max(accumulate(changes[step] for step in sorted(changes)), default=0)
