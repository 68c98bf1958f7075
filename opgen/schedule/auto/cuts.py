"""Loops in tiles: their sizes, and where their border begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isqrt

from opgen.schedule.auto.plan import Cut, Handle
from opgen.schedule.cost.calibration import RAGGED
from opgen.schedule.split import Tail


@dataclass(frozen=True)
class Tiles:
    """A loop of `extent` iterations in tiles of `size`."""

    extent: int
    size: int

    def cut(self, loop: Handle) -> Cut:
        """Return the loop's cut for a plan."""
        return Cut(loop, self.size, f"{loop}.o", f"{loop}.i", self.tail)

    @property
    def tail(self) -> Tail:
        return "exact" if self.extent % self.size == 0 else "guard"

    @property
    def count(self) -> int:
        return -(-self.extent // self.size)

    @property
    def waste(self) -> float:
        """Return the cost factor of tiles that do not divide: idle arithmetic units, and bodies of their own."""
        return 1.0 if self.tail == "exact" else RAGGED * self.count * self.size / self.extent

    def border(self, reach: int) -> tuple[int, ...]:
        """Return the cuts that peel the tiles from which `reach` further iterations lead out of the loop."""
        if self.count == 1:
            return ()
        first = -(-reach // self.size)
        last = -(-(reach + self.count * self.size - self.extent) // self.size)
        if first + last >= self.count:
            return (1,) if self.count == 2 else (1, -1)
        return tuple(cut for cut in (first, -last) if cut)


def tails_of(extent: int | None, size: int) -> tuple[Tail, ...]:
    """Return the possible forms of a loop's last tile, the best first."""
    if extent is None:
        return ("guard",)
    return ("exact",) if extent % size == 0 else ("overlap", "guard")


def sizes(extent: int, unit: int, most: int) -> Iterable[int]:
    """Return tile sizes worth trying: multiples of `unit` that divide the extent, or all if only small ones do."""
    choices = [unit * i for i in range(1, most + 1) if unit * i < extent + unit]
    exact = [n for n in choices if extent % n == 0]
    return exact if exact and 2 * exact[-1] > choices[-1] else choices


def divisors(n: int) -> list[int]:
    """Return the divisors of `n`, smallest first."""
    low = [d for d in range(1, isqrt(n) + 1) if n % d == 0]
    return low + [n // d for d in reversed(low) if d * d != n]
