"""The automatic scheduler on lowered ops and their gradients: bit for bit what the unscheduled program gives."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opgen.grad import gradient
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import If
from opgen.loop.print import print_expr
from opgen.loop.verify import verify
from opgen.loop.walk import walk
from opgen.machine import typical
from opgen.machine.model import Cache
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.spec import load
from tests.harness import Call
from tests.support.convolutions import (
    DENSE,
    DIRECTIONS,
    LANES,
    MODULE,
    assert_scheduled_is_the_same,
    inputs_of,
    schedule_of,
    the_call,
)

SAMPLES = load(Path(__file__).parents[1] / "specs" / "samples.op")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_scheduled_is_the_same(seed: int, lanes: bool, direction: str | None) -> None:
    call = the_call(seed, lanes, direction)
    lowered, parameters = call.kernel()
    kernel = simplify(bind(lowered, parameters))
    schedule, after = scheduled(kernel)
    legal = legalize(after)
    verify(legal, bounds=True)
    inputs = inputs_of(call, kernel, str(schedule), seed)
    for name, expected in interpret(kernel, inputs, {}).items():
        for threads in (1, 2):
            found = run_kernel(legal, inputs, {}, threads, guarded=True)[name]
            same = np.array_equal(found.view(np.uint8), np.ascontiguousarray(expected).view(np.uint8))
            assert same, f"seed {seed}, {call.op.name} {dict(call.shapes)} {dict(call.attrs)}\n{schedule}"


def test_windows_without_mixing_are_tiled_in_two_dimensions() -> None:
    text = schedule_of("DepthwiseConv2dNative", None, {"input": (1, 28, 28, 32), "filter": (3, 3, 32, 1)}, 1)
    assert "split y 2" in text
    assert "split x 4" in text
    assert "skew r, y_i 1 -> r_y" in text
    assert "partition x_o 1, -1" in text
    assert "partition y_o" not in text


# Windows ------------------------------------------------------------------------------------------


def window_call(
    direction: str | None, shapes: dict[str, tuple[int, ...]], order: str, dtype: str = "float32", **attrs: object
) -> Call:
    """A call of the op without mixing, or of a gradient of it."""
    call = Call(MODULE, LANES, shapes, {"data_format": order, **attrs}, dtype=dtype)
    if direction is None:
        return call
    cotangent = tuple(call.environment.output_shapes["output"])
    return Call(
        MODULE, gradient(MODULE, LANES, direction), {**shapes, "grad_output": cotangent}, call.attrs, dtype=dtype
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("order", ["NHWC", "NCHW"])
@pytest.mark.parametrize("seed", range(5))
def test_windows_of_all_kinds(seed: int, order: str, direction: str | None) -> None:
    """Sizes that tiles divide and primes, taps up to 7, strides, dilations, multipliers, ragged channels."""
    rng = random.Random(seed)
    height, width = rng.choice([7, 11, 14, 17, 28]), rng.choice([5, 7, 14, 16, 19, 28])
    channels, multiplier = rng.choice([8, 16, 20, 48]), rng.choice([1, 1, 2])
    taps = rng.choice([(3, 3), (5, 5), (1, 3), (7, 7), (2, 3)])
    stride, apart = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])
    image = {"N": rng.choice([1, 3]), "H": height, "W": width, "C": channels}
    call = window_call(
        direction,
        {"input": tuple(image[d] for d in order), "filter": (*taps, channels, multiplier)},
        order,
        strides=[stride if d in "HW" else 1 for d in order],
        dilations=[apart if d in "HW" else 1 for d in order],
        padding=rng.choice(["SAME", "VALID"]),
    )
    assert_scheduled_is_the_same(call, seed)


def image_call(direction: str | None, size: int, channels: int, stride: int = 1, taps: int = 3) -> Call:
    shapes = {"input": (1, size, size, channels), "filter": (taps, taps, channels, 1)}
    return window_call(direction, shapes, "NHWC", strides=[1, stride, stride, 1], padding="SAME")


MEMORY = replace(typical(), l2=Cache(1 << 12, 8, 64, 118e9), l3=Cache(1 << 14, 16, 64, 1e9))
"""A machine on which nearly everything comes from memory."""


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("seed", range(4))
def test_sums_from_memory(seed: int, dtype: str, cores: int) -> None:
    """Tiles of terms that divide the map or do not, all strides and dilations."""
    rng = random.Random(100 * seed + cores)
    taps, stride, apart = rng.choice([(3, 3), (5, 5), (2, 3), (3, 1)]), rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])
    image = (rng.choice([1, 2]), rng.randint(6, 19), rng.choice([7, 8, 11, 14, 17]), rng.choice([8, 16, 20, 48]))
    call = window_call(
        "filter",
        {"input": image, "filter": (*taps, image[-1], 1)},
        "NHWC",
        dtype,
        strides=[1, stride, stride, 1],
        dilations=[1, apart, apart, 1],
        padding=rng.choice(["SAME", "VALID"]),
    )
    assert_scheduled_is_the_same(call, seed, replace(MEMORY, cores=cores))


@pytest.mark.parametrize("direction", [None, "input"])
@pytest.mark.parametrize(("channels", "stride"), [(32, 1), (48, 2)])
def test_results_that_the_last_cache_does_not_hold_go_past_it(
    channels: int, stride: int, direction: str | None
) -> None:
    text = assert_scheduled_is_the_same(image_call(direction, 12, channels, stride), 3, MEMORY)
    assert "\nstream " in text
    assert "stream" not in assert_scheduled_is_the_same(image_call(direction, 12, channels - 8, stride), 3, MEMORY)
    assert "stream" not in assert_scheduled_is_the_same(image_call(direction, 12, channels, stride), 3)


@pytest.mark.parametrize(
    ("direction", "size", "stride", "past"),
    [(None, 16, 1, True), ("input", 16, 1, True), (None, 24, 1, False), ("input", 32, 2, False)],
)
def test_rows_of_results_go_past_the_last_cache_where_they_are_whole_lines(
    direction: str | None, size: int, stride: int, past: bool
) -> None:
    small = replace(typical(64), l2=Cache(1 << 10, 8, 64, 118e9), l3=Cache(1 << 12, 16, 64, 1e9))
    shapes = {"input": (1, 3, size, size), "filter": (3, 3, 3, 1)}
    call = window_call(direction, shapes, "NCHW", strides=[1, 1, stride, stride], padding="SAME")
    assert ("\nstream " in assert_scheduled_is_the_same(call, size, small)) == past
    assert "\nstream " not in assert_scheduled_is_the_same(call, size, typical(64))


@pytest.mark.parametrize(("taps", "stride", "apart"), [(7, 2, 2), (11, 2, 1), (9, 3, 1), (5, 3, 2), (8, 4, 1)])
def test_phases_from_memory_whose_rows_are_many(taps: int, stride: int, apart: int) -> None:
    """Even the least tile reads more rows than are read side by side."""
    shapes = {"input": (1, 24, 24, 80), "filter": (taps, taps, 80, 1)}
    attrs = {"strides": [1, stride, stride, 1], "dilations": [1, apart, apart, 1], "padding": "SAME"}
    assert_scheduled_is_the_same(window_call("input", shapes, "NHWC", **attrs), taps, MEMORY)


@pytest.mark.parametrize("direction", [None, "input"])
@pytest.mark.parametrize(("height", "apart"), [(14, True), (28, False)])
def test_two_tiles_of_rows_have_bodies_of_their_own(height: int, apart: bool, direction: str | None) -> None:
    """Along rows that are contiguous: both tiles are at the border."""
    shapes = {"input": (1, 6, height, 14), "filter": (3, 3, 6, 1)}
    call = window_call(direction, shapes, "NCHW", strides=[1, 1, 1, 1], padding="SAME")
    loop = "y" if direction is None else "h"
    assert (f"partition {loop}_o 1\n" in assert_scheduled_is_the_same(call, height)) == apart


@pytest.mark.parametrize(("stride", "apart"), [(1, "1, -1"), (2, "-1")])
def test_rows_at_the_border_have_bodies_of_their_own(stride: int, apart: str) -> None:
    """Those of them for which a row is missing."""
    shapes = {"input": (1, 2, 64, 32), "filter": (3, 3, 2, 1)}
    call = window_call(None, shapes, "NCHW", strides=[1, 1, stride, stride], padding="SAME")
    found = re.findall(r"partition y_o (.*)", assert_scheduled_is_the_same(call, stride))
    assert found == [apart]


def test_rows_are_branches_and_columns_bodies() -> None:
    """Three bodies, and in each a branch for the first row that is read and one for the last."""
    kernel = simplify(bind(*image_call(None, 28, 16).kernel()))
    legal = legalize(scheduled(kernel)[1])
    conditions = [print_expr(s.condition) for s in walk(legal.body) if isinstance(s, If)]
    assert conditions == ["y_o * 2 - 1 >= 0", "y_o * 2 + 2 < 28"] * 3


def test_strided_gradients_need_no_phases() -> None:
    """Tiles are multiples of the stride, so that every condition on a remainder is decided."""
    text = assert_scheduled_is_the_same(image_call("input", 28, 32, 2), 0)
    assert "split w 4 tail=exact" in text
    assert "skew r, h_i -1" in text
    assert "split w 4 tail=exact -> w_o, w_i\nsplit h 4 " in assert_scheduled_is_the_same(
        image_call("input", 32, 32, 2), 0
    )


def test_all_sums_of_taps_stay_in_registers() -> None:
    text = assert_scheduled_is_the_same(image_call("filter", 28, 32), 0)
    assert "reorder c_o, y, x_o, r, x_i, s, c_l" in text


def test_lanes_along_rows_of_channels_first() -> None:
    shapes = {"input": (1, 8, 28, 28), "filter": (3, 3, 8, 1)}
    text = assert_scheduled_is_the_same(window_call(None, shapes, "NCHW", strides=[1] * 4, padding="SAME"), 0)
    assert "split x 16 tail=overlap -> x_o, x_l" in text
    assert "skew r, y_i 1" in text


def test_short_rows_are_masked() -> None:
    shapes = {"input": (2, 8, 7, 7), "filter": (3, 3, 8, 1)}
    text = assert_scheduled_is_the_same(window_call(None, shapes, "NCHW", strides=[1] * 4, padding="SAME"), 0)
    assert "split x 8 tail=guard -> x_o, x_l" in text


def test_vectors_that_a_row_nearly_fills_are_masked() -> None:
    """One vector under a mask rather than two shorter ones."""
    shapes = {"input": (1, 3, 14, 14), "filter": (3, 3, 3, 1)}
    text = assert_scheduled_is_the_same(window_call(None, shapes, "NCHW", strides=[1] * 4, padding="SAME"), 0)
    assert "split x 16 tail=guard -> x_o, x_l" in text


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("size", "rows"), [(1 << 20, 2), (1 << 26, 8)])
def test_maps_from_memory_stream_in_few_rows(size: int, rows: int, stride: int) -> None:
    usual = typical()
    machine = replace(usual, l3=replace(usual.l3, size=size))
    shapes = {"input": (1, 64, 112, 112), "filter": (3, 3, 64, 1)}
    call = window_call(None, shapes, "NCHW", strides=[1, 1, stride, stride], padding="SAME")
    schedule, _ = scheduled(simplify(bind(*call.kernel())), "cpu", machine)
    assert f"split y {rows} tail=" in str(schedule)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "taps", "padding"),
    [
        ((1, 5, 28, 28), (3, 3), "SAME"),
        ((2, 3, 14, 14), (3, 3), "SAME"),
        ((1, 3, 13, 17), (3, 3), "VALID"),
        ((3, 2, 9, 41), (2, 5), "SAME"),
        ((1, 2, 5, 52), (3, 4), "SAME"),
        ((1, 2, 11, 64), (1, 3), "SAME"),
    ],
)
def test_few_sums_along_rows(shape: tuple[int, ...], taps: tuple[int, int], padding: str, dtype: str) -> None:
    """The gradient by the taps: partial sums along a row, for rows of one vector and of many, full and not."""
    shapes = {"input": shape, "filter": (*taps, shape[1], 1)}
    call = window_call("filter", shapes, "NCHW", dtype=dtype, strides=[1] * 4, padding=padding)
    text = assert_scheduled_is_the_same(call, shape[3])
    assert "rfactor x" in text or taps[0] == 1


@pytest.mark.parametrize(("padding", "borders"), [("SAME", "1, -1"), ("VALID", "")])
def test_sums_along_rows_have_bodies_at_a_border(padding: str, borders: str) -> None:
    shapes = {"input": (1, 3, 26, 34), "filter": (3, 3, 3, 1)}
    text = assert_scheduled_is_the_same(window_call("filter", shapes, "NCHW", strides=[1] * 4, padding=padding), 0)
    assert re.findall(r"partition y_o (.*)", text) == ([borders] if borders else [])


@pytest.mark.parametrize(("size", "rows"), [(1 << 10, 1), (1 << 20, 4)])
@pytest.mark.parametrize("stride", [1, 2])
def test_sums_along_rows_from_memory_take_them_one_by_one(stride: int, size: int, rows: int) -> None:
    call = window_call(
        "filter",
        {"input": (2, 3, 16, 40), "filter": (3, 3, 3, 1)},
        "NCHW",
        strides=[1, 1, stride, stride],
        padding="SAME",
    )
    machine = replace(typical(64), l3=Cache(size, 16, 64, 96e9))
    assert f"split y {rows} tail=exact" in assert_scheduled_is_the_same(call, stride, machine)


def test_sums_along_long_rows_stay_in_registers() -> None:
    """One vector of each sum for all vectors of a row, whose places come tile of rows by tile of rows."""
    shapes = {"input": (1, 4, 12, 56), "filter": (3, 3, 4, 1)}
    text = assert_scheduled_is_the_same(window_call("filter", shapes, "NCHW", strides=[1] * 4, padding="SAME"), 0)
    assert "rfactor x 16 -> acc_partial" in text
    assert "regroup y_i, x_o\n" in text
    assert "reorder c, y_o, x_o, y_i, r, s, x_l" in text


@pytest.mark.parametrize("stride", [1, 2])
def test_sums_that_share_what_they_read_are_contractions(stride: int) -> None:
    """The gradient by a dense filter has few taps, too, but each read serves many channels."""
    shapes = {"input": (1, 16, 14, 14), "filter": (3, 3, 16, 32)}
    attrs = {"strides": [1, 1, stride, stride], "padding": "SAME", "data_format": "NCHW", "dilations": [1] * 4}
    cotangent = tuple(Call(MODULE, DENSE, shapes, attrs, dtype="float32").environment.output_shapes["output"])
    derived = gradient(MODULE, DENSE, "filter")
    call = Call(MODULE, derived, {**shapes, "grad_output": cotangent}, attrs, dtype="float32")
    assert "rfactor" not in assert_scheduled_is_the_same(call, stride)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "taps", "padding"),
    [
        ((1, 5, 28, 28), (3, 3), "SAME"),
        ((2, 3, 14, 14), (3, 3), "SAME"),
        ((1, 3, 13, 35), (2, 3), "VALID"),
        ((3, 2, 9, 66), (2, 4), "SAME"),
        ((1, 2, 6, 12), (3, 3), "SAME"),
    ],
)
def test_few_sums_along_strided_rows(shape: tuple[int, ...], taps: tuple[int, int], padding: str, dtype: str) -> None:
    shapes = {"input": shape, "filter": (*taps, shape[1], 1)}
    call = window_call("filter", shapes, "NCHW", dtype=dtype, strides=[1, 1, 2, 2], padding=padding)
    assert "rfactor x" in assert_scheduled_is_the_same(call, shape[3])


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "taps", "padding"),
    [
        ((1, 5, 28, 28), (3, 3), "SAME"),
        ((2, 3, 14, 14), (3, 3), "SAME"),
        ((1, 3, 13, 34), (2, 3), "VALID"),
        ((3, 2, 9, 66), (2, 4), "SAME"),
        ((1, 2, 10, 72), (5, 5), "SAME"),
        ((1, 2, 12, 12), (1, 1), "SAME"),
    ],
)
def test_phases_along_rows(shape: tuple[int, ...], taps: tuple[int, int], padding: str, dtype: str) -> None:
    """The gradient of every other window: lanes along a phase of the row, stored together with the other phase."""
    shapes = {"input": shape, "filter": (*taps, shape[1], 1)}
    call = window_call("input", shapes, "NCHW", dtype=dtype, strides=[1, 1, 2, 2], padding=padding)
    text = assert_scheduled_is_the_same(call, shape[3])
    assert "split w 2 tail=exact -> w_q, w_p" in text
    assert "c_s" not in text


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    ("dtype", "channels", "size", "taps", "stride"),
    [("float32", 32, 14, 3, 3), ("float64", 24, 14, 3, 3), ("bfloat16", 20, 13, 3, 3), ("float32", 9, 9, 3, 3)],
)
def test_slices_of_maps_are_transposed(
    dtype: str, channels: int, size: int, taps: int, stride: int, direction: str | None
) -> None:
    """Rows with steps of three: lanes along the maps, copied with that dimension last."""
    shapes = {"input": (2, channels, size, size), "filter": (taps, taps, channels, 1)}
    attrs = {"strides": [1, 1, stride, stride], "padding": "SAME"}
    text = assert_scheduled_is_the_same(window_call(direction, shapes, "NCHW", dtype=dtype, **attrs), size)
    lanes = 8 if dtype == "float64" or channels < 16 else 16
    assert f"split c {lanes} tail={'overlap' if channels % lanes else 'exact'} -> c_s, c_i" in text
    assert text.count("0, 2, 3, 1 at=c_s") == 2
    assert "transpose " in text


@pytest.mark.parametrize("order", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("taps", "stride"), [(3, 1), (3, 2), (2, 2)])
def test_windows_of_the_greatest_value(order: str, taps: int, stride: int) -> None:
    """What reads nothing but the map has the same nests."""
    image = {"N": 1, "H": 14, "W": 28, "C": 32}
    sides = {d: (taps, stride) if d in "HW" else (1, 1) for d in order}
    attrs = {"ksize": [sides[d][0] for d in order], "strides": [sides[d][1] for d in order], "padding": "SAME"}
    shapes = {"input": tuple(image[d] for d in order)}
    call = Call(
        SAMPLES, SAMPLES.op("MaxPool"), shapes, {**attrs, "padding": "SAME", "data_format": order}, dtype="float32"
    )
    text = assert_scheduled_is_the_same(call, taps)
    assert "vectorize" in text
    assert "skew r, y_i" in text or taps == stride  # windows that share nothing
