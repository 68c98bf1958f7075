"""Cases in a process of their own, which a crash or a hang may end."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace

from tests.verification.random_models.case import Outcome, attempt
from tests.verification.random_models.contestants import ALONE

PATIENCE = 120.0
"""Seconds after which a case is given up."""


def work(first: int, last: int) -> None:
    """Run cases one after another; print a line when one begins and one when it ends."""
    for seed in range(first, last):
        print(seed, flush=True)
        try:
            found = attempt(seed)
        except Exception as error:  # whatever comes out is what is looked for
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} at {place.filename.rpartition('/')[2]}:{place.lineno}"
            found = Outcome("broken", kind, traceback.format_exc()[-3000:])
        print(json.dumps([found.verdict, found.operator, found.detail]), flush=True)


def outcomes(first: int, last: int) -> Iterator[tuple[int, Outcome]]:
    """Yield each seed with its outcome; the process starts again after a case that ends it or never ends."""
    while first < last:
        command = [sys.executable, "-m", "tests.verification.random_models", "--worker", str(first), str(last)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            begun = None
            for line in _lines(process):
                if begun is None:
                    begun = int(line)
                    continue
                yield begun, Outcome(*json.loads(line))
                first, begun = begun + 1, None
            status = process.wait()
        if first < last:
            yield first, _without_peer(first, status)
            first += 1


def _without_peer(seed: int, status: int) -> Outcome:
    """Return the outcome of a case that ended the process, which may be ONNX Runtime's fault: it is not asked."""
    broken = Outcome("broken", f"the process ended with {status}", "a crash, or no result in time")
    if ALONE in os.environ:
        return broken
    os.environ[ALONE] = "1"
    try:
        found = next(outcome for _, outcome in outcomes(seed, seed + 1))
    finally:
        del os.environ[ALONE]
    return replace(found, detail=f"{found.detail}\nONNX Runtime ends the process")


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """The lines of a process; one that says nothing for too long is killed."""
    assert process.stdout is not None
    while select.select([process.stdout], [], [], PATIENCE)[0]:
        line = process.stdout.readline()
        if not line:
            return
        yield line
    process.kill()
