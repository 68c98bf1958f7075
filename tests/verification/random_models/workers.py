"""Cases in a process of their own, which a crash or a hang may end."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import traceback
from collections.abc import Iterator

from tests.verification.random_models.case import Outcome, attempt

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
            yield first, Outcome("broken", f"the process ended with {status}", "a crash, or no result in time")
            first += 1


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """The lines of a process; one that says nothing for too long is killed."""
    assert process.stdout is not None
    while select.select([process.stdout], [], [], PATIENCE)[0]:
        line = process.stdout.readline()
        if not line:
            return
        yield line
    process.kill()
