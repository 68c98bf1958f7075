"""Bandwidth of each level of memory, and the data that a cache still holds when it is used again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from opgen.machine import Cache, Machine
from opgen.schedule.cost.calibration import FOUND
from opgen.schedule.cost.traffic import Region

Level: TypeAlias = Literal[1, 2, 3]


class Shares(NamedTuple):
    """Share of each cache that data used together may fill and still hit; with 0 the cache is never a hit."""

    first: float
    second: float
    last: float


ANYTHING = Shares(FOUND, FOUND, FOUND)
"""Shares for data that is used together, among other data."""


@dataclass(frozen=True)
class Memory:
    """Levels of memory of a machine as one core sees them; sizes are bytes, rates bytes a second."""

    machine: Machine
    shares: Shares = ANYTHING

    def cache(self, level: Level) -> Cache:
        """Return the cache of a level."""
        return (self.machine.l1, self.machine.l2, self.machine.l3)[level - 1]

    def usable(self, level: Level, share: float | None = None) -> float:
        """Return the bytes of a cache that data used together can count on: its share, or the given one."""
        return (self.shares[level - 1] if share is None else share) * self.cache(level).size

    def holds(self, size: float, level: Level, share: float | None = None) -> bool:
        """Return True if a cache keeps `size` bytes that are used together: within its share, or the given one."""
        return size <= self.usable(level, share)

    def is_far(self, size: float) -> bool:
        """Return True if `size` bytes come from memory, or nearly at its rate: the last cache does not keep them."""
        return not self.holds(size, 3)

    def rate(self, size: float) -> float:
        """Return the bandwidth for `size` bytes that were recently used together.

        It is that of the nearest cache that keeps them, or of memory.
        """
        levels: tuple[Level, ...] = (1, 2, 3)
        near = next((level for level in levels if self.holds(size, level)), None)
        return self.machine.memory_bytes_per_second if near is None else self.cache(near).bytes_per_second

    def seconds(self, size: float) -> float:
        """Return the time for reading `size` bytes once."""
        return size / self.rate(size)

    def fits(self, region: Region, level: Level) -> bool:
        """Return True if a cache has enough sets for the lines of a region: lines in few sets evict each other."""
        return region.fits(self.cache(level))
