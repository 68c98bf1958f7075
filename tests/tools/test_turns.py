"""Calls beside those of another commit: both are measured in turns, and what is slower is told first."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tools.bench.contestants import ROOT, own_worker
from tools.bench.layers import Case
from tools.turns import Turns, main, measured, report, some_cases


def test_both_checkouts_are_measured() -> None:
    small = Case("small", "dense", 1, 6, 7, 3, 8, 3, 3, 2, "SAME")
    (turns,) = measured([small], (ROOT, ROOT), 1, 3)
    assert turns.name == "small/1/forward"
    assert min(turns.other, turns.this) > 0
    assert turns.ratio == turns.other / turns.this


def test_a_worker_runs_the_code_of_its_own_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if there is another one in the current folder."""
    monkeypatch.chdir(ROOT)
    package = tmp_path / "tools" / "bench" / "workers"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    answer = {"ok": True, "library": "the other", "version": "0", "variants": ["a"]}
    (package / "start.py").write_text(f"import json\ninput()\nprint(json.dumps({answer}), flush=True)\ninput()\n")
    worker = own_worker(ROOT / "generated" / "nn_ops.py", 1, tmp_path)
    worker.close()
    assert (worker.library, worker.variants) == ("the other", ("a",))


def test_what_is_slower_is_told_first() -> None:
    lines = list(report([Turns("a", 1e-6, 1e-6), Turns("b", 1e-6, 2e-6), Turns("c", 4e-6, 2e-6)]))
    assert lines == [" 0.50  b: 1 us, now 2", "1.000 times as fast in the geometric mean of 3 calls"]


def test_calls_follow_from_the_seed() -> None:
    assert some_cases(5, 1) == some_cases(5, 1) != some_cases(5, 2)


def test_calls_that_a_file_names() -> None:
    """Those of the layers; rows of algorithms and of other ops are none."""
    rows = "r50_4_1x1/1/forward: 64x1\nr50_4_1x1/1/forward by another: 64x1\nMatMul 8x8: 64x1\n3 of 4 rows changed\n"
    assert [case.name for case in some_cases(9, 0, rows)] == ["r50_4_1x1/1/forward"]


def test_a_file_that_names_no_calls(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("none\n")
    made = CliRunner().invoke(main, ["HEAD", "--rows", str(tmp_path / "rows")])
    assert made.exit_code == 2
    assert "argument 'rows': expected a name of a call of the layers, given none" in made.output.replace("\n", " ")


@pytest.mark.parametrize("commit", ["no-such-commit", "--help-me"])
def test_a_commit_that_is_none(commit: str) -> None:
    made = CliRunner().invoke(main, ["--count", "1", "--", commit])
    assert made.exit_code == 2
    assert f"argument 'commit': expected a commit of this repository, given '{commit}'" in made.output.replace(
        "\n", " "
    )
