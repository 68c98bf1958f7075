"""Places in one arena for memory that is needed at different times: best fit, the largest first.

Pieces that are needed at the same time never overlap.  Each piece goes into the smallest gap that fits among the pieces
that are alive at the same time, else behind them.  Several orders are tried, each also changed at the piece that ends
the arena, and the best is taken.  The search ends when one reaches the lower bound.
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
"""Maximum number of changes of each order."""

PAIRS = 1 << 23
"""Maximum number of pairs of pieces compared for changed orders."""


@dataclass(frozen=True)
class Offsets:
    """Offsets of pieces, the bytes of the arena, and the `bound`: the most that is needed at once."""

    place: Mapping[Hashable, int]
    bytes: int
    bound: int


def offsets(lives: Sequence[Life]) -> Offsets:
    """Return places for pieces whose owners differ."""
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
    """Yield each order; then, from each, orders in which the piece that ended last is placed earlier, and so on."""
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
    """Return the start of the smallest gap that fits between occupied stretches (in order), or the end of the last."""
    end, best, least = 0, None, None
    for at, length in there:
        gap = at - end
        if gap >= size and (least is None or gap < least):
            best, least = end, gap
        end = max(end, at + length)
    return end if best is None else best
