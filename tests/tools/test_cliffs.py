"""The search for cliffs: cases follow from their seeds, and one that takes longer is listed with its reproduction."""

from __future__ import annotations

import random

import pytest
from click.testing import CliRunner

from tools.cliffs import __main__ as cliffs
from tools.cliffs.measure import in_turns
from tools.cliffs.pairs import Pair


def loops(count: int) -> int:
    return sum(range(count))


def planted(rng: random.Random) -> Pair:
    count = rng.choice([2000, 3000])
    return Pair(f"sums of {count}", ("long", lambda: loops(20 * count)), ("short", lambda: loops(count)), same=False)


def test_what_takes_longer_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cliffs, "KINDS", {"forms": (planted,)})
    found = CliRunner().invoke(cliffs.main, ["forms", "--cases", "1", "--seed", "7"])
    assert found.exit_code == 1
    assert "1 ratios over 1.5" in found.stdout
    assert "long" in found.stdout
    assert "python -m tools.cliffs forms --cases 1 --seed 7" in found.stdout


def test_work_counts() -> None:
    first, second = in_turns(lambda: loops(40_000), lambda: loops(10_000))
    assert 2 < first / second < 8


def test_results_that_differ_are_told() -> None:
    pair = Pair("numbers", ("one", lambda: 1.0), ("two", lambda: 2.0))
    with pytest.raises(ValueError, match=r"the results of numbers differ by 1\.0"):
        cliffs._require_same(pair)


@pytest.mark.parametrize("kind", sorted(cliffs.KINDS))
def test_a_case_follows_from_its_seed(kind: str) -> None:
    one, two = (cliffs._pair(kind, 3) for _ in range(2))
    assert one.about == two.about
    assert (one.work, one.same) == (two.work, two.same)
