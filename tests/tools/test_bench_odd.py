"""Layers made from a seed: the same ones again, of every sort that they promise, and measured like those of a file."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path

import pytest
from click.testing import CliRunner

from tools.bench import __main__ as bench
from tools.bench.layers import Choice, Layer, cases_of
from tools.bench.odd import PRIMES, odd_layers
from tools.bench.results import read_json

SORTS: dict[str, Callable[[Layer], bool]] = {
    "odd and prime sizes": lambda x: x["in_height"] in PRIMES and x["in_width"] in PRIMES and x["kind"] == "dense",
    "thin windows": lambda x: 1 in (taps := (x["filter_height"], x["filter_width"])) and max(taps) > 5,
    "groups of few channels": lambda x: "groups" in x and x["in_channels"] // x["groups"] <= 12,
    "multipliers": lambda x: x.get("channel_multiplier", 1) > 1,
    "very large windows": lambda x: x["filter_height"] * x["filter_width"] > 100,
    "large strides": lambda x: x["stride"] > 2 and x["in_height"] not in PRIMES,
}


@pytest.mark.parametrize("sort", SORTS)
def test_every_sort_has_its_share_of_forty(sort: str) -> None:
    assert sum(map(SORTS[sort], odd_layers(40, 7))) >= 6


def test_a_seed_gives_the_same_layers_under_names_of_their_own() -> None:
    layers = odd_layers(40, 7)
    assert odd_layers(12, 7) == layers[:12] != odd_layers(12, 8)
    assert len({layer["name"] for layer in layers}) == 40


def test_windows_fit_and_groups_are_whole() -> None:
    for case in cases_of(odd_layers(300, 0), Choice()):
        assert prod(case.output_shape) > 0, case
        assert case.in_channels % case.groups == case.out_channels % case.groups == 0, case


def test_they_are_measured_in_place_of_a_file(tmp_path: Path) -> None:
    name, output = odd_layers(3, 7)[2]["name"], tmp_path / "odd.json"
    words = ("--odd", "3", "--seed", "7", "--layer", name, "--direction", "input", "--batch", "1", "--threads", "1")
    result = CliRunner().invoke(bench.main, [*words, "--rounds", "1", "--no-overheads", "--json", str(output)])
    assert result.exit_code == 0, result.output
    (row,) = read_json(output).rows
    assert row.case.name == f"{name}/1/input"


def test_a_name_of_another_seed_is_refused() -> None:
    result = CliRunner().invoke(bench.main, ["--odd", "3", "--seed", "8", "--layer", odd_layers(3, 7)[2]["name"]])
    assert result.exit_code
    assert "in --odd 3 --seed 8" in result.output
