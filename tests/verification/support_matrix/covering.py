"""Covering arrays: few rows in which every pair of values of two factors stands together."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence

Row = dict[str, int]
"""For each factor the number of its value."""
Pair = tuple[str, int, str, int]
"""Two factors and the numbers of their values."""


def covering(factors: Mapping[str, Sequence[object]], choose: random.Random, most: int) -> list[dict[str, object]]:
    """Rows of values of all factors, at most `most`, greedily made: each begins with a pair that no row has so far."""
    names = list(factors)
    missing: dict[Pair, None] = {
        (a, i, b, j): None
        for a, b in itertools.combinations(names, 2)
        for i in range(len(factors[a]))
        for j in range(len(factors[b]))
    }
    rows: list[Row] = []
    if len(names) == 1:
        rows = [{names[0]: i} for i in range(len(factors[names[0]]))]
    while missing and len(rows) < most:
        a, i, b, j = choose.choice(list(itertools.islice(missing, 64)))
        row = {a: i, b: j}
        rest = [n for n in names if n not in row]
        choose.shuffle(rest)
        for name in rest:
            row[name] = _best(name, len(factors[name]), row, missing, names, choose)
        for pair in _pairs(row, names):
            missing.pop(pair, None)
        rows.append(row)
    return [{n: factors[n][row[n]] for n in names} for row in rows[:most]]


def _best(
    name: str, count: int, row: Row, missing: Mapping[Pair, None], names: list[str], choose: random.Random
) -> int:
    """The value that covers most pairs with what the row has."""
    order = list(range(count))
    choose.shuffle(order)
    place = names.index(name)

    def gain(value: int) -> int:
        found = 0
        for other, chosen in row.items():
            key = (name, value, other, chosen) if place < names.index(other) else (other, chosen, name, value)
            found += key in missing
        return found

    return max(order, key=gain)


def _pairs(row: Row, names: list[str]) -> list[Pair]:
    return [(a, row[a], b, row[b]) for a, b in itertools.combinations(names, 2)]
