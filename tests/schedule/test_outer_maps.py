"""Sums of outer products over maps, channels first: places joined in blocks, columns of vectors turned into panels."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from opgen.machine import Machine, typical
from opgen.machine.model import Cache
from opgen.schedule.auto import overrides
from opgen.schedule.auto.contraction import outer_maps
from tests.schedule.test_few import assert_right
from tests.schedule.test_transposed_maps import convolution

SMALL = replace(typical(64), l1=Cache(8 << 10, 8, 64, 1e11), l2=Cache(64 << 10, 8, 64, 1e11), latency=4, cores=1)
"""A machine with one unit, and a second cache that does not hold the operands."""


def by_filter(images: int, size: tuple[int, int], depths: tuple[int, int], machine: Machine, seed: int = 0) -> str:
    kernel = convolution("filter", images, size, (1, 1, *depths), 1, "float32")
    return assert_right(kernel, machine, seed)


@pytest.mark.parametrize("seed", range(8))
def test_outer_products_over_maps_are_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of one image, of blocks of places, of scalars in tiles the last of which is shorter, in other types.

    Maps as small as these are cheaper in other nests.
    """
    monkeypatch.setattr(outer_maps, "PLACES_WAITING", 1)
    first = overrides.Override("outer_maps", overrides.TILES, "by this test")
    monkeypatch.setattr(overrides, "OVERRIDES", (first, *overrides.OVERRIDES))
    rng = random.Random(seed)
    size = rng.choice([(5, 7), (8, 8), (3, 16), (1, 40), (12, 12)])
    depths = rng.choice([12, 25, 40]), rng.choice([64, 128])
    dtype, images = rng.choice(["float32", "float32", "float64"]), rng.choice([2, 3])
    small = Cache(rng.choice([4, 8, 16]) << 10, 8, 64, 1e11)
    kernel = convolution("filter", images, size, (1, 1, *depths), 1, dtype)
    text = assert_right(kernel, replace(SMALL, l2=small, cores=rng.choice([1, 2])), seed)
    assert "prefetch input at=" in text
    assert ("flatten y, x -> y_x" in text) == (size[0] > 1)


def test_blocks_of_places_leave_panels_in_their_share() -> None:
    """An eighth of the second cache: four vectors by 64 places."""
    machine = replace(SMALL, l2=replace(SMALL.l2, size=128 << 10))
    text = by_filter(3, (16, 8), (48, 64), machine)
    for step in (
        "flatten y, x -> y_x",
        "split k 64 tail=exact -> k_o, k_i",
        "split y_x 64 tail=exact -> y_x_o, y_x_i",
        "carry n at=k_o\ncarry y_x_o at=k_o",
        "split c 6 tail=exact -> c_o, c_i",
        "prefetch input at=y_x_o in=y_x_i",
        "prefetch grad_output at=y_x_o in=y_x_i",
        "pack grad_output 0, 2, 3, 1 at=k_o -> grad_output_panel",
        "parallel k_o",
    ):
        assert step in text


def test_tiles_of_fewer_vectors_leave_threads_their_share() -> None:
    machine = replace(SMALL, l2=replace(SMALL.l2, size=256 << 10), cores=2)
    text = by_filter(5, (16, 8), (48, 64), machine)
    assert "split k 32 tail=exact -> k_o, k_i" in text
    assert "split c 12 tail=exact -> c_o, c_i" in text
    assert "carry n at=k_o" in text
    assert "prefetch input at=n in=y_x" in text


@pytest.mark.parametrize(
    ("machine", "images", "size"),
    [
        (replace(SMALL, latency=8), 3, (16, 8)),  # two units
        (replace(SMALL, l2=Cache(1 << 20, 8, 64, 1e11)), 2, (16, 8)),  # the second cache holds the operands
        (SMALL, 8, (7, 7)),  # few places
    ],
)
def test_others_are_contractions(machine: Machine, images: int, size: tuple[int, int]) -> None:
    assert "prefetch" not in by_filter(images, size, (48, 64), machine)
