"""Panels of rows that are made anew for each image, where images are outermost."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from opgen.loop.bind import bind
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.spec import load
from tests.harness import Call, random_arrays

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")


def test_a_panel_that_is_made_for_each_image() -> None:
    """Compiled as it was lowered, and as scheduled for one and two threads: the interpreter would take too long."""
    attrs = {"strides": [1] * 4, "padding": "SAME", "data_format": "NCHW"}
    shapes = {"input": (8, 512, 7, 7), "filter": (1, 1, 512, 2048)}
    lowered, parameters = Call(MODULE, MODULE.op("Conv2D"), shapes, attrs, dtype="float32").kernel()
    kernel = simplify(bind(lowered, parameters))
    schedule, after = scheduled(kernel, "cpu", typical(64))
    text = str(schedule)
    assert "reorder n, k_o" in text
    assert "at=k_o -> filter_panel" in text
    inputs = random_arrays(shapes, "float32", 1)
    (expected,) = run_kernel(legalize(kernel), inputs, {}, 1).values()
    for threads in (1, 2):
        (found,) = run_kernel(legalize(after), inputs, {}, threads).values()
        assert np.array_equal(found, expected)
