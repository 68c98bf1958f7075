"""Contractions whose results fill no whole number of tiles: what is left over is a nest of its own."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from opgen.machine import Machine
from opgen.spec import load
from tests.harness import Call
from tests.support.convolutions import assert_scheduled_is_the_same
from tests.support.epilogues import AFAR, SMALL, WIDE, conv, made, rows, slope


@pytest.mark.parametrize("machine", [WIDE, SMALL, AFAR])
@pytest.mark.parametrize("seed", range(6))
def test_any_width(seed: int, machine: Machine) -> None:
    rng = random.Random(seed)
    image = (rng.choice([1, 2]), rng.choice([7, 12]), rng.choice([12, 14, 19, 28]), rng.choice([48, 70, 128]))
    outputs, dtype = rng.choice([70, 80, 150, 197, 210, 270, 300]), rng.choice(["float32", "float32", "float64"])
    for call in (conv(image, outputs, dtype=dtype), slope(image, outputs, dtype), rows(image, outputs, dtype)):
        assert_scheduled_is_the_same(call, seed, machine)
        assert_scheduled_is_the_same(made(call), seed, machine)


def test_whole_tiles_are_scheduled_as_if_nothing_was_left() -> None:
    for left in (1, 16, 44):
        text = assert_scheduled_is_the_same(conv((1, 12, 12, 64), 256 + left), 0, WIDE, "ragged")
        assert text.startswith(f"reorder k, y, x\nflatten y, x -> y_x\npartition k -{left} -> left\n")
        assert "fill filter_panel in=c" in text
        assert "left" in text.split("fill")[1]


def test_sums_of_outer_products() -> None:
    text = assert_scheduled_is_the_same(slope((1, 12, 28, 128), 155), 0, WIDE, "ragged")
    assert "partition k -27 -> left" in text
    assert "carry" in text


def test_sums_with_one_loop_over_results_are_no_products() -> None:
    """Columns that are added up, their number no multiple of a tile's."""
    plain = load(Path(__file__).parents[1] / "specs" / "plain.op")
    text = assert_scheduled_is_the_same(Call(plain, plain.op("SumFirst"), {"x": (784, 300)}, dtype="float32"), 0, WIDE)
    assert "left" not in text


@pytest.mark.parametrize("left", [1, 17, 37])
def test_few_places_are_cut_for_other_tiles(left: int) -> None:
    """Too few places for a tile of four vectors: two of them go by once for all places, all the same."""
    text = assert_scheduled_is_the_same(conv((1, 1, 32, 96), 448 + left), 0, AFAR, "ragged")
    main, rest = text.split(f"partition k -{left} -> left\n")[1].split("parallel k_o")
    assert "reorder k_o, x_o, c, x_i, k_v, k_l" in main
    assert "left" in rest


def test_few_whole_tiles_are_not_worth_two_nests() -> None:
    assert "left" not in assert_scheduled_is_the_same(conv((1, 12, 12, 64), 100), 0, WIDE)


def test_lanes_stay_along_results_if_hardly_one_is_idle() -> None:
    """Rather than along places, of which all lanes would be at work, but whose results lie apart."""
    text = assert_scheduled_is_the_same(conv((1, 1, 512, 40), 300), 0, WIDE)
    assert "transpose output" not in text
