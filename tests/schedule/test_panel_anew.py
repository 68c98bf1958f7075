"""Panels of rows that are made anew for each image, where images are outermost, or with the images moved inside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opgen.loop.bind import bind
from opgen.machine import Machine, typical
from opgen.machine.model import Cache
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.run import run_kernel
from opgen.schedule.auto.kinds import transposed_maps
from opgen.schedule.default import scheduled
from opgen.spec import load
from tests.harness import Call, random_arrays

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")


def assert_same(shapes: dict[str, tuple[int, ...]], order: str, machine: Machine) -> str:
    """Compiled as it was lowered, and as scheduled for one and two threads: the interpreter would take too long.  Gives
    the schedule's text.
    """
    attrs = {"strides": [1] * 4, "padding": "SAME", "data_format": order}
    lowered, parameters = Call(MODULE, MODULE.op("Conv2D"), shapes, attrs, dtype="float32").kernel()
    kernel = simplify(bind(lowered, parameters))
    schedule, after = scheduled(kernel, "cpu", machine)
    inputs = random_arrays(shapes, "float32", 1)
    (expected,) = run_kernel(legalize(kernel), inputs, {}, 1).values()
    for threads in (1, 2):
        (found,) = run_kernel(legalize(after), inputs, {}, threads).values()
        assert np.array_equal(found, expected)
    return str(schedule)


@pytest.fixture
def as_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images are not turned as a whole."""
    monkeypatch.setattr(transposed_maps, "WORTH_MAPS", 1e9)


@pytest.mark.usefixtures("as_they_lie")
def test_a_panel_that_is_made_for_each_image() -> None:
    text = assert_same({"input": (8, 512, 7, 7), "filter": (1, 1, 512, 2048)}, "NCHW", typical(64))
    assert "reorder n, k_o" in text
    assert "at=k_o -> filter_panel" in text


def test_images_are_moved_inside_of_a_panel_for_each_tap() -> None:
    """Where what all taps of a panel read does not fit the second cache."""
    machine = replace(typical(64), l1=Cache(16 << 10, 8, 64, 220e9), l2=Cache(256 << 10, 8, 64, 118e9))
    text = assert_same({"input": (8, 7, 7, 256), "filter": (3, 3, 256, 256)}, "NHWC", machine)
    assert "reorder r, s, k_o, n\npack filter 0, 1, 2, 3 at=k_o -> filter_panel" in text


@pytest.mark.usefixtures("as_they_lie")
def test_blocks_of_vectors_are_outermost_where_their_rows_are_panels() -> None:
    """Of orders that are nearly as good; these rows have loops of their own at the border."""
    attrs = {"strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW"}
    shapes = {"input": (1, 256, 28, 28), "filter": (3, 3, 256, 256)}
    lowered, parameters = Call(MODULE, MODULE.op("Conv2D"), shapes, attrs, dtype="float32").kernel()
    kernel = simplify(bind(lowered, parameters))
    schedule, after = scheduled(kernel, "cpu", typical(64))
    text = str(schedule)
    assert "reorder k_o, y, x_o" in text
    assert "at=k_o -> filter_panel" in text
    inputs = random_arrays(shapes, "float32", 1)
    (expected,) = run_kernel(legalize(kernel), inputs, {}, 1).values()
    for threads in (1, 2):
        (found,) = run_kernel(legalize(after), inputs, {}, threads, guarded=True).values()
        assert np.array_equal(found, expected)
