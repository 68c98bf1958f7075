"""Where threads cannot be made, OpenMP's runtimes end the process: kernels run all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opgen.runtime.threads import openmp

ROOT = Path(__file__).resolve().parents[3]

_PROGRAM = """
import resource
import numpy as np
from opgen.runtime import threads
from tests.bindings.modules import OPS, generated

x, f = np.ones((1, 64, 64, 32), np.float32), np.ones((3, 3, 32, 32), np.float32)
prepare = lambda: generated(OPS).prepare.conv2d(x, f, [1, 1, 1, 1], "SAME")
threads.set_num_threads(1)
expected = prepare()(x, f)
threads.set_num_threads(64)
run, out = prepare(), np.empty_like(expected)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = size + (24 << 20)  # of a few threads' stacks
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
for _ in range(3):
    run(x, f, out=out)
    assert np.array_equal(out, expected)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
run(x, f, out=out)
assert np.array_equal(out, expected)
print(threads.means())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
@pytest.mark.parametrize("means", ["openmp", "pthread"])
def test_a_kernel_runs_where_threads_cannot_be_made(means: str) -> None:
    if means == "openmp" and openmp.find() is None:
        pytest.skip("no OpenMP runtime")
    own = {"PYTHONPATH": str(ROOT), "OPGEN_THREADING": means}
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"} | own
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, means), done.stderr
