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
    names: list[str] = field(default_factory=list)
    """What each of them was about."""
    thorough: bool = False
    """Whether all that there is to choose from is found out and told, though it takes time."""
    _told: list[object] = field(default_factory=list)

    def choose(self, candidates: Sequence[T], name: str = "a tile") -> T:
        """One of the candidates, of which the first is the scheduler's own choice."""
        return candidates[self._taken(self._next(len(candidates), name), len(candidates))]

    def begin(self, name: str = "another way") -> int | None:
        """Begins a decision whether to do something; its number, or None if it is not to be done."""
        number = self._next(2, name)
        return None if self._taken(number, 2) else number

    def fail(self, number: int) -> None:
        """What was begun could not be done: there was nothing to decide, nor was there in the course of it."""
        self.options[number:] = [1] * (len(self.options) - number)

    def take_back(self, number: int) -> None:
        """Decisions from that number on are made again."""
        del self.options[number:], self.names[number:]

    def others(self) -> Iterator[Path]:
        """The paths that leave this one after its end, for another option of one decision."""
        for number in range(len(self.path), len(self.options)):
            before = (*self.path, *(0 for _ in range(number - len(self.path))))
            for option in range(1, self.options[number]):
                yield (*before, option)

    # What is told ----------------------------------------------------------------------------------------

    @property
    def told(self) -> tuple[object, ...]:
        """What was decided, and between what, if that is to be told."""
        return tuple(self._told)

    def tell(self, choice: object) -> None:
        """Remember a choice, if all is to be told."""
        if self.thorough:
            self._told.append(choice)

    def forget(self, first: int) -> None:
        """Forget what was told but for the first choices: it came to nothing."""
        del self._told[first:]

    def _next(self, options: int, name: str) -> int:
        self.options.append(options)
        self.names.append(name)
        return len(self.options) - 1

    def _taken(self, number: int, options: int) -> int:
        return min(self.path[number], options - 1) if number < len(self.path) else 0
