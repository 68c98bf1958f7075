"""From which step to which step memory is needed, and the least that any plan can do with."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import accumulate

ALIGNMENT = 64
"""Of everything in an arena, in bytes: a cache line, and the widest vector."""


@dataclass(frozen=True, slots=True)
class Life:
    """Bytes that are needed from step `first` to step `last`, both included, by a value or a kernel."""

    owner: Hashable
    size: int
    first: int
    last: int

    @property
    def lines(self) -> int:
        """The bytes it takes in an arena: whole lines."""
        return whole_lines(self.size)


def whole_lines(size: int) -> int:
    """Bytes, rounded up to whole lines."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def most_alive(lives: Iterable[Life]) -> int:
    """The largest sum, over all steps, of the bytes that are needed at once: no plan needs fewer."""
    changes: dict[int, int] = {}
    for life in lives:
        changes[life.first] = changes.get(life.first, 0) + life.lines
        changes[life.last + 1] = changes.get(life.last + 1, 0) - life.lines
    return max(accumulate(changes[step] for step in sorted(changes)), default=0)
