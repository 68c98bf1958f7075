"""Tiles of contractions: as many places as registers hold and overlap little."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opgen.loop.bind import bind
from opgen.machine import Machine, typical
from opgen.passes.simplify import simplify
from opgen.schedule.default import scheduled
from tests.harness import Call
from tests.support.convolutions import DENSE, MODULE, assert_scheduled_is_the_same

WIDE = typical(64)
"""A machine of 32 registers of 16 float32."""


def dense(image: tuple[int, ...], outputs: int, taps: int = 1, stride: int = 1, dtype: str = "float32") -> Call:
    shapes = {"input": image, "filter": (taps, taps, image[3], outputs)}
    attrs = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    return Call(MODULE, DENSE, shapes, attrs, dtype=dtype)


def text_of(call: Call, machine: Machine = WIDE) -> str:
    return str(scheduled(simplify(bind(*call.kernel())), "cpu", machine)[0])


@pytest.mark.parametrize(("width", "outputs", "tile"), [(9, 24, 9), (37, 24, 13), (23, 32, 6), (9, 32, 5)])
def test_rows_that_nothing_divides_overlap_little(width: int, outputs: int, tile: int) -> None:
    """One vector by up to fourteen places, two vectors by up to seven."""
    text = assert_scheduled_is_the_same(dense((1, 4, width, 16), outputs, 3), width, WIDE)
    assert ("unroll x\n" in text) if tile == width else (f"split x {tile} tail=overlap" in text)


def test_a_machine_of_few_registers_keeps_to_small_tiles() -> None:
    assert "split x 7 tail=exact" in text_of(dense((1, 4, 28, 16), 64), replace(WIDE, registers=16))
