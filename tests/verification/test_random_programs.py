"""Random programs by `tests.verification.random_programs`: the first of them are right, and what is wrong is seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgen.loop.nodes import Kernel
from tests.verification.random_programs import check
from tests.verification.random_programs.check import judge
from tests.verification.random_programs.generate import generate

ROOT = Path(__file__).parents[2]
PART = 10
SEEDS = range(0, 100, PART)


@pytest.mark.parametrize("seed", [30374, 30696, 31875, 40408, 41215, 51920])
def test_programs_that_once_broke(seed: int) -> None:
    """Nothing lies across a nest that reads nothing; lanes along places that take turns; a condition that gradients
    lost; casts to int64 in conditions; factors that are one when loops are joined;
    a row of which one place is read.
    """
    assert not judge(generate(seed)).failures


@pytest.mark.parametrize("first", SEEDS)
def test_programs_are_right(first: int) -> None:
    """Kernels, interpreter and gradients agree with the mathematics, and the bounds say something of most elements."""
    compared = unknown = refused = 0
    for seed in range(first, first + PART):
        verdict = judge(generate(seed))
        assert not verdict.failures, f"python -m tests.verification.random_programs --seed {seed} --count 1 --show"
        compared, unknown = compared + verdict.compared, unknown + verdict.unknown
        refused += verdict.refused != ""
    assert compared > unknown
    assert refused <= PART // 3


def test_a_program_is_the_same_each_time() -> None:
    assert generate(7) == generate(7)
    assert generate(7).text != generate(8).text


def test_a_wrong_element_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One element of a kernel's result that is off by little more than roundings."""
    right = check.run_kernel

    def wrong(kernel: Kernel, arrays: Mapping[str, Any], parameters: Mapping[str, Any], **rest: Any) -> dict[str, Any]:
        found = right(kernel, arrays, parameters, **rest)
        for array in found.values():
            if array.dtype == np.float32 and array.size:
                array.flat[-1] *= np.float32(1 + 1e-4)
        return found

    monkeypatch.setattr(check, "run_kernel", wrong)
    seen = [f.kind for seed in range(30) for f in judge(generate(seed)).failures if "special" in f.stage]
    assert seen.count("wrong result") >= 5


def test_the_command_tells_how_to_see_a_failure_again() -> None:
    command = [sys.executable, "-m", "tests.verification.random_programs", "--seed", "6", "--count", "2", "--show"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert generate(6).text in done.stdout
    assert re.search(
        r"^2 programs from seed 6 in \d+ s: 0 wrong, \d+ refused; \d+ elements compared", done.stdout, re.M
    )
