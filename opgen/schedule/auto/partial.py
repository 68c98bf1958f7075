"""Reductions in partial results: in vector lanes first, and then as a tree."""

from __future__ import annotations

from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Partition, Rfactor, Split, Step, Unroll, Vectorize


def partial_sums(extent: int | None, lanes: int, chains: int) -> int:
    """Return the number of partial results of a reduction.

    `chains` vectors hide the latency of an operation; a short loop has fewer, and a very short one 0.
    """
    count = chains * lanes
    while extent is not None and count > extent:
        count //= 2
    return count if count >= lanes else 0


def in_partial_sums(trial: Trial, loop: str, extent: int | None, partial: str, lanes: int, chains: int) -> bool:
    """Reduce `extent` terms in as many partial results as pay; return False if none do, or it is illegal."""
    count = partial_sums(extent, lanes, chains)
    if count < 2 or not trial.take(Rfactor(loop, count, partial)):
        return False
    if extent is None or (extent % count and extent > count):
        trial.take(Partition(f"{loop}_o", (-1,)))  # only the last step needs masks
    _in_lanes(trial, f"{loop}_l", count, lanes)
    tree_in_lanes(trial, partial, count, lanes)
    return True


def tree_in_lanes(trial: Trial, partial: str, count: int, lanes: int) -> None:
    """Add up `count` partial results in a tree, in lanes as far as that is legal."""
    _in_lanes(trial, f"{partial}_i", count, lanes)
    width = count // 2
    while width > 1:
        trial.take(Vectorize(f"{partial}_{width}"))
        width //= 2


def _in_lanes(trial: Trial, loop: str, factor: int, lanes: int) -> None:
    steps: list[Step] = [Vectorize(loop)]
    if factor > lanes:
        inner = f"{loop}_v"
        steps = [Split(loop, lanes, "exact", f"{loop}_u", inner), Vectorize(inner), Unroll(f"{loop}_u")]
    trial.take(*steps)
