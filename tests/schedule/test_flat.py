"""Products of matrices whose rows are maps: two dimensions regarded as one, lanes along all positions."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from opgen.grad.gradient import gradient
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.machine import typical
from opgen.machine.model import Cache
from opgen.passes.simplify import simplify
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from opgen.spec import load
from tests.harness import Call
from tests.schedule.differential import assert_same
from tests.schedule.test_few import assert_right

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")
SMALL = Cache(1 << 14, 8, 64, 1e11)
MACHINES = {
    "512 bits": typical(64),
    "two units": replace(typical(64), latency=8),
    "256 bits": typical(32),
    "small caches": replace(typical(64), l1=replace(SMALL, size=1 << 12), l2=SMALL),
    "128 bits, four cores": replace(typical(16), cores=4),
}
ROWS = """
kernel rows(x: float32[3, 4, 6], w: float32[3, 2]) -> (y: float32[2, 4, 6]):
  for k in 0..2:
    for i in 0..4:
      for j in 0..6:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for c in 0..3:
          acc[] = fma(x[c, i, j], w[c, k], acc[])
        y[k, i, j] = acc[]
"""


def product(wrt: str | None, images: int, size: tuple[int, int], depths: tuple[int, int], dtype: str) -> Kernel:
    """A convolution with 1x1 taps, or its gradient by the image, channels first."""
    attrs = {"strides": [1] * 4, "padding": "SAME", "data_format": "NCHW"}
    shapes = {"input": (images, depths[0], *size), "filter": (1, 1, *depths)}
    op = MODULE.op("Conv2D")
    if wrt is None:
        call = Call(MODULE, op, shapes, attrs, dtype=dtype)
    else:
        back = {**shapes, "grad_output": (images, depths[1], *size)}
        call = Call(MODULE, gradient(MODULE, op, wrt), back, attrs, dtype=dtype)
    lowered, parameters = call.kernel()
    return simplify(bind(lowered, parameters))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", range(6))
def test_products_over_maps(seed: int, machine: str) -> None:
    rng = random.Random(seed)
    size = rng.choice([(20, 20), (24, 8), (12, 17), (16, 9)])
    depths = rng.choice([(3, 8), (8, 3), (4, 8), (8, 8)])
    kernel = product(rng.choice([None, "input"]), rng.choice([1, 2]), size, depths, rng.choice(["float32", "float64"]))
    assert_right(kernel, MACHINES[machine], seed)


@pytest.mark.parametrize("wrt", [None, "input"])
@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize(("machine", "brought"), [("512 bits", "prefetch"), ("two units", "stage")])
def test_positions_are_in_blocks_and_what_is_left_over_is_done_too(
    machine: str, brought: str, wrt: str | None, images: int
) -> None:
    """A block's rows are copied, or asked for where one unit multiplies."""
    text = assert_right(product(wrt, images, (20, 20), (8, 8), "float32"), MACHINES[machine], images)
    assert all(word in text for word in ("flatten", "partition", brought))
    assert ("stage" in text) == (brought == "stage")
    places, results = (("y_x", "k"), ("h_w", "c"))[wrt is not None]
    tiles = f"{places}_o, {results}_o" if brought == "prefetch" else f"{results}_o, {places}_o"
    assert f"{places}_b, {tiles}, " in text
    assert ("parallel n" in text) == (images > 1)


def test_rows_are_seen_as_one_and_known_as_before() -> None:
    kernel = parse_kernel(ROWS)
    after = apply(kernel, parse_schedule("flatten i, j -> p\nsplit p 8\nvectorize p_i"))
    assert "x: float32[3, 1, 24] as [3, 4, 6]" in print_kernel(after)
    assert parse_kernel(print_kernel(after)) == after
    assert_same(kernel, after, {}, 1)


MAPS = """
kernel maps(x: float32[2, 3, 4, 5]) -> (y: float32[2, 3, 4, 5]):
  for n in 0..2:
    for i in 0..3:
      for j in 0..4:
        for c in 0..5:
          y[n, i, j, c] = 2.0f32 * x[n, i, j, c]
"""


@pytest.mark.parametrize("text", ["flatten i, j -> p\nflatten n, p -> q", "flatten n, i -> p\nflatten p, j -> q"])
def test_dimensions_of_one_element_may_stand_between(text: str) -> None:
    kernel = parse_kernel(MAPS)
    after = apply(kernel, parse_schedule(text))
    assert "x: float32[1, 1, 24, 5] as [2, 3, 4, 5]" in print_kernel(after)
    assert "y[0, 0, q, c]" in print_kernel(after)
    assert_same(kernel, after, {}, 1)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("w[c, k]", "w[c, k + j - j]", "something depends on 'i' or 'j' alone"),
        ("for j in 0..6", "for j in 0..5", "'j' is not a whole row"),
        ("x[c, i, j]", "x[c, i, j] + x[c, 0, 0]", "'x' is used in another way, too"),
        ("x[c, i, j]", "x[c, i, 5 - j]", "'x' is used in another way|something depends"),
        ("        y[k, i, j] = acc[]", "        y[k, i, j] = acc[]\n      y[k, i, 0] = 1.0f32", "used in another way"),
    ],
)
def test_what_is_not_rows_as_a_whole_is_refused(before: str, after: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        apply(parse_kernel(ROWS.replace(before, after)), parse_schedule("flatten i, j"))


@pytest.mark.parametrize(("size", "past"), [((20, 20), True), ((20, 18), False)])
@pytest.mark.parametrize("latency", [4, 8])
def test_whole_lines_of_results_go_past_the_last_cache(latency: int, size: tuple[int, int], past: bool) -> None:
    small = replace(typical(64), latency=latency, l3=Cache(1 << 12, 16, 64, 1e9))
    text = assert_right(product(None, 2, size, (4, 8), "float32"), small, latency)
    assert ("\nstream " in text) == past
    assert "\nstream " not in assert_right(product(None, 2, size, (4, 8), "float32"), MACHINES["512 bits"], latency)
