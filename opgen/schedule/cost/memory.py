"""At what rate bytes come to a core, and what of them is found near when it is used again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from opgen.machine import Cache, Machine
from opgen.schedule.cost.calibration import FOUND
from opgen.schedule.cost.traffic import Region

Level: TypeAlias = Literal[1, 2, 3]


class Shares(NamedTuple):
    """The share of each cache that what is used together may fill to be found there; 0: it is never looked for."""

    first: float
    second: float
    last: float


ANYTHING = Shares(FOUND, FOUND, FOUND)
"""What is used together, among other things."""


@dataclass(frozen=True)
class Memory:
    """The levels of memory of a machine as one core sees them; sizes are bytes, rates bytes a second."""

    machine: Machine
    shares: Shares = ANYTHING

    def cache(self, level: Level) -> Cache:
        """One of the caches."""
        return (self.machine.l1, self.machine.l2, self.machine.l3)[level - 1]

    def usable(self, level: Level, share: float | None = None) -> float:
        """The bytes of a cache that what is used together can count on: its share, or the one given."""
        return (self.shares[level - 1] if share is None else share) * self.cache(level).size

    def holds(self, size: float, level: Level, share: float | None = None) -> bool:
        """Whether a cache keeps so many bytes that are used together: within its share, or the one given."""
        return size <= self.usable(level, share)

    def is_far(self, size: float) -> bool:
        """Whether so many bytes come from memory, or nearly at its rate: the last cache does not keep them."""
        return not self.holds(size, 3)

    def rate(self, size: float) -> float:
        """The rate at which so many bytes come that were used together not long ago: of the nearest cache that keeps
        them, or of memory.
        """
        levels: tuple[Level, ...] = (1, 2, 3)
        near = next((level for level in levels if self.holds(size, level)), None)
        return self.machine.memory_bytes_per_second if near is None else self.cache(near).bytes_per_second

    def seconds(self, size: float) -> float:
        """The time for reading so many bytes once."""
        return size / self.rate(size)

    def fits(self, region: Region, level: Level) -> bool:
        """Whether the lines of a region find sets enough in a cache: those in few sets evict each other."""
        return region.fits(self.cache(level))
