"""Sums of outer products of bfloat16: joined places two by two, in blocks whose pairs are made just before."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from opgen.grad import gradient
from opgen.machine import Machine, typical
from opgen.machine.model import Cache
from tests.harness import Call
from tests.schedule.test_auto import DENSE, MODULE, assert_scheduled_is_the_same

SMALL = replace(typical(64), pairs=True, l2=Cache(128 << 10, 8, 64, 118e9), cores=1)
"""A machine whose second cache does not hold the operands."""


def by_filter(
    image: tuple[int, ...], outputs: int, machine: Machine, seed: int = 0, taps: int = 1, order: str = "NHWC"
) -> str:
    """The schedule's text, once its results have been compared."""
    channels = image[3 if order == "NHWC" else 1]
    shapes = {"input": image, "filter": (taps, taps, channels, outputs)}
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": order}
    forward = Call(MODULE, DENSE, shapes, attrs, dtype="bfloat16")
    shapes["grad_output"] = tuple(forward.environment.output_shapes["output"])
    call = Call(MODULE, gradient(MODULE, DENSE, "filter"), shapes, attrs, dtype="bfloat16")
    return assert_scheduled_is_the_same(call, seed, machine)


@pytest.mark.parametrize("seed", range(8))
def test_they_are_the_same(seed: int) -> None:
    """Of images and maps of all sizes whose places come in parts of whole pairs, with one core and more."""
    rng = random.Random(seed)
    images, (high, wide) = rng.choice([4, 6, 8]), rng.choice([(16, 16), (14, 16), (8, 28), (20, 12), (7, 32)])
    machine = replace(SMALL, l2=replace(SMALL.l2, size=64 << 10), cores=rng.choice([1, 2, 3]))
    text = by_filter((images, high, wide, rng.choice([8, 32, 40, 64])), rng.choice([32, 64]), machine, seed)
    assert "flatten n, y_x -> n_y_x" in text
    assert "divide n_y_x_p at=c space=heap -> sums\npair n_y_x_r -> " in text
    assert "parallel n_y_x_p" in text


def test_blocks_fill_the_first_cache_and_the_next_is_asked_for() -> None:
    """Two vectors and eight scalars of 128 pairs, 3/4 of 32 KiB at most; each of two parts has 512."""
    text = by_filter((8, 16, 16, 64), 64, replace(SMALL, cores=2))
    for step in (
        "split n_y_x 1024 tail=exact -> n_y_x_p, n_y_x_r",
        "split c 8 tail=exact -> c_o, c_i",
        "split k 32 tail=exact -> k_o, k_i",
        "split n_y_x_r 128 tail=exact -> n_y_x_o, n_y_x_i",
        "carry n_y_x_o at=c_o",
        "compute_at grad_output_pairs at=n_y_x_o",
        "compute_at input_pairs at=n_y_x_o",
        "prefetch grad_output at=n_y_x_o in=n_y_x_i",
        "prefetch input at=n_y_x_o in=n_y_x_i",
        "parallel n_y_x_p",
    ):
        assert step in text


OTHERS = {
    "few places, which the second cache holds": ((1, 8, 8, 64), 64, {}),
    "a table that crowds the second cache": ((4, 16, 16, 128), 128, {}),
    "channels that no tile divides": ((4, 16, 16, 36), 64, {}),
    "taps, at whose borders rows end": ((4, 16, 16, 32), 32, {"taps": 3}),
    "channels first": ((4, 32, 16, 16), 64, {"order": "NCHW"}),
    "places of which no two parts are pairs": ((3, 17, 35, 32), 64, {}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_left_alone(name: str) -> None:
    image, outputs, more = OTHERS[name]
    assert "divide" not in by_filter(image, outputs, SMALL, **more)


@pytest.mark.parametrize(("side", "joined"), [(7, True), (6, False)])
def test_rows_with_an_odd_last_place_are_joined(side: int, joined: bool) -> None:
    """Where the table is too large for blocks: eight images of 49 places are 196 pairs."""
    text = by_filter((8, side, side, 128), 128, SMALL)
    assert ("flatten n, y_x -> n_y_x\npair n_y_x -> " in text) == joined
    assert ("pair x -> " in text) != joined
    assert "x_last" not in text
