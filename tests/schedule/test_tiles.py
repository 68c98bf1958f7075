"""Tiles of contractions: as tall as a row divides, registers hold and the cache's sets allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opgen.loop.bind import bind
from opgen.machine import Machine, typical
from opgen.passes.simplify import simplify
from opgen.schedule.default import scheduled
from tests.harness import Call
from tests.schedule.test_auto import DENSE, MODULE, assert_scheduled_is_the_same

WIDE = typical(64)
"""A machine of 32 registers of 16 float32."""


def dense(image: tuple[int, ...], outputs: int, taps: int = 1, stride: int = 1, dtype: str = "float32") -> Call:
    shapes = {"input": image, "filter": (taps, taps, image[3], outputs)}
    attrs = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    return Call(MODULE, DENSE, shapes, attrs, dtype=dtype)


def text_of(call: Call, machine: Machine = WIDE) -> str:
    return str(scheduled(simplify(bind(*call.kernel())), "cpu", machine)[0])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize(
    ("width", "taps", "stride", "channels"),
    [(14, 1, 1, 5), (28, 1, 1, 16), (28, 3, 1, 3), (28, 3, 2, 4), (56, 3, 2, 2), (14, 5, 1, 2)],
)
def test_rows_that_fourteen_divides(width: int, taps: int, stride: int, channels: int, dtype: str) -> None:
    call = dense((1, 4, width, channels), 32, taps, stride, dtype)
    text = assert_scheduled_is_the_same(call, width, WIDE)
    row = width // stride
    assert ("split x 14 tail=exact" in text) if row > 14 else ("unroll x\n" in text)


@pytest.mark.parametrize(("width", "outputs", "tile"), [(9, 24, 9), (37, 24, 13), (23, 32, 6), (9, 32, 5)])
def test_rows_that_nothing_divides_overlap_little(width: int, outputs: int, tile: int) -> None:
    """One vector by up to fourteen places, two vectors by up to seven."""
    text = assert_scheduled_is_the_same(dense((1, 4, width, 16), outputs, 3), width, WIDE)
    assert ("unroll x\n" in text) if tile == width else (f"split x {tile} tail=overlap" in text)


def test_a_machine_of_few_registers_keeps_to_small_tiles() -> None:
    assert "split x 7 tail=exact" in text_of(dense((1, 4, 28, 16), 64), replace(WIDE, registers=16))


def test_rows_that_crowd_one_set_are_read_few_at_a_time() -> None:
    """Places 4 KiB apart share one set of the first cache."""
    assert WIDE.l1.ways < 14
    assert "split x 14 tail=exact" in text_of(dense((1, 2, 28, 512), 64))
    assert "split x 7 tail=exact" in text_of(dense((1, 2, 28, 1024), 64))


def test_what_waits_for_memory_is_done_in_small_tiles() -> None:
    """Few results for each element that comes from far away: the next lines are asked for soon."""
    slow = replace(WIDE, l3=replace(WIDE.l3, bytes_per_second=2e10))
    assert "split x 7 tail=exact" in text_of(dense((8, 56, 56, 64), 32), slow)
    assert "split x 14 tail=exact" in text_of(dense((1, 28, 28, 64), 32), slow)
    assert "split x 14 tail=exact" in text_of(dense((8, 28, 28, 128), 96), slow)
