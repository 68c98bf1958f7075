"""Products of few places with a large table: the table is read as scalars, what places read and write is turned."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from opgen.machine import Machine, typical
from opgen.machine.model import Cache
from tests.schedule.test_auto import assert_scheduled_is_the_same
from tests.schedule.test_products import dense

AFAR = replace(
    typical(64),
    l1=Cache(48 << 10, 12, 64, 220e9),
    l2=Cache(288 << 10, 8, 64, 118e9),
    l3=Cache(32 << 20, 16, 64, 40e9),
)
"""A machine with a small second cache, and little from beyond it."""
CALL = ((1, 7, 7, 320), 320)


def is_taken(text: str) -> bool:
    return "transpose output_transposed" in text or "transpose grad_input_transposed" in text


@pytest.mark.parametrize("seed", range(10))
def test_any_size(seed: int) -> None:
    """Also with places left over, images, and reductions that are no whole vectors."""
    rng = random.Random(seed)
    image = rng.choice([(1, 7, 7), (1, 5, 10), (1, 3, 11), (3, 4, 4), (2, 1, 17)])
    dtype = rng.choice(["float32", "float32", "float64"])
    call = dense((*image, rng.choice([320, 384, 480])), rng.choice([318, 320, 322]), "input", dtype)
    assert is_taken(assert_scheduled_is_the_same(call, seed, AFAR))


def test_places_left_over_have_lanes_along_the_sum() -> None:
    text = assert_scheduled_is_the_same(dense(*CALL, "input"), 0, AFAR)
    for step in (
        "flatten h, w -> h_w",
        "partition h_w -1 -> left",
        "split h_w 48 tail=exact",
        "prefetch filter at=c_o in=k_o",
        "pack grad_output 0, 1, 3, 2 in=h_w_o -> grad_output_transposed",
        "rfactor k_left 64 -> acc_left_partial",
        "pitch grad_output_transposed 3 64",
    ):
        assert step in text
    assert "left" not in assert_scheduled_is_the_same(dense((1, 6, 8, 320), 320, "input"), 0, AFAR)


def test_a_tile_leaves_room_in_the_sets_of_the_first_cache() -> None:
    """Rows a multiple of 4 KiB apart share one of them."""
    call = dense((1, 4, 8, 128), 1024, "input")
    assert is_taken(assert_scheduled_is_the_same(call, 0, AFAR))
    few = replace(AFAR, l1=replace(AFAR.l1, size=32 << 10, ways=8))
    assert not is_taken(assert_scheduled_is_the_same(call, 0, few))
    three = replace(few, l2=replace(few.l2, size=448 << 10))  # of three vectors of places by four rows
    assert "split c_r 4 tail=exact" in assert_scheduled_is_the_same(dense((1, 6, 8, 128), 1024, "input"), 0, three)


@pytest.mark.parametrize(
    ("image", "outputs", "machine"),
    [
        (*CALL, replace(AFAR, l2=replace(AFAR.l2, size=1 << 20))),  # the table is near
        (*CALL, replace(AFAR, l3=replace(AFAR.l3, bytes_per_second=1e12))),  # it comes fast
        ((1, 12, 12, 320), 320, AFAR),  # it is not what is large
        ((1, 5, 5, 320), 320, AFAR),  # many lanes would stay empty
        ((1, 3, 5, 320), 320, AFAR),  # no vector is full
        (*CALL, replace(AFAR, cores=16)),  # too few blocks for all threads
    ],
)
def test_other_nests_are_left_alone(image: tuple[int, ...], outputs: int, machine: Machine) -> None:
    assert not is_taken(assert_scheduled_is_the_same(dense(image, outputs, "input"), 0, machine))
