"""In a fresh process: imports the generated module, calls an op, then calls it so that it needs another kernel.

`first_calls.py GENERATED_MODULE.py` prints {"import", "first", "other"}: seconds.
"""

from __future__ import annotations

import importlib
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np


def main(module: Path) -> None:
    data = np.ones((1, 28, 28, 64), np.float32)
    weights = np.ones((3, 3, 64, 64), np.float32)
    sys.path.insert(0, str(module.parent))
    times = [time.perf_counter()]
    ops = importlib.import_module(module.stem)
    times.append(time.perf_counter())
    ops.conv2d(data, weights, [1, 1, 1, 1], "SAME")
    times.append(time.perf_counter())
    ops.conv2d(data, weights, [1, 2, 2, 1], "SAME")
    times.append(time.perf_counter())
    steps = (later - earlier for earlier, later in itertools.pairwise(times))
    print(json.dumps(dict(zip(("import", "first", "other"), steps, strict=True))))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
