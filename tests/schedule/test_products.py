"""Products of matrices and sums of outer products: tiles of six by four vectors, of any size, the same results."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from opgen.grad import gradient
from opgen.machine import Machine, typical
from tests.harness import Call
from tests.support.convolutions import DENSE, MODULE, WIDE, assert_scheduled_is_the_same, dense

ALONE = replace(WIDE, cores=1)
SMALL = replace(WIDE, l1=replace(WIDE.l1, size=8 << 10), l2=replace(WIDE.l2, size=64 << 10))
"""So small that everything comes from beyond the second cache."""


@pytest.mark.parametrize("machine", [WIDE, SMALL])
@pytest.mark.parametrize("direction", [None, "input", "filter"])
@pytest.mark.parametrize("seed", range(4))
def test_any_size(seed: int, direction: str | None, machine: Machine) -> None:
    rng = random.Random(seed)
    image = (rng.choice([1, 2]), rng.choice([7, 12]), rng.choice([12, 14, 19, 28]), rng.choice([48, 64, 70, 128]))
    call = dense(image, rng.choice([64, 128, 192]), direction, rng.choice(["float32", "float32", "float64"]))
    assert_scheduled_is_the_same(call, seed, machine)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("direction", [None, "input", "filter"])
def test_narrow_types_are_the_same(direction: str | None, dtype: str) -> None:
    assert_scheduled_is_the_same(dense((1, 7, 28, 64), 64, direction, dtype), 1, SMALL)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_rows_are_wide_in_panels(dtype: str) -> None:
    """Without a copy of all of them; scalars, which every block reads, have one."""
    for direction, panel in ((None, "filter_panel"), ("input", "filter_panel")):
        text = assert_scheduled_is_the_same(dense((1, 12, 12, 64), 128, direction, dtype), 0, WIDE)
        assert f"widen {panel} -> {panel}_wide" in text
        assert "widen filter ->" not in text


def test_pairs_come_before_wide_panels() -> None:
    """Where the CPU has a dot product of pairs that pays; float16 has none."""
    pairs = replace(WIDE, pairs=True)
    assert "pair c ->" in assert_scheduled_is_the_same(dense((1, 12, 12, 64), 128, None, "bfloat16"), 0, pairs)
    assert "filter_panel_wide" in assert_scheduled_is_the_same(dense((1, 12, 12, 64), 128, None, "float16"), 0, pairs)


@pytest.mark.parametrize("direction", [None, "input", "filter"])
def test_channels_first_is_the_same(direction: str | None) -> None:
    assert_scheduled_is_the_same(dense((1, 8, 64, 64), 64, direction, order="NCHW"), 1, SMALL)


def test_only_the_last_tile_of_all_rows_is_shorter() -> None:
    """The first one makes the panel, if it need not be turned."""
    text = assert_scheduled_is_the_same(dense((1, 14, 14, 32), 128), 1, WIDE)
    assert "flatten y, x -> y_x\n" in text
    assert "split y_x 6 tail=min -> y_x_o, y_x_i\npartition y_x_o 1, -1\n" in text
    assert "pack filter 0, 1, 2, 3 at=k_o" in text
    assert "fill filter_panel in=c\nparallel k_o\n" in text
    assert "prefetch" not in text
    turned = assert_scheduled_is_the_same(dense((1, 14, 14, 128), 32, "input"), 1, WIDE)
    assert "partition h_w_o -1\n" in turned
    assert "fill" not in turned
    assert "prefetch input at=y_x_o in=c\n" in assert_scheduled_is_the_same(dense((1, 8, 28, 64), 128), 1, SMALL)


def test_a_panel_serves_all_images() -> None:
    text = assert_scheduled_is_the_same(dense((3, 12, 12, 64), 128), 1, SMALL)
    assert "reorder k_o, n_y_x, k_i\n" in text
    assert text.endswith("fill filter_panel in=c\nparallel k_o\n")


def test_rows_that_threads_share_are_not_joined() -> None:
    """Few vectors: tiles of a row are balanced then.  Rows with strides do not lie one after the other."""
    assert "split x 6 tail=min -> x_o, x_i\npartition x_o -1\n" in assert_scheduled_is_the_same(
        dense((1, 8, 28, 32), 64), 1, WIDE
    )
    text = assert_scheduled_is_the_same(dense((1, 14, 14, 32), 64), 1, WIDE)
    assert "split x 5 tail=min" in text
    assert text.endswith("parallel y\n")
    assert "prefetch input at=y in=c\n" in assert_scheduled_is_the_same(dense((1, 8, 28, 64), 64), 1, SMALL)


def test_a_filter_is_turned_panel_by_panel() -> None:
    text = assert_scheduled_is_the_same(dense((1, 8, 28, 128), 64, "input"), 1, WIDE)
    assert "pack filter 0, 1, 3, 2 at=c_o" in text


def test_sums_wait_while_blocks_go_by() -> None:
    slow = replace(SMALL, l3=replace(SMALL.l3, bytes_per_second=5e9), memory_bytes_per_second=5e9)
    text = assert_scheduled_is_the_same(dense((2, 14, 14, 64), 128, "filter"), 1, slow, "outer")
    assert "flatten n, y_x -> n_y_x\n" in text
    assert "carry n_y_x_o at=k_o\n" in text
    asked = [f"prefetch {rows} at=n_y_x_o in=n_y_x_i\n" for rows in ("grad_output", "input")]
    assert "".join(asked) in text
    assert "partition c_o 1" in text
    assert "fill grad_output_panel in=n_y_x_i\n" in text
    assert text.endswith("parallel k_o\n")


def test_blocks_are_larger_where_one_unit_multiplies() -> None:
    """Of 1568 places: panels in the first cache, or in a sixteenth of the second where arithmetic hides fetching."""
    blocks = {}
    for latency in (4, 8):
        machine = replace(typical(64), latency=latency, cores=1)
        text = assert_scheduled_is_the_same(dense((2, 28, 28, 64), 128, "filter"), 1, machine)
        blocks[latency] = int(text.split("split n_y_x ")[1].split()[0])
    assert blocks == {4: 224, 8: 56}


def test_results_that_leave_the_last_cache_go_past_it() -> None:
    """With what is read, more than a quarter of it, if they are a fifth of that; not sums that wait in them."""
    machine = replace(SMALL, l3=replace(SMALL.l3, size=512 << 10))
    assert assert_scheduled_is_the_same(dense((2, 14, 14, 32), 128), 1, machine).endswith("stream output\n")
    assert "stream" not in assert_scheduled_is_the_same(dense((2, 14, 14, 32), 128), 1, SMALL)
    texts = {n: assert_scheduled_is_the_same(dense((2, 14, 14, n), 64), 1, machine) for n in (256, 512)}
    assert {n: "stream output\n" in text for n, text in texts.items()} == {256: True, 512: False}
    assert "stream" not in assert_scheduled_is_the_same(dense((2, 14, 14, 64), 128, "filter"), 1, machine)


def test_results_narrower_than_a_tile_are_left_to_others() -> None:
    alone = replace(SMALL, cores=1)
    assert "split k 32 tail=exact" in assert_scheduled_is_the_same(dense((2, 7, 7, 256), 32, "filter"), 1, alone)


def test_few_places_are_one_block() -> None:
    """A panel of all places stays in the first cache."""
    machine = replace(WIDE, l2=replace(WIDE.l2, size=64 << 10))
    text = assert_scheduled_is_the_same(dense((1, 7, 7, 256), 128, "filter"), 1, machine)
    assert "carry" not in text
    assert "split c 6 tail=min" in text
    assert "pack grad_output 0, 1, 2, 3 at=k_o" in text


def by_taps(image: tuple[int, ...], taps: int, outputs: int, stride: int, padding: str = "SAME") -> Call:
    n, height, width, channels = image
    sizes = [-(-e // stride) if padding == "SAME" else (e - taps) // stride + 1 for e in (height, width)]
    shapes = {"input": image, "filter": (taps, taps, channels, outputs), "grad_output": (n, *sizes, outputs)}
    attrs = {"strides": [1, stride, stride, 1], "padding": padding}
    return Call(MODULE, gradient(MODULE, DENSE, "filter"), shapes, attrs, dtype="float32")


LARGE = replace(WIDE, l1=replace(WIDE.l1, size=48 << 10))
"""A first cache that holds a panel of 64 places."""


@pytest.mark.parametrize("seed", range(6))
def test_sums_for_each_tap_of_any_size(seed: int) -> None:
    rng = random.Random(seed)
    taps, stride, padding = rng.choice([2, 3]), rng.choice([1, 2]), rng.choice(["SAME", "VALID"])
    image = (rng.choice([1, 2]), rng.choice([16, 17]), rng.choice([16, 18, 21]), rng.choice([48, 50]))
    machine = replace(LARGE, cores=rng.choice([1, 2, 3]))
    assert_scheduled_is_the_same(by_taps(image, taps, rng.choice([64, 128]), stride, padding), seed, machine)


def test_taps_share_a_panel() -> None:
    call = by_taps((2, 16, 18, 48), 2, 128, 1)
    text = assert_scheduled_is_the_same(call, 1, LARGE)
    assert "reorder k_o, r, s, c_o, c_i, k_v, k_l\n" in text
    assert "carry n at=k_o\ncarry y_o at=k_o\n" in text
    assert "pack grad_output 0, 1, 2, 3 at=k_o" in text
    assert text.endswith("parallel k_o\n")
    assert "split c 8 " in assert_scheduled_is_the_same(
        call, 1, replace(LARGE, cores=3)
    )  # two blocks for three threads


def test_few_registers_keep_to_other_tiles() -> None:
    for direction in (None, "filter"):
        text = assert_scheduled_is_the_same(dense((1, 14, 14, 64), 64, direction), 1, replace(WIDE, registers=16))
        assert "tail=min" not in text
