"""Counters: what a program sees of the policy, and what a process prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
sys.path.insert(0, "generated")
import numpy as np
import opgen
import nn_ops
from opgen.runtime.call import specialize
specialize.SPECIALIZATIONS = 2
for size in (3, 4, 5, 6, 3):
    nn_ops.conv2d(np.ones((1, size, size, 1), np.float32), np.ones((1, 1, 1, 1), np.float32), [1, 1, 1, 1], "SAME")
print(sorted(opgen.counters().items()))
"""


@pytest.mark.parametrize(
    ("policy", "counted"), [("auto", (2, 1, 2, 2)), ("always", (4, 0, 4, 0)), ("never", (0, 1, 0, 4))]
)
def test_the_policy_is_seen(tmp_path: Path, policy: str, counted: tuple[int, ...]) -> None:
    """Four sizes, room for two."""
    variables = {"OPGEN_CACHE_DIR": str(tmp_path), "OPGEN_SPECIALIZE": policy, "OPGEN_COUNTERS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    names = ("specialized", "generic", "specialized_plans", "generic_plans", "fallbacks")
    shown = ", ".join(f"{n}={c}" for n, c in zip(names, (*counted, 0), strict=True))
    assert done.stdout == f"[('Conv2D', Counters({shown}))]\n"
    head, line = done.stderr.splitlines()
    assert head.split() == ["op", "special", "kernels", "generic", "calls", "on", "special", "on", "generic", "broken"]
    assert line.split() == ["Conv2D", *map(str, counted), "0"]
