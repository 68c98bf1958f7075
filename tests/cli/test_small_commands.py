"""`opgen doctor` and `opgen cache`; the signs of life of long commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from opgen.cli import progress
from tests.cli.conftest import ROOT, Run


def test_doctor_says_what_was_found(opgen: Run) -> None:
    result = opgen("doctor")
    assert (result.returncode, result.stderr) == (0, "")
    topics = {line.split("  ")[0] for line in result.stdout.split("\n") if line and not line.startswith(" ")}
    assert {"cpu", "cpu features", "llvm", "openmp", "threads", "cache", "cuda driver", "nvrtc"} <= topics
    assert max(map(len, result.stdout.split("\n"))) <= 100


def test_doctor_measures_when_asked(opgen: Run, tmp_path: Path) -> None:
    assert "GFLOP/s a core, " in opgen("doctor").stdout
    first = opgen("doctor", "--measure")
    assert (first.returncode, first.stderr) == (0, "")
    (kept,) = (tmp_path / "cache").glob("machine-*.json")
    assert first.stdout.startswith(f"measured; kept in {kept}\n")
    for output in (first.stdout, opgen("doctor").stdout):
        assert "read by one core (measured)" in output
        assert "assumed" not in output
    off = opgen("doctor", "--measure", OPGEN_CACHE="off").stdout
    assert off.startswith("measured, but not kept: the cache is off")


def test_the_cache_is_shown_and_cleared(opgen: Run, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    empty = opgen("cache", "info")
    assert (empty.returncode, empty.stdout) == (0, f"{cache}\n0 kernels, 0.0 MiB\n")
    assert opgen("generate", ROOT / "specs" / "nn_ops.op", "-o", "out").returncode == 0
    run = (
        "import sys; sys.path.insert(0, 'out'); import nn_ops, numpy;"
        "nn_ops.conv2d(numpy.ones((1, 2, 2, 1), 'f'), numpy.ones((1, 1, 1, 1), 'f'), [1, 1, 1, 1], 'SAME')"
    )
    import os
    import subprocess
    import sys

    env = {**os.environ, "PYTHONPATH": str(ROOT), "OPGEN_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", run], cwd=tmp_path, env=env, check=True)
    full = opgen("cache", "info").stdout
    assert full.startswith(f"{cache}\n")
    assert not full.startswith(f"{cache}\n0 kernels")
    cleared = opgen("cache", "clear")
    assert cleared.returncode == 0
    assert cleared.stdout.startswith("removed ")
    assert opgen("cache", "info").stdout == f"{cache}\n0 kernels, 0.0 MiB\n"


def test_a_cache_that_is_off(opgen: Run) -> None:
    assert opgen("cache", "info", OPGEN_CACHE="off").stdout == "the cache is off\n"
    assert opgen("cache", "clear", OPGEN_CACHE="off").stdout == "removed 0 kernels\n"


def test_a_word_for_the_cache_without_meaning(opgen: Run) -> None:
    done = opgen("cache", "info", OPGEN_CACHE="of")
    assert (done.returncode, done.stdout) == (1, "")
    assert "OPGEN_CACHE is 'of', expected on or off; did you mean 'off'?" in done.stderr
    assert "Traceback" not in done.stderr
    assert "OPGEN_CACHE is 'of'" in opgen("doctor", OPGEN_CACHE="of").stdout


def test_tools_of_the_repository_are_missed_politely(opgen: Run, tmp_path: Path) -> None:
    """From an installed copy, outside a checkout."""
    import shutil

    shutil.copytree(ROOT / "opgen", tmp_path / "installed" / "opgen", ignore=shutil.ignore_patterns("__pycache__"))
    result = opgen("bench", PYTHONPATH=str(tmp_path / "installed"))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "error: 'opgen bench' needs a checkout of opgen's repository; run it from inside one\n"
    )  # fmt: skip


def test_long_work_says_now_and_then_what_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where stderr is no terminal; nothing of what is done at once."""
    now = [0.0]
    monkeypatch.setattr("opgen.cli.progress.time.monotonic", lambda: now[0])
    with progress.bar("reading") as told:
        for seconds, done in ((1, 3), (11, 40), (12, 50), (22, 90)):
            now[0] = float(seconds)
            told(done, 100, "compiling kernels")
        now[0] = 40.0
        told(0, 0, "compiling 170 Java classes")
    assert capsys.readouterr().err.splitlines() == [
        "compiling kernels: 40 of 100",
        "compiling kernels: 90 of 100",
        "compiling 170 Java classes",
    ]
