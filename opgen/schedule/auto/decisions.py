"""What the scheduler decides, in the order in which it decides, so that a search may decide otherwise.

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
"""The options taken in the first decisions."""


@dataclass
class Decisions:
    path: Path = ()
    options: list[int] = field(default_factory=list)
    """How many options each decision had that was made so far."""
    thorough: bool = False
    """Whether all that there is to choose from is found out and told, though it takes time."""
    told: tuple[object, ...] = ()
    """What was chosen, and between what, once the kernel is scheduled, if that is to be told."""

    def choose(self, candidates: Sequence[T]) -> T:
        """One of the candidates, of which the first is the scheduler's own choice."""
        number, last = len(self.options), len(candidates) - 1
        self.options.append(len(candidates))
        return candidates[min(self.path[number], last) if number < len(self.path) else 0]

    def begin(self) -> int | None:
        """Begins a decision whether to do something; its number, or None if it is not to be done."""
        number = len(self.options)
        return number if self.choose((True, False)) else None

    def fail(self, number: int) -> None:
        """What was begun could not be done: there was nothing to decide, nor was there in the course of it."""
        self.options[number:] = [1] * (len(self.options) - number)

    def others(self) -> Iterator[Path]:
        """The paths that leave this one after its end, for another option of one decision."""
        for number in range(len(self.path), len(self.options)):
            before = (*self.path, *(0 for _ in range(number - len(self.path))))
            for option in range(1, self.options[number]):
                yield (*before, option)
