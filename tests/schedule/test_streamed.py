"""Contractions whose rows pass through the caches once: what uses them little, and what uses them more."""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod

import pytest

from opgen.loop.parse import parse_kernel
from opgen.machine import Machine, typical
from opgen.machine.model import Cache
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.run import run_kernel
from opgen.schedule.default import scheduled
from tests.harness import Call, random_arrays
from tests.schedule.test_auto import DENSE, MODULE, assert_scheduled_is_the_same

AFAR = replace(typical(64), l2=Cache(16 << 10, 8, 64, 118e9), l3=Cache(32 << 20, 16, 64, 20e9), cores=2)
"""A machine with a small second cache, and little from beyond it."""


def dense(image: tuple[int, ...], outputs: int, taps: int = 1, dtype: str = "float32", **attrs: object) -> Call:
    shapes = {"input": image, "filter": (taps, taps, image[3], outputs)}
    return Call(MODULE, DENSE, shapes, {"strides": [1, 1, 1, 1], "padding": "SAME", **attrs}, dtype=dtype)


def is_streamed(text: str) -> bool:
    return "carry" in text and "parallel k_p" in text


@pytest.mark.parametrize("taps", [1, 2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_streamed_is_the_same(seed: int, taps: int) -> None:
    """Also with tiles that do not divide the positions, strides, dilations, images, and rows too long for a tile."""
    rng = random.Random(100 * taps + seed)
    image = (rng.choice([1, 1, 2]), rng.randint(1, 7), rng.randint(1, 9), rng.choice([16, 48, 64, 80]))
    stride, apart = rng.choice([1, 1, 2]), rng.choice([1, 1, 2])
    attrs = {"strides": [1, stride, stride, 1], "dilations": [1, apart, apart, 1]}
    call = dense(image, rng.choice([64, 96, 128]), taps, rng.choice(["float32", "float32", "float64"]), **attrs)
    results = 8 * prod(call.environment.output_shapes["output"])
    caches = {"l2": Cache(2 * results, 8, 64, 118e9), "l3": Cache(32 << 20, 16, 64, 1e9)}
    machine = replace(AFAR, registers=rng.choice([16, 32]), latency=rng.choice([4, 8]), **caches)
    assert_scheduled_is_the_same(call, seed, machine)


def test_rows_from_afar_are_read_once_in_order() -> None:
    """Terms outermost, in blocks; all positions in tiles, the last one smaller, without a border."""
    text = assert_scheduled_is_the_same(dense((1, 5, 5, 256), 64), 0, AFAR)
    for step in ("flatten y, x -> y_x", "split y_x 14 tail=guard", "partition y_x_o 1, -1", "carry c_o at=k_o"):
        assert step in text
    assert text.index("carry c_o at=k_o") < text.index("pack filter 0, 1, 2, 3 at=k_o -> filter_panel")


def test_the_first_tile_makes_the_copies() -> None:
    """Unless positions have a border, which it may not see all of."""
    assert "fill filter_panel in=c_i" in assert_scheduled_is_the_same(dense((1, 5, 5, 256), 64), 0, AFAR)
    taps = assert_scheduled_is_the_same(dense((1, 3, 4, 32), 64, taps=3), 0, AFAR)
    assert is_streamed(taps)
    assert "fill" not in taps


def test_the_next_block_is_asked_for_where_the_first_tile_waits() -> None:
    """A line for some terms, so that no tile asks for what was asked for; not where rows come fast enough."""
    slow = replace(AFAR, l2=Cache(64 << 10, 8, 64, 118e9), l3=Cache(32 << 20, 16, 64, 10e9))
    text = assert_scheduled_is_the_same(dense((1, 7, 7, 256), 128), 0, slow)
    assert "split c_i 2 tail=exact -> c_i_o, c_i_i\nunroll c_i_i\nprefetch filter at=c_o in=c_i_o\n" in text
    taps = assert_scheduled_is_the_same(dense((1, 7, 4, 256), 64, taps=3), 0, slow)
    assert "prefetch filter at=c_o in=c_i" in taps
    assert "unroll c_i" not in taps
    fast = replace(slow, l3=Cache(32 << 20, 16, 64, 170e9))
    text = assert_scheduled_is_the_same(dense((1, 5, 5, 256), 128), 0, fast)
    assert is_streamed(text)
    assert "prefetch" not in text


def test_copies_apart_must_be_felt_more() -> None:
    """A last cache of that speed is felt beside products, not where a border keeps copies apart; but for few places."""
    slow = replace(AFAR, l2=Cache(48 << 10, 8, 64, 118e9))
    fast = replace(slow, l3=Cache(32 << 20, 16, 64, 50e9))
    assert is_streamed(assert_scheduled_is_the_same(dense((1, 9, 9, 256), 64), 0, fast))
    assert not is_streamed(assert_scheduled_is_the_same(dense((1, 9, 9, 256), 64, taps=3), 0, fast))
    assert is_streamed(assert_scheduled_is_the_same(dense((1, 9, 9, 256), 64, taps=3), 0, slow))
    assert is_streamed(assert_scheduled_is_the_same(dense((1, 5, 5, 256), 64, taps=3), 0, fast))


def test_few_positions_read_rows_in_place_where_one_unit_multiplies() -> None:
    """With a border; the next block's lines are asked for all the same."""
    for latency, copied in ((4, False), (8, True)):
        machine = replace(AFAR, l2=Cache(64 << 10, 8, 64, 118e9), latency=latency)
        text = assert_scheduled_is_the_same(dense((1, 7, 7, 256), 128, taps=3), 0, machine)
        assert is_streamed(text)
        assert "prefetch filter" in text
        assert ("filter_panel" in text) == copied


@pytest.mark.parametrize(
    ("side", "terms", "size"),
    [
        (7, 256, "13 tail=guard"),  # 4 tiles of 14 would hold 56
        (6, 256, "12 tail=exact"),
        (6, 512, "12 tail=exact"),  # rows of scalars 2 KiB apart: 16 lines
        (7, 1024, "7 tail=exact"),  # 4 KiB apart: 8 lines
    ],
)
def test_blocks_are_of_all_terms_where_one_unit_multiplies(side: int, terms: int, size: str) -> None:
    """Narrow tiles, as even as can be and as many as lines of the first cache allow; nothing waits."""
    machine = replace(AFAR, l2=Cache(512 << 10, 8, 64, 118e9), latency=4)
    text = assert_scheduled_is_the_same(dense((1, side, side, terms), 65536 // terms * 4), 0, machine)
    assert f"split y_x {size} -> y_x_o, y_x_i" in text
    assert "split k_q 32" in text
    assert "fill filter_panel in=c\n" in text
    assert "prefetch filter at=k_o in=c" in text
    assert "carry" not in text


BROADCAST = """
kernel product(a: float32[{A}], w: float32[1024, 512]) -> (y: float32[7, 7, 512]):
  for i in 0..7:
    for j in 0..7:
      for k in 0..512:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for c in 0..1024:
          acc[] = fma(a[{I}c], w[c, k], acc[])
        y[i, j, k] = acc[]
"""


@pytest.mark.parametrize("registers", [4, 8, 16, 32])
@pytest.mark.parametrize(("shape", "index"), [("7, 1024", "i, "), ("1024", ""), ("7, 7, 1024", "i, j, ")])
def test_scalars_that_some_positions_share(shape: str, index: str, registers: int) -> None:
    """There are no lines of them to count; of registers there may be too few for any tile."""
    kernel = simplify(parse_kernel(BROADCAST.replace("{A}", shape).replace("{I}", index)))
    machine = replace(AFAR, l2=Cache(512 << 10, 8, 64, 118e9), latency=4, registers=registers)
    schedule, after = scheduled(kernel, "cpu", machine)
    if registers == 32:
        assert "parallel k_p" in str(schedule)
    arrays = random_arrays({"a": tuple(map(int, shape.split(", "))), "w": (1024, 512)}, "float32", registers)
    (expected,) = run_kernel(legalize(kernel), arrays, {}, 1).values()
    for threads in (1, 2):
        (found,) = run_kernel(legalize(after), arrays, {}, threads, guarded=True).values()
        assert found.tobytes() == expected.tobytes(), str(schedule)


def test_results_of_blocks_of_all_terms_need_not_be_near() -> None:
    """They are stored once; those of blocks wait, and must be."""
    for latency, in_order in ((4, True), (8, False)):
        machine = replace(AFAR, l2=Cache(128 << 10, 8, 64, 118e9), latency=latency)
        text = assert_scheduled_is_the_same(dense((1, 7, 7, 64), 1024), 0, machine)
        assert ("parallel k_p" in text) == in_order


def test_many_positions_have_blocks_of_vectors_outermost() -> None:
    """What they read is made by the first tile, too; with strides, positions do not lie one after the other."""
    machine = replace(AFAR, l2=Cache(128 << 10, 8, 64, 118e9), l3=Cache(32 << 20, 16, 64, 170e9))
    for strides, joined in (([1, 1, 1, 1], "flatten n, y_x -> n_y_x"), ([1, 2, 2, 1], "fuse n, y_x -> n_y_x")):
        image = (4, 6, 6, 256) if strides[1] == 1 else (4, 11, 11, 256)
        text = assert_scheduled_is_the_same(dense(image, 256, strides=strides), 0, machine)
        for step in (joined, "carry c_o at=n_y_x", "at=c_o -> filter_panel", "fill filter_panel in=c_i"):
            assert step in text
        assert text.endswith("parallel k_o\n")
    few = assert_scheduled_is_the_same(dense((3, 6, 6, 256), 256), 0, machine)
    assert "carry c_o at=n_y_x" not in few


def test_taps_that_decide_on_places_of_a_row_are_unrolled() -> None:
    text = assert_scheduled_is_the_same(dense((1, 3, 4, 32), 64, taps=3), 0, AFAR)
    for step in ("carry r at=k_o", "carry s at=k_o", "unroll s", "unroll x"):
        assert step in text
    assert "unroll r" not in text


@pytest.mark.parametrize(
    ("machine", "image"),
    [
        (AFAR, (1, 5, 5, 32)),  # the rows fit the second cache
        (AFAR, (1, 7, 7, 256)),  # the results do not
        (replace(AFAR, l2=Cache(32 << 10, 8, 64, 118e9)), (2, 8, 8, 256)),  # many uses of each row
        (replace(AFAR, l3=Cache(32 << 20, 16, 64, 200e9)), (1, 5, 5, 256)),  # they come fast
        (replace(AFAR, cores=3), (1, 5, 5, 256)),  # cores cannot share them evenly
        (replace(AFAR, l1=Cache(1024, 2, 64, 220e9)), (1, 5, 5, 256)),  # no block is near
    ],
)
def test_other_nests_are_left_alone(machine: Machine, image: tuple[int, ...]) -> None:
    assert is_streamed(assert_scheduled_is_the_same(dense((1, 5, 5, 256), 64), 0, AFAR))
    assert not is_streamed(assert_scheduled_is_the_same(dense(image, 64), 0, machine))


@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_of_narrow_results_wait_in_wide_ones(dtype: str, taps: int) -> None:
    call = dense((1, 5, 5, 256), 64, dtype=dtype) if taps == 1 else dense((1, 3, 4, 64), 64, taps, dtype)
    text = assert_scheduled_is_the_same(call, 0, AFAR)
    assert is_streamed(text)
    for step in ("widen output -> output_wide", "widen input -> input_wide", "widen filter_panel -> filter_panel_wide"):
        assert step in text
