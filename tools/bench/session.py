"""One sitting: every contestant prepares the same call, then they take turns until each has its samples."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tools.bench import limits
from tools.bench.contestants import Contestant, WorkerError
from tools.bench.layers import Case, DType, Tensors
from tools.bench.results import Row

Times: TypeAlias = dict[str, list[float]]

ROUNDING: dict[DType, float] = {"float32": 2.0**-24, "float64": 2.0**-53, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""The unit roundoff of each type."""
SUMMING: dict[DType, float] = {"float32": 2.0**-24, "float64": 2.0**-53, "bfloat16": 2.0**-24, "float16": 2.0**-24}
"""Unit roundoff of the type in which sums are made."""

LONG = 0.015
"""Seconds of a call from which one sample a turn is enough."""


def measure(
    case: Case,
    threads: int,
    contestants: Sequence[Contestant],
    tensors: Tensors,
    rounds: int,
    yardsticks: Sequence[Contestant] = (),
) -> Row:
    """Medians over `rounds` turns of up to three samples.  The others' results are checked against the first's.

    The `yardsticks` (the variants of a `limits_worker`) take part in the turns, and give the row's pace.
    """
    refused: dict[str, str] = {}
    ready: dict[str, Contestant] = {}
    samples: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        results = {c.title: Path(folder) / f"{number}.npy" for number, c in enumerate(contestants)}
        for c in contestants:
            try:
                samples[c.title] = 1 if c.prepare(case, tensors, results[c.title]) > LONG else 3
                ready[c.title] = c
            except WorkerError as error:
                refused[c.title] = str(error)
        disagree = differences(case, {title: results[title] for title in ready})
    measures = {c.variant: c for c in yardsticks}
    for variant, c in measures.items():
        c.prepare(case, tensors, None)
        samples[variant] = 1
    ready = {**measures, **ready}
    taken = _take_turns(ready, refused, rounds, samples)
    for c in ready.values():
        c.forget()
    medians = {title: statistics.median(times) for title, times in taken.items()}
    paces = {name: medians.pop(name) for name in measures if name in medians}
    rates = limits.pace(threads, paces) if paces.keys() == set(limits.VARIANTS) else None
    spread = {title: _spread(taken[title]) for title in medians}
    return Row(case, threads, medians, spread, refused, disagree, rates)


def _take_turns(ready: dict[str, Contestant], refused: dict[str, str], rounds: int, samples: dict[str, int]) -> Times:
    """Return each contestant's samples; each round begins with another of them.  One that fails is no longer ready."""
    taken: Times = {title: [] for title in ready}
    order = list(ready)
    for turn in range(rounds if ready else 0):
        first = turn % len(order)
        for title in order[first:] + order[:first]:
            if title not in ready:
                continue
            try:
                taken[title] += ready[title].time(samples[title])
            except WorkerError as error:
                refused[title] = str(error)
                del ready[title], taken[title]
    return taken


def _spread(times: list[float]) -> float:
    """Return the distance of the quartiles over the median."""
    if len(times) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / middle


def differences(case: Case, results: dict[str, Path]) -> dict[str, float]:
    """Of the results that differ from the first by more than rounding can explain, the largest difference.

    Each may be 8 roundoffs of the sum of the terms' absolute values away from the truth, and once its own roundoff; for
    standard normal arguments that sum is about 0.64 a term and stays below 2 a term.
    """
    if len(results) < 2:
        return {}
    (_, first), *others = results.items()
    ours = np.load(first)
    terms = case.flops / 2 / max(1, ours.size)
    summing = 8 * SUMMING[case.dtype] * max(8.0, 2 * terms)
    limit = 2 * (summing + ROUNDING[case.dtype] * float(np.abs(ours).max(initial=0.0)))
    found = {}
    for title, path in others:
        theirs = np.load(path)
        gap = float(np.abs(ours - theirs).max(initial=0.0)) if theirs.shape == ours.shape else float("inf")
        if not gap <= limit:
            found[title] = gap
    return found
