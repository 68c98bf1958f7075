"""A wrong environment variable is an error of one line, whatever command computes."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from opgen.cache.settings import SETTINGS
from tests.cli.conftest import ROOT

WRONG = {
    "OPGEN_NUM_THREADS": ("abc", "expected a number of threads from 1 to 1024, given 'abc'"),
    "OPGEN_THREADING": ("ptread", "expected openmp, pthread or serial, given 'ptread'"),
    "OPGEN_ALGORITHMS": ("some", "is 'some', expected default, off or all"),
    "OPGEN_SPECIALIZE": ("x", "is 'x', expected auto, always or never"),
    "OPGEN_DEVICE": ("gpu", "expected cpu, cuda or cuda:N, given 'gpu'"),
    "OPGEN_PERF": ("maps", "is 'maps', expected map"),
    "OPGEN_CACHE": ("maybe", "is 'maybe', expected on or off"),
    "OPGEN_CACHE_MIB": ("-1", "expected a whole number of MiB, given '-1'"),
    "OPGEN_MODEL_MIB": ("much", "expected a whole number, given 'much'"),
    "OPGEN_COUNTERS": ("yes", "expected 1 or 0, given 'yes'"),
    "OPGEN_DEBUG": ("2", "expected 1 or 0, given '2'"),
    "OPGEN_FALLBACK": ("rase", "expected raise or nothing, given 'rase'; did you mean 'raise'?"),
    "OPGEN_MODEL_GOPS": ("1e9", "expected a whole number, given '1e9'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_variable_is_named_in_one_line(name: str) -> None:
    value, message = WRONG[name]
    command = "bench" if name == "OPGEN_NUM_THREADS" else "inspect"
    done = subprocess.run(
        [sys.executable, "-m", "opgen", command, *(["Conv2D"] if command == "inspect" else [])],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {name}")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [("run", "--help"), ("inspect", "-h"), ("--help",)])
def test_help_is_there_whatever_is_set(arguments: tuple[str, ...]) -> None:
    env = {**os.environ, **{name: value for name, (value, _) in WRONG.items()}}
    command = [sys.executable, "-m", "opgen", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: ")


def test_the_page_has_every_variable() -> None:
    """The table of the settings, the page's, and what the code reads are the same."""
    package = ROOT / "opgen"
    page = (package / "runtime" / "README.md").read_text()
    rows = dict(re.findall(r"^\| `(OPGEN_\w+)` \| (.*) \|$", page, re.M))
    assert set(rows) == set(SETTINGS)
    for name, words in SETTINGS.items():
        assert all(f"`{word}`" in rows[name] for word in words if word != "0"), name
    read = {n for p in package.rglob("*.py") for n in re.findall(r'"(OPGEN_[A-Z_]+)"', p.read_text())}
    assert read - set(SETTINGS) == set()
