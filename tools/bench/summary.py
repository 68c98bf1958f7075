"""Summary of the rows: speed against each peer and the best of them, share of the limit, means over groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tools.bench.results import Results, Row


def speedup(row: Row, own: str, peer: str) -> float | None:
    """Return our speed over the peer's: above 1 we are faster."""
    if own not in row.seconds or peer not in row.seconds:
        return None
    return row.seconds[peer] / row.seconds[own]


def best_peer(row: Row, peers: Sequence[str]) -> str | None:
    """Return the fastest peer of a row, if any did it."""
    return min((p for p in peers if p in row.seconds), key=row.seconds.__getitem__, default=None)


def against_best(row: Row, own: str, peers: Sequence[str]) -> float | None:
    """Return the speed against the row's best peer; 0 if we could not do it at all, None if no peer did it."""
    if own not in row.seconds:
        return 0.0
    best = best_peer(row, peers)
    return None if best is None else speedup(row, own, best)


def share(results: Results, row: Row) -> float | None:
    """Of the limit: 1 is as fast as the machine can."""
    return results.least(row) / row.seconds[results.own] if results.own in row.seconds else None


def share_meanwhile(results: Results, row: Row) -> float | None:
    """Return the share of the machine's rate while the row was measured: others who use it slow both."""
    return results.least_meanwhile(row) / row.seconds[results.own] if results.own in row.seconds else None


def worst_first(results: Results) -> list[Row]:
    """Return the rows, those that lose most to their best peer first; without peers, those farthest from the limit."""

    def rank(row: Row) -> tuple[float, float]:
        ratio = against_best(row, results.own, results.peers)
        return (math.inf if ratio is None else ratio), share(results, row) or 0.0

    return sorted(results.rows, key=rank)


def losses(results: Results) -> list[Row]:
    """Return every row in which some peer is faster, or that we could not do; worst first."""
    ratios = ((row, against_best(row, results.own, results.peers)) for row in worst_first(results))
    return [row for row, ratio in ratios if ratio is not None and ratio < 1]


def geometric_mean(values: Iterable[float | None]) -> float | None:
    logs = [math.log(v) for v in values if v is not None and v > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None


@dataclass(frozen=True)
class Group:
    """Rows of one sort: their description, as columns, and the rows."""

    words: tuple[str, ...]
    rows: tuple[Row, ...]


COLUMNS = ("kind", "direction", "batch", "threads")


def groups(rows: Sequence[Row]) -> list[Group]:
    """By kind (and stride of depthwise layers), direction, batch and threads; then over all directions and batches."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        case = row.case
        unusual = [w for w in (case.data_format, case.dtype) if w not in ("NHWC", "float32")]
        stride = [f"stride {min(case.stride, 2)}"] if case.kind == "depthwise" else []
        kind = " ".join((case.kind, *stride, *unusual))
        threads = str(row.threads)
        found.setdefault((kind, case.direction, str(case.batch), threads), []).append(row)
        found.setdefault((" ".join((case.kind, *unusual)), "all", "all", threads), []).append(row)
    ordered = sorted(found.items(), key=lambda item: (item[0][1] == "all", item[0]))
    return [Group(words, tuple(members)) for words, members in ordered]
