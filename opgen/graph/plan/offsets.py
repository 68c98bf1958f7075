"""Places in one arena for memory that is needed at different times: best fit, the largest first.

What is needed at the same time never overlaps.  Each piece goes into the smallest gap, among those that are met at the
same time, into which it fits, else behind them.  Several orders are tried and the best is taken; where one reaches the
bound there is no better.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from opgen.graph.plan.lives import Life, most_alive

_ORDERS: tuple[Callable[[Life], tuple[int, ...]], ...] = (
    lambda life: (-life.lines, life.first),
    lambda life: (-life.lines * (life.last - life.first + 1), life.first),
    lambda life: (life.first, -life.lines),
    lambda life: (life.first - life.last, -life.lines),
)
"""Largest first, largest in bytes times steps, as they are made, longest-lived first."""


@dataclass(frozen=True)
class Offsets:
    """Where each piece begins, the bytes of the arena, and the `bound`: the most that is needed at once."""

    place: Mapping[Hashable, int]
    bytes: int
    bound: int


def offsets(lives: Sequence[Life]) -> Offsets:
    """Places for pieces whose owners differ."""
    bound = most_alive(lives)
    best: dict[Hashable, int] = {}
    least: int | None = None
    for order in _ORDERS:
        place = _placed(sorted(lives, key=order))
        size = max((place[life.owner] + life.lines for life in lives), default=0)
        if least is None or size < least:
            best, least = place, size
        if least == bound:
            break
    return Offsets(best, least or 0, bound)


def _placed(lives: Sequence[Life]) -> dict[Hashable, int]:
    placed: list[tuple[int, Life]] = []
    place: dict[Hashable, int] = {}
    for life in lives:
        there = sorted((at, other.lines) for at, other in placed if other.meets(life))
        place[life.owner] = _fit(life.lines, there)
        placed.append((place[life.owner], life))
    return place


def _fit(size: int, there: Sequence[tuple[int, int]]) -> int:
    """The beginning of the smallest gap between taken stretches (in order) that has room, else of what is behind."""
    end, best, least = 0, None, None
    for at, length in there:
        gap = at - end
        if gap >= size and (least is None or gap < least):
            best, least = end, gap
        end = max(end, at + length)
    return end if best is None else best
