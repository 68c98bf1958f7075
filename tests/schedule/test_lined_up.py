"""Copies that begin at a line: made where they are little beside the arithmetic, and nothing else changed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from opgen.machine import Machine, typical
from tests.harness import Call
from tests.schedule.test_auto import DENSE, MODULE, assert_scheduled_is_the_same, gradient

WIDE = typical(64)
FAST = replace(WIDE, l3=replace(WIDE.l3, bytes_per_second=1e12))
"""What copies read and write takes no time."""
COPY = "-> grad_output_copy\n"


def by_filter(image: tuple[int, ...], outputs: int, taps: int = 3, dtype: str = "float32") -> Call:
    n, height, width, _ = image
    shapes = {
        "input": image,
        "filter": (taps, taps, image[-1], outputs),
        "grad_output": (n, height, width, outputs),
    }
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    return Call(MODULE, gradient(MODULE, DENSE, "filter"), shapes, attrs, dtype=dtype)


@pytest.mark.parametrize("machine", [WIDE, FAST])
@pytest.mark.parametrize("seed", range(6))
def test_any_size(seed: int, machine: Machine) -> None:
    rng = random.Random(seed)
    image = (rng.choice([1, 2]), rng.choice([3, 7]), rng.choice([5, 7]), rng.choice([16, 24, 32]))
    dtype = rng.choice(["float32", "float32", "float64"])
    call = by_filter(image, rng.choice([16, 32, 48, 80]), rng.choice([1, 3]), dtype)
    assert_scheduled_is_the_same(call, seed, machine)


def test_vectors_that_are_read_often_are_copied() -> None:
    text = assert_scheduled_is_the_same(by_filter((1, 7, 7, 64), 32), 1, FAST)
    assert f"pack grad_output 0, 1, 2, 3 {COPY}" in text
    assert "pitch" not in text


def test_rows_that_crowd_few_sets_have_room_between_them() -> None:
    near = replace(FAST, l2=replace(WIDE.l2, bytes_per_second=1e12))
    text = assert_scheduled_is_the_same(by_filter((1, 7, 7, 32), 512), 1, near)
    assert text.endswith("pitch grad_output_copy 3 528\n")


@pytest.mark.parametrize(
    "machine",
    [
        replace(FAST, l3=replace(WIDE.l3, bytes_per_second=1e9)),
        replace(FAST, l2=replace(WIDE.l2, size=8 << 10)),
        replace(typical(32), l3=FAST.l3),
    ],
)
def test_slow_or_large_copies_and_short_vectors_are_not_made(machine: Machine) -> None:
    assert COPY not in assert_scheduled_is_the_same(by_filter((1, 7, 7, 64), 32), 1, machine)
