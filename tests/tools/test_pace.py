"""`tools/test` and `tools/try`: what they say without setting anything up, and the pace of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pace
from tests.support.repository import ROOT

CASES = """
import pytest

@pytest.mark.parametrize("n", range(30))
def test_many(n):
    pass

def test_one():
    pass
"""


@pytest.mark.parametrize("script", ["test", "try"])
def test_help_is_said_and_nothing_set_up(script: str, tmp_path: Path) -> None:
    for option in ("--help", "-h"):
        done = subprocess.run(
            [ROOT / "tools" / script, option], env={**os.environ, "OPGEN_VENV": str(tmp_path / "venv")},
            capture_output=True, text=True, check=True, timeout=20,
        )  # fmt: skip
        assert done.stdout.startswith(f"usage: tools/{script} ")
        assert not (tmp_path / "venv").exists()


def run(folder: Path, *arguments: str) -> str:
    (folder / "tests" / "bindings").mkdir(parents=True, exist_ok=True)
    (folder / "tests" / "bindings" / "test_a.py").write_text(CASES)
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.pace", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "--import-mode=importlib"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_of_costly_tests_one_case_runs_unless_all_shall(tmp_path: Path, workers: str) -> None:
    said = "less than a minute on an idle machine with"
    each = "1 worker" if workers == "0" else "2 workers"
    some = run(tmp_path, "-n", workers)
    assert f"2 tests, {said} {each}; --all runs all cases of those that take long, too" in some
    assert "2 passed" in some
    for arguments in (["--all"], ["tests/bindings"], ["-k", "many or one"]):
        every = run(tmp_path, "-n", workers, *arguments)
        assert f"31 tests, {said} {each}\n" in every
        assert "31 passed" in every


def test_quick_tests_come_first_for_each_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = {f"{name}.py": float(at) for at, name in enumerate("abcdef")}
    monkeypatch.setattr(pace, "seconds", cost.__getitem__)
    names = [f"{name}.py::test_{n}" for name in "fbdeca" for n in range(3)]
    assert sorted(pace.in_turn(names, 2)) == sorted(names)
    files = [pace.file_of(n)[0] for n in pace.in_turn(names, 2)[::3]]
    assert files == ["a", "c", "e", "b", "d", "f"]


def test_every_test_runs_in_one_case_at_least_and_each_folder_is_priced() -> None:
    folders = {f"tests/{p.relative_to(ROOT / 'tests').as_posix()}" for p in (ROOT / "tests").rglob("test_*.py")}
    assert all(pace.seconds(file) > 0 for file in folders)
    names = [f"{file}::test_x[{n}]" for file in sorted(folders) for n in range(3)]
    assert {n.partition("[")[0] for n in pace.chosen(names, False)} == {n.partition("[")[0] for n in names}
    assert pace.chosen(names, True) == names


def test_what_is_left_follows_the_pace_so_far() -> None:
    progress = object.__new__(pace.Progress)
    progress.work, progress.workers = 100.0, 2
    progress.done = 0.0
    assert progress.left(0.0) == pytest.approx(50)
    progress.done = 50.0
    assert progress.left(25.0) == pytest.approx(25)
    assert 65 < progress.left(75.0) <= 75
