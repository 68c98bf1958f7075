"""Rows turned from beyond the second cache for few positions: blocks of terms have panels in the first one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opgen.grad.gradient import gradient
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.machine import typical
from opgen.machine.model import Cache
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.spec import load
from tests.harness import Call, random_arrays

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")
MACHINE = replace(typical(64), l1=Cache(24 << 10, 12, 64, 220e9), l2=Cache(256 << 10, 16, 64, 118e9))


def by_input(edge: int, channels: int, results: int) -> tuple[Kernel, dict[str, tuple[int, ...]]]:
    """An input's gradient by 3x3 taps."""
    image = (1, edge, edge)
    shapes = {"input": (*image, channels), "filter": (3, 3, channels, results), "grad_output": (*image, results)}
    op = gradient(MODULE, MODULE.op("Conv2D"), "input")
    lowered, parameters = Call(MODULE, op, shapes, {"strides": [1] * 4, "padding": "SAME"}, dtype="float32").kernel()
    kernel = simplify(bind(lowered, parameters))
    return kernel, {b.name: tuple(int(str(e.value)) for e in b.shape) for b in kernel.inputs}


@pytest.mark.parametrize(("channels", "results"), [(256, 256), (128, 192), (96, 320)])
def test_blocks_of_terms(channels: int, results: int) -> None:
    """The same bits: sums take terms in the same order; what the next vectors read is asked for meanwhile."""
    kernel, shapes = by_input(7, channels, results)
    schedule, after = scheduled(kernel, "cpu", MACHINE)
    for step in ("carry k_o at=h", "at=k_o -> filter_panel", "prefetch filter at=c_o in=k_i_o"):
        assert step in str(schedule)
    inputs = random_arrays(shapes, "float32", 1)
    (expected,) = run_kernel(legalize(kernel), inputs, {}, 1).values()
    for threads in (1, 2):
        (found,) = run_kernel(legalize(after), inputs, {}, threads, guarded=True).values()
        assert np.array_equal(found, expected)


def test_panels_are_larger_where_one_unit_multiplies() -> None:
    """A third of the first cache, or a thirty-second of the second one, for a block of 32 vectors' elements."""
    kernel, _ = by_input(7, 256, 512)
    large = replace(MACHINE, l2=Cache(1 << 20, 16, 64, 118e9))
    for latency, terms in ((4, 256), (8, 64)):
        assert f"split k {terms} " in str(scheduled(kernel, "cpu", replace(large, latency=latency))[0])


@pytest.mark.parametrize(("edge", "results"), [(14, 256), (7, 32)])
def test_many_positions_or_near_rows_have_none(edge: int, results: int) -> None:
    kernel, _ = by_input(edge, 256, results)
    assert "carry k_o at=h" not in str(scheduled(kernel, "cpu", MACHINE)[0])
