"""Places in an arena: nothing that is needed at the same time overlaps, and little is lost."""

from __future__ import annotations

import random

import pytest

from opgen.graph.plan.lives import ALIGNMENT, Life, most_alive, whole_lines
from opgen.graph.plan.offsets import offsets

SEED = 23


def drawn(rng: random.Random) -> list[Life]:
    """Pieces of a chain with branches: most live a few steps, some long."""
    found = []
    for k in range(rng.randint(0, 40)):
        first = rng.randint(0, 30)
        last = first + (rng.randint(0, 3) if rng.random() < 0.8 else rng.randint(0, 30))
        found.append(Life(k, rng.choice([1, 64, 100, 4096, 4097, 70000]), first, last))
    return found


@pytest.mark.parametrize("number", range(200))
def test_random_lives(number: int) -> None:
    print(f"seed {SEED}, number {number}")
    lives = drawn(random.Random(SEED * 1000 + number))
    found = offsets(lives)
    assert set(found.place) == {x.owner for x in lives}
    for k, a in enumerate(lives):
        start = found.place[a.owner]
        assert start % ALIGNMENT == 0
        assert 0 <= start <= found.bytes - a.lines
        for other in lives[:k]:
            apart = start + a.lines <= found.place[other.owner] or found.place[other.owner] + other.lines <= start
            assert apart or a.last < other.first or other.last < a.first, f"{a} and {other} overlap"
    assert found.bound == most_alive(lives) <= found.bytes <= 1.01 * found.bound


def test_the_bound_is_the_most_at_one_step() -> None:
    lives = [Life("a", 100, 0, 1), Life("b", 64, 1, 2), Life("c", 1, 2, 2), Life("d", 0, 1, 1)]
    by_hand = max(sum(x.lines for x in lives if x.first <= step <= x.last) for step in range(3))
    assert most_alive(lives) == by_hand == 128 + 64
    assert most_alive([]) == 0
    assert whole_lines(65) == 128


def test_a_chain_needs_two_places() -> None:
    found = offsets([Life(k, 1000, k, k + 1) for k in range(10)])
    assert found.bytes == found.bound == 2 * whole_lines(1000)
