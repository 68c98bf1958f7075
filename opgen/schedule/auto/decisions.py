"""Decisions of the scheduler, in the order in which it makes them, so that a search may decide otherwise.

A decision has options, the scheduler's own first.  A search names options for the first decisions; all later ones are
the scheduler's own.  So each schedule within reach has a path, and those nearest to the default one differ from it in
one decision: a limited discrepancy search (Harvey and Ginsberg, IJCAI 1995).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Path: TypeAlias = tuple[int, ...]
"""Options taken in the first decisions."""


@dataclass
class Decisions:
    path: Path = ()
    options: list[int] = field(default_factory=list)
    """The number of options of each decision so far."""
    thorough: bool = False
    """True if all choices are worked out and reported, though it takes time."""
    told: tuple[object, ...] = ()
    """The choices and their alternatives, once the kernel is scheduled, if they are to be reported."""

    def choose(self, candidates: Sequence[T]) -> T:
        """Return one of the candidates; the first is the scheduler's own choice."""
        number, last = len(self.options), len(candidates) - 1
        self.options.append(len(candidates))
        return candidates[min(self.path[number], last) if number < len(self.path) else 0]

    def begin(self) -> int | None:
        """Begin a decision on whether to do something; return its number, or None if it is not to be done."""
        number = len(self.options)
        return number if self.choose((True, False)) else None

    def fail(self, number: int) -> None:
        """Mark a decision that could not be carried out: it and those made since it had no alternatives."""
        self.options[number:] = [1] * (len(self.options) - number)

    def others(self) -> Iterator[Path]:
        """Yield the paths that differ from this one in one decision after its end."""
        for number in range(len(self.path), len(self.options)):
            before = (*self.path, *(0 for _ in range(number - len(self.path))))
            for option in range(1, self.options[number]):
                yield (*before, option)
