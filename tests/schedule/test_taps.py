"""Sums of products with few scalars that lie together: tiles of a row of taps by vectors, of any size, the same."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from opgen.machine import Machine, typical
from tests.harness import Call
from tests.schedule.test_auto import DENSE, MODULE, assert_scheduled_is_the_same, gradient

WIDE = typical(64)
SMALL = replace(WIDE, l1=replace(WIDE.l1, size=8 << 10), l2=replace(WIDE.l2, size=32 << 10))
"""So small that few rows wait for their sums."""


def by_taps(
    image: tuple[int, ...], taps: int, outputs: int, stride: int = 2, padding: str = "SAME", dtype: str = "float32"
) -> Call:
    n, height, width, channels = image
    sizes = [-(-e // stride) if padding == "SAME" else (e - taps) // stride + 1 for e in (height, width)]
    shapes = {
        "input": image,
        "filter": (taps, taps, channels, outputs),
        "grad_output": (n, *sizes, outputs),
    }
    attrs = {"strides": [1, stride, stride, 1], "padding": padding}
    return Call(MODULE, gradient(MODULE, DENSE, "filter"), shapes, attrs, dtype=dtype)


@pytest.mark.parametrize("machine", [WIDE, SMALL])
@pytest.mark.parametrize("seed", range(6))
def test_any_size(seed: int, machine: Machine) -> None:
    rng = random.Random(seed)
    taps, channels = rng.choice([(7, 3), (5, 3), (5, 2), (3, 4), (4, 5)])
    image = (rng.choice([1, 2]), rng.choice([9, 12, 16]), rng.choice([13, 16, 21]), channels)
    stride, padding = rng.choice([1, 2]), rng.choice(["SAME", "VALID"])
    dtype = rng.choice(["float32", "float32", "float64"])
    assert_scheduled_is_the_same(by_taps(image, taps, rng.choice([32, 64, 96]), stride, padding, dtype), seed, machine)


def test_a_row_of_taps_is_two_tiles_of_two_vectors() -> None:
    text = assert_scheduled_is_the_same(by_taps((2, 16, 24, 3), 7, 64), 1, SMALL)
    assert "split k 32 " in text
    assert "carry n at=r\ncarry y_o at=r\nsplit s 4 tail=min -> s_o, s_i\npartition s_o -1\n" in text
    assert "prefetch grad_output at=y_o in=x\n" in text
    assert "partition x 1, -2\n" in text
    assert "pack grad_output 0, 1, 2, 3 at=y_o -> grad_output_panel\n" in text
    assert "parallel k_o\n" in text


def test_rows_are_few_enough_for_a_panel_in_the_first_cache() -> None:
    text = assert_scheduled_is_the_same(by_taps((1, 32, 64, 3), 7, 64), 1, SMALL)
    assert "split y 1 tail=exact" in text
    small = replace(WIDE, l1=replace(WIDE.l1, size=4 << 10))
    assert "pack" not in assert_scheduled_is_the_same(by_taps((1, 32, 64, 3), 7, 64), 1, small)


def test_threads_share_taps_where_blocks_of_vectors_are_too_few() -> None:
    text = assert_scheduled_is_the_same(by_taps((1, 16, 24, 3), 7, 96), 1, WIDE)
    assert "pack" not in text
    assert "parallel k_o\nfuse k_o, r -> k_o_r\n" in text


def test_one_vector_takes_the_whole_row() -> None:
    text = assert_scheduled_is_the_same(by_taps((1, 16, 24, 3), 7, 16), 1, WIDE)
    assert "unroll s\nunroll c\n" in text


@pytest.mark.parametrize("call", [by_taps((1, 9, 13, 8), 7, 64), by_taps((1, 9, 13, 1), 3, 64)])
def test_more_or_fewer_scalars_are_another_nest(call: Call) -> None:
    assert "split s " not in assert_scheduled_is_the_same(call, 1, WIDE)
