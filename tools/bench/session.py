"""One sitting: every contestant prepares the same call, then they take turns until each has its samples."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tools.bench.contestants import Contestant, WorkerError
from tools.bench.layers import Case

Times: TypeAlias = dict[str, list[float]]

ROUNDING = 2.0**-24
"""The unit roundoff of float32."""


@dataclass(frozen=True)
class Row:
    """A case on a number of threads: the median seconds of a call for each contestant that did it, in order.

    `refused` holds why a contestant could not; `disagree` the largest difference from our result of those that
    differ by more than rounding explains.
    """

    case: Case
    threads: int
    seconds: dict[str, float]
    refused: dict[str, str] = field(default_factory=dict)
    disagree: dict[str, float] = field(default_factory=dict)


def measure(
    case: Case, threads: int, contestants: Sequence[Contestant], seed: int, rounds: int, samples: int = 3
) -> Row:
    """Medians over `rounds` turns of `samples` samples each.  The others' results are checked against the first's."""
    refused: dict[str, str] = {}
    ready: list[Contestant] = []
    with tempfile.TemporaryDirectory() as folder:
        results = {c.title: Path(folder) / f"{number}.npy" for number, c in enumerate(contestants)}
        for contestant in contestants:
            try:
                contestant.prepare(case, seed, threads, results[contestant.title])
                ready.append(contestant)
            except WorkerError as error:
                refused[contestant.title] = str(error)
        disagree = _differences(case, [results[c.title] for c in ready], [c.title for c in ready])
    taken = _take_turns(case, threads, ready, seed, rounds, samples)
    medians = {title: statistics.median(times) for title, times in taken.items()}
    return Row(case, threads, medians, refused, disagree)


def _take_turns(case: Case, threads: int, ready: list[Contestant], seed: int, rounds: int, samples: int) -> Times:
    """Each contestant's samples.  A worker holds one prepared call: it prepares again when its variant changes."""
    taken: Times = {c.title: [] for c in ready}
    holds = {id(c.worker): c for c in ready}
    for turn in range(rounds if ready else 0):
        for contestant in ready[turn % len(ready) :] + ready[: turn % len(ready)]:
            if holds[id(contestant.worker)] is not contestant:
                contestant.prepare(case, seed, threads, None)
                holds[id(contestant.worker)] = contestant
            taken[contestant.title] += contestant.time(samples)
    return taken


def _differences(case: Case, results: Sequence[Path], titles: Sequence[str]) -> dict[str, float]:
    """Of the results that differ from the first by more than rounding can explain, the largest difference.

    Each may be 8 roundoffs of the sum of the terms' absolute values away from the truth; for standard normal arguments
    that sum is about 0.64 a term and stays below 2 a term.
    """
    if len(results) < 2:
        return {}
    ours = np.load(results[0])
    terms = case.flops / 2 / max(1, ours.size)
    limit = 2 * 8 * ROUNDING * max(8.0, 2 * terms)
    found = {}
    for path, title in zip(results[1:], titles[1:], strict=True):
        theirs = np.load(path)
        gap = float(np.abs(ours - theirs).max()) if theirs.shape == ours.shape else float("inf")
        if not gap <= limit:
            found[title] = gap
    return found
