"""Overheads besides computing: a tiny call, a first call, building, generating, importing.  In fresh processes."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.bench.contestants import Contestant
from tools.bench.layers import TINY, Tensors
from tools.bench.results import Overhead
from tools.bench.session import measure

ROOT = Path(__file__).resolve().parent.parent.parent
TINY_SECONDS = 3.4e-6
"""The most that a tiny call should take where PyTorch is not there to compare with."""
FIRST_CALLS = Path(__file__).resolve().parent / "workers" / "first_calls.py"


def tiny_calls(contestants: Sequence[Contestant], rounds: int) -> list[Overhead]:
    """Return the time of a call that computes next to nothing; ours should take no longer than PyTorch's in the same
    run.
    """
    row = measure(TINY, 1, contestants, Tensors(), 3 * rounds)
    for title, reason in row.refused.items():
        print(f"refused by {title}: a tiny call: {reason}", file=sys.stderr)
    bound = min((s for title, s in row.seconds.items() if title.startswith("PyTorch")), default=TINY_SECONDS)
    own = contestants[0].title
    return [
        Overhead(f"a tiny call, {title}", seconds, bound if title == own else None)
        for title, seconds in row.seconds.items()
    ]


def builds(module: Path, repeats: int) -> list[Overhead]:
    """First calls with an empty cache and with a full one."""
    cold: list[dict[str, float]] = []
    warm: list[dict[str, float]] = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_first_calls(module, cache))
            warm.append(_first_calls(module, cache))
    return [
        Overhead("import of the generated module, beyond numpy", _median(warm, "import"), 100e-3),
        Overhead("first call of a process, nothing cached", _median(cold, "first")),
        Overhead("first call of a process, from the cache", _median(warm, "first")),
        Overhead("first call of another kernel: built", _median(cold, "other"), 100e-3),
        Overhead("first call of another kernel: from the cache", _median(warm, "other"), 5e-3),
    ]


def _first_calls(module: Path, cache: str) -> dict[str, float]:
    command = [sys.executable, str(FIRST_CALLS), str(module)]
    environment = {**os.environ, "OPGEN_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


def _median(runs: Sequence[dict[str, float]], key: str) -> float:
    return statistics.median(run[key] for run in runs)


def commands(repeats: int) -> list[Overhead]:
    """Measure the commands a person waits for."""
    with tempfile.TemporaryDirectory() as folder:
        generate = _command(["generate", str(ROOT / "specs"), "-o", folder], repeats)
    return [
        Overhead("opgen generate specs", generate, 10.0),
        Overhead("opgen --help", _command(["--help"], repeats)),
    ]


def _command(arguments: Sequence[str], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "opgen", *arguments], check=True, capture_output=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)
