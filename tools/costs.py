"""Times around a kernel: importing, the first call, building, loading, and calls that do no work.

    python -m tools.costs

The processes measured are new ones, with a kernel cache of their own; each figure is the best of a few.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 3

_PREAMBLE = """
import sys, time, timeit
import numpy as np
begin = time.perf_counter()
sys.path.insert(0, "generated")
import nn_ops
imported = time.perf_counter()
ones = lambda *shape: np.ones(shape, np.float32)
def call(size, channels, taps):
    begin = time.perf_counter()
    nn_ops.conv2d(ones(1, size, size, channels), ones(taps, taps, channels, channels), [1, 1, 1, 1], "SAME")
    return 1e3 * (time.perf_counter() - begin)
"""

_IMPORT = "print(1e3 * (imported - begin))"
_FIRST = "print(call(14, 64, 3))"
_ANOTHER = "call(7, 64, 3); print(call(14, 64, 3))"
_POINTWISE = "call(7, 64, 3); print(call(28, 64, 1))"
_CALL = """
x, f, options = ones(1, 4, 4, 1), ones(1, 1, 1, 1), {"strides": [1, 1, 1, 1], "padding": "SAME"}
run = nn_ops.prepare.conv2d(x, f, **options)
def best(call):
    return min(timeit.repeat(call, number=20000, repeat=5)) / 20000 * 1e6
print(best(lambda: nn_ops.conv2d(x, f, strides=[1, 1, 1, 1], padding="SAME")))
print(best(lambda: run(x, f)))
"""


def measured(program: str, cache: Path) -> list[float]:
    """Return the figures that a new process prints; it starts with the generated module imported."""
    environment = {**os.environ, "OPGEN_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT), "OPGEN_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _PREAMBLE + program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


def fresh(program: str, before: str | None = None) -> float:
    """Return the best time with a new cache each round, after another program has filled it."""
    found = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            if before is not None:
                measured(before, Path(folder))
            found.append(measured(program, Path(folder))[0])
    return min(found)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        usual, prepared = measured(_CALL, Path(folder))
    rows = (
        ("import of the generated module, beyond numpy", fresh(_IMPORT), "ms"),
        ("first call of a process, nothing cached", fresh(_FIRST), "ms"),
        ("first call of a process, another kernel cached", fresh(_FIRST, before=_POINTWISE), "ms"),
        ("first call of a process, this kernel cached", fresh(_FIRST, before=_FIRST), "ms"),
        ("another kernel built: 3x3", fresh(_ANOTHER), "ms"),
        ("another kernel built: 1x1", fresh(_POINTWISE), "ms"),
        ("another kernel from the cache", fresh(_ANOTHER, before=_ANOTHER), "ms"),
        ("a repeated call, 1x1x4x4", usual, "us"),
        ("a prepared call, 1x1x4x4", prepared, "us"),
    )
    for name, value, unit in rows:
        print(f"{name:50}{value:10.2f} {unit}")


if __name__ == "__main__":
    main()
