"""Contractions over maps, channels first: images and results are turned as a whole where that takes little."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from opgen.grad.gradient import gradient
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.lower import Variant, lower
from opgen.machine import typical
from opgen.passes.simplify import simplify
from opgen.schedule.auto import overrides
from opgen.schedule.auto.kinds import transposed_maps
from opgen.schedule.default import scheduled
from opgen.spec import load, load_text
from tests.harness import Call
from tests.support.machines import MACHINES, SMALL
from tests.support.scheduled import assert_right

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")


def convolution(
    wrt: str | None,
    images: int,
    size: tuple[int, int],
    taps: tuple[int, int, int, int],
    stride: int,
    dtype: str,
    padding: str = "SAME",
) -> Kernel:
    """A convolution, or its gradient by the image, channels first; `taps` is the filter's shape."""
    attrs = {"strides": [1, 1, stride, stride], "padding": padding, "data_format": "NCHW"}
    shapes = {"input": (images, taps[2], *size), "filter": taps}
    op = MODULE.op("Conv2D")
    if wrt is not None:
        shapes["grad_output"] = (images, taps[3], *(-(-n // stride) for n in size))
        op = gradient(MODULE, op, wrt)
    lowered, parameters = Call(MODULE, op, shapes, attrs, dtype=dtype).kernel()
    return simplify(bind(lowered, parameters))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", range(8))
def test_images_and_results_are_transposed(seed: int, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transposed_maps, "WORTH_MAPS", 0)
    monkeypatch.setattr(overrides, "OVERRIDES", tuple(replace(o, unless=0.0) for o in overrides.OVERRIDES))
    rng = random.Random(seed)
    size = rng.choice([(5, 7), (7, 5), (9, 6), (4, 10)])
    depths = rng.choice([(16, 32), (20, 16), (24, 36), (32, 17)])
    across = rng.choice([1, 3])
    wrt, images, dtype = rng.choice([None, "input"]), rng.choice([1, 2]), rng.choice(["float32", "float64"])
    kernel = convolution(wrt, images, size, (across, across, *depths), rng.choice([1, 2]), dtype)
    text = assert_right(kernel, replace(MACHINES[machine], latency=8), seed)
    if machine != "256 bits" and seed not in (4, 5):  # shorter vectors, and phases, may be filled along a row
        assert "_transposed" in text


@pytest.mark.parametrize("wrt", [None, "input"])
def test_what_is_crowded_has_room(wrt: str | None) -> None:
    kernel = convolution(wrt, 1, (14, 14), (1, 1, 512, 512), 1, "float32")
    text = str(scheduled(kernel, "cpu", replace(typical(64), latency=8))[0])
    result = "output" if wrt is None else "grad_input"
    assert f"pack {result} 0, 2, 3, 1 -> {result}_transposed" in text
    assert f"pitch {result}_transposed 3 528" in text


@pytest.mark.parametrize(("latency", "transposed"), [(4, False), (8, True)])
def test_images_and_results_are_left_as_they_lie_where_one_unit_multiplies(latency: int, transposed: bool) -> None:
    kernel = convolution(None, 1, (14, 14), (3, 3, 512, 512), 1, "float32")
    text = str(scheduled(kernel, "cpu", replace(typical(64), latency=latency))[0])
    assert ("_transposed" in text) == transposed


def test_groups_are_turned_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transposed_maps, "WORTH_MAPS", 0)
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NCHW"}
    call = Call(MODULE, MODULE.op("Conv2D"), {"input": (1, 2, 14, 14), "filter": (7, 5, 1, 32)}, attrs, dtype="float32")
    lowered, parameters = call.kernel()
    machine = replace(typical(16), l1=replace(SMALL, size=1 << 12), cores=4)
    text = assert_right(simplify(bind(lowered, parameters)), machine, 1)
    assert "_transposed" in text
    assert "fuse k_o_g, y" in text


def test_what_would_take_long_beside_the_arithmetic_is_not_transposed() -> None:
    for shape in ((1, 1, 16, 64), (3, 3, 2, 8)):
        kernel = convolution(None, 1, (14, 14), shape, 1, "float32")
        assert "_transposed" not in str(scheduled(kernel, "cpu", typical(64))[0])


@pytest.mark.parametrize("worth", [0, transposed_maps.WORTH_MAPS])
def test_strided_windows_without_borders_have_lanes(worth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where images would be read with strides, lanes follow the outputs; a way that is given up leaves nothing."""
    monkeypatch.setattr(transposed_maps, "WORTH_MAPS", worth)
    small = convolution(None, 1, (19, 22), (7, 7, 3, 32), 2, "float32", "VALID")
    assert "vectorize" in assert_right(small, MACHINES["small caches"], 1)
    for vector in (16, 32, 64):
        large = convolution(None, 1, (224, 224), (7, 7, 3, 96), 2, "float32", "VALID")
        assert "vectorize" in str(scheduled(large, "cpu", typical(vector))[0])


MAPS = load_text("""
op Maps {
  type T in {float32}
  input x: T[n, c, height, width]
  input f: T[k, c, rows, columns]
  output y: T[n, k, height - rows + 1, width - columns + 1]
  y[b, o, i, j] = sum[q, r, s](x[b, q, i + r, j + s] * f[o, q, r, s])
}
""")


@pytest.mark.parametrize("height", [187, 188, 189])
def test_plans_that_cost_far_less_go_before_transposed_maps(height: int) -> None:
    """With lanes along rows of results, taps are what is transposed, and estimated to take a third longer."""
    lowered = lower(MAPS, MAPS.op("Maps"), Variant({"T": "float32"}, {})).kernel
    sizes = {"n": 1, "c": 64, "height": height, "width": 22, "k": 128, "rows": 9, "columns": 12}
    kernel = simplify(bind(lowered, {p.name: sizes[p.name] for p in lowered.parameters}))
    one = typical(64)
    l1 = replace(one.l1, bytes_per_second=2 * one.l1.bytes_per_second)
    two_units = replace(one, latency=8, fma_per_second=2 * one.fma_per_second, l1=l1)
    assert "pack f 0, 2, 3, 1 -> f_transposed" not in str(scheduled(kernel, "cpu", two_units)[0])
