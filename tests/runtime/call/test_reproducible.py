"""The same call gives the same bits in every process, under the policies of which that is promised."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SEED = 3

_PROGRAM = """
import hashlib, sys
import numpy as np
from opgen.runtime.call import specialize
from opgen.runtime import threads
from generated import nn_ops

specialize.SPECIALIZATIONS = 2
specialize.KEPT = 3
threads.set_num_threads(int(sys.argv[1]))
r = np.random.default_rng(1)
digests = {}
for size in map(int, sys.argv[2:]):
    r = np.random.default_rng(size)
    x, f = r.standard_normal((1, size, size, 24), np.float32), r.standard_normal((3, 3, 24, 16), np.float32)
    y = nn_ops.conv2d(x, f, [1, 1, 1, 1], "SAME")
    digests.setdefault(size, set()).add(hashlib.sha256(y.tobytes()).hexdigest())
for size, found in sorted(digests.items()):
    print(size, *sorted(found))
"""


@pytest.mark.parametrize("policy", ["always", "never"])
def test_what_was_called_before_makes_no_difference(policy: str, tmp_path: Path) -> None:
    environment = {**os.environ, "OPGEN_CACHE_DIR": str(tmp_path), "OPGEN_SPECIALIZE": policy, "PYTHONPATH": str(ROOT)}
    r = random.Random(SEED)
    sizes = [5, 7, 9, 11, 12]
    seen = set()
    for _ in range(4):
        calls = r.choices(sizes, k=8) + r.sample(sizes, len(sizes))
        command = [sys.executable, "-c", _PROGRAM, str(r.choice((1, 2, 3))), *map(str, calls)]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        seen.add(done.stdout)
    assert len(seen) == 1, f"seed {SEED}"
    (text,) = seen
    assert [len(line.split()) for line in text.splitlines()] == [2] * len(sizes), f"seed {SEED}"
