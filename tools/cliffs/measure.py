"""Times of calls in turns: seconds of this thread, so that others on the machine count for little."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

LEAST = 2e-3
"""Seconds of a turn, of as many calls as that takes."""
TURNS = 5


def in_turns(first: Callable[[], object], second: Callable[[], object], turns: int = TURNS) -> tuple[float, float]:
    """Return the median seconds of each call, made in turns."""
    calls = (first, second)
    counts = []
    for call in calls:
        call()
        counts.append(max(1, int(LEAST / max(_seconds(call, 1), 1e-9))))
    found = [[_seconds(call, count) for call, count in zip(calls, counts, strict=True)] for _ in range(turns)]
    return median(a for a, _ in found), median(b for _, b in found)


def _seconds(call: Callable[[], object], count: int) -> float:
    begun = time.thread_time()
    for _ in range(count):
        call()
    return (time.thread_time() - begun) / count
