"""Places in one arena for memory that is needed at different times: best fit, the largest first.

What is needed at the same time never overlaps.  Each piece goes into the smallest gap, among those that are met at the
same time, into which it fits, else behind them.  Several orders are tried, and changed where the arena ends, and the
best is taken; where one reaches the bound there is no better.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from opgen.graph.plan.lives import Life, most_alive

_ORDERS: tuple[Callable[[Life], tuple[int, ...]], ...] = (
    lambda life: (-life.lines, life.first),
    lambda life: (-life.lines * (life.last - life.first + 1), life.first),
    lambda life: (life.first, -life.lines),
    lambda life: (life.first - life.last, -life.lines),
)
"""Largest first, largest in bytes times steps, as they are made, longest-lived first."""

ROUNDS = 12
"""How often each order is changed at most."""

PAIRS = 1 << 23
"""Of pieces that are looked at for orders that are changed."""


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
    for tried in _tries(lives):
        if least is None or tried.bytes < least:
            best, least = tried.place, tried.bytes
        if least == bound:
            break
    return Offsets(best, least or 0, bound)


@dataclass(frozen=True)
class _Tried:
    place: dict[Hashable, int]
    bytes: int
    last: int
    """The position, in the order in which they were placed, of a piece that ends where the arena does."""


def _tries(lives: Sequence[Life]) -> Iterator[_Tried]:
    """Each order; then, from each, orders in which the piece that ended last is placed earlier, and so on."""
    orders = [sorted(lives, key=order) for order in _ORDERS]
    tried = [_try(order) for order in orders]
    yield from tried
    rounds = min(ROUNDS, PAIRS // (len(orders) * max(1, len(lives)) ** 2)) if lives else 0
    for order, first in zip(orders, tried, strict=True):
        last = first.last
        for _ in range(rounds):
            order.insert(last // 2, order.pop(last))
            changed = _try(order)
            yield changed
            last = changed.last


def _try(order: Sequence[Life]) -> _Tried:
    place = _placed(order)
    ends = [place[life.owner] + life.lines for life in order]
    size = max(ends, default=0)
    return _Tried(place, size, ends.index(size) if ends else 0)


def _placed(lives: Sequence[Life]) -> dict[Hashable, int]:
    placed: list[tuple[int, int, int, int]] = []
    place: dict[Hashable, int] = {}
    for life in lives:
        first, last, lines = life.first, life.last, life.lines
        there = sorted([(at, size) for start, end, at, size in placed if start <= last and first <= end])
        at = place[life.owner] = _fit(lines, there)
        placed.append((first, last, at, lines))
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
