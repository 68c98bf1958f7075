"""A wrong environment variable is an error of one line, whatever command computes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
