"""Indices by steps: what is said to differ between iterations does, and the usual cases are seen."""

from __future__ import annotations

import random
from itertools import product

import pytest

from opgen.dtypes import INT64
from opgen.loop import build as b
from opgen.loop.analysis.steps import Ranges, steps_apart
from opgen.loop.nodes import Expr, Load
from tests.loop.oracle import value

LOOP, K = b.var("i"), b.var("k")
INSIDE: Ranges = {"k": (0, 15), "l": (-2, 3), "unknown": None}


def at(step: int, *more: Expr | int) -> Expr:
    result = b.mul(LOOP, step)
    for e in more:
        result = b.add(result, e)
    return result


APART: list[list[Expr]] = [
    [at(1)],
    [at(16, K)],
    [at(-16, K, b.var("outside"))],
    [at(16, n) for n in range(16)],
    [at(6, b.var("l"))],
    [at(16, b.floordiv(b.var("outside"), 3), K), at(16, b.floordiv(b.var("outside"), 3), 7)],
]


@pytest.mark.parametrize("indices", APART)
def test_steps_that_are_wide_enough(indices: list[Expr]) -> None:
    assert steps_apart("i", [(e, INSIDE) for e in indices])


TOGETHER: list[list[Expr]] = [
    [b.index(3)],
    [at(15, K)],
    [at(16, K), at(16, 16)],
    [at(16), at(8)],
    [at(16), at(16, b.var("outside"))],
    [at(16, b.var("unknown"))],
    [at(16, b.mul(K, b.var("outside")))],
    [b.floordiv(LOOP, 2)],
    [at(16, b.floordiv(LOOP, 2))],
    [at(16, Load("t", (LOOP,), INT64))],
]


@pytest.mark.parametrize("indices", TOGETHER)
def test_steps_that_are_not(indices: list[Expr]) -> None:
    assert not steps_apart("i", [(e, INSIDE) for e in indices])


@pytest.mark.parametrize("seed", range(20))
def test_what_is_said_to_differ_differs(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in range(50):
        low, high = (rng.randint(-3, 0) for _ in range(2)), (rng.randint(0, 3) for _ in range(2))
        inside: Ranges = dict(zip("kl", zip(low, high, strict=True), strict=True))
        step = rng.randint(-12, 12)
        indices = [
            at(step, b.mul(K, rng.randint(-2, 2)), b.mul(b.var("l"), rng.randint(-2, 2)), rng.randint(0, 4))
            for _ in range(rng.randint(1, 3))
        ]
        if not steps_apart("i", [(e, inside) for e in indices]):
            continue
        found += 1
        touched: dict[int, int] = {}
        places = product(range(4), *(range(bounds[0], bounds[1] + 1) for bounds in inside.values() if bounds))
        for (i, k, last), e in product(places, indices):
            element = value(e, {"i": i, "k": k, "l": last})
            assert touched.setdefault(int(element), i) == i
    assert found
