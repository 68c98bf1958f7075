"""Results of a sitting, as data: in memory, and in the JSON file for comparison with later runs."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from tools.bench.layers import Case
from tools.bench.limits import Limits

FORMAT = 3
"""Of the JSON file."""


PLACE = "arguments"
"""Among the versions: where the arguments began."""


class ResultsError(Exception):
    """A file that does not hold results of this version of the benchmark."""


@dataclass(frozen=True)
class Row:
    """A case on a number of threads: the median seconds of a call for each contestant that did it, in order.

    `spread` is the distance of the quartiles over the median.  `refused` holds the reasons of contestants that could
    not.  `disagree` has the largest difference from our result for those that differ by more than rounding explains.
    `pace` are the machine's rates in the same turns, in the median; without one the limits of the sitting are used.
    """

    case: Case
    threads: int
    seconds: dict[str, float]
    spread: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    disagree: dict[str, float] = field(default_factory=dict)
    pace: Limits | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.case.name, self.threads


@dataclass(frozen=True)
class Overhead:
    """A median time, and the most it should be where that was promised."""

    name: str
    seconds: float
    limit: float | None = None


@dataclass(frozen=True)
class Results:
    """`own` is our title among a row's; `peers` the others'; `absent` has the reasons of libraries that did not take
    part.
    """

    rows: tuple[Row, ...]
    limits: tuple[Limits, ...]
    overheads: tuple[Overhead, ...]
    versions: dict[str, str]
    own: str
    peers: tuple[str, ...]
    absent: dict[str, str] = field(default_factory=dict)

    def least(self, row: Row) -> float:
        """Return the least seconds that the machine needs for a row."""
        return self.limit(row).seconds(row.case)

    def least_meanwhile(self, row: Row) -> float:
        """Return the least seconds that the machine needed for a row at the pace at which it ran meanwhile."""
        return (row.pace or self.limit(row)).seconds(row.case)

    def limit(self, row: Row) -> Limits:
        return next(limit for limit in self.limits if limit.threads == row.threads)

    def joined(self, later: Results) -> Results:
        """Return these results with another sitting's rows and overheads, which replace those of the same name.

        The higher of the limits is taken: a rate that a machine reached once is possible.  Raises ResultsError if the
        arguments' offset differs.
        """
        places = {r.versions.get(PLACE) for r in (self, later)}
        if len(places) > 1:
            raise ResultsError(f"--append: arguments began {' and '.join(sorted(map(str, places)))}")
        rows = {row.key: row for row in (*self.rows, *later.rows)}
        overheads = {o.name: o for o in (*self.overheads, *later.overheads)}
        return replace(
            later,
            rows=tuple(rows.values()),
            overheads=tuple(overheads.values()),
            limits=_highest((*self.limits, *later.limits)),
            peers=tuple(dict.fromkeys((*self.peers, *later.peers))),
        )


def _highest(limits: tuple[Limits, ...]) -> tuple[Limits, ...]:
    best: dict[int, Limits] = {}
    for limit in limits:
        other = best.setdefault(limit.threads, limit)
        pairs = zip(astuple(limit), astuple(other), strict=True)
        best[limit.threads] = Limits(*(max(pair) for pair in pairs))
    return tuple(best.values())


def write_json(path: Path, results: Results) -> None:
    document = {"format": FORMAT, **asdict(results)}
    for row, entry in zip(results.rows, document["rows"], strict=True):
        entry |= {"flops": row.case.flops, "bytes": row.case.bytes, "least": results.least(row)}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> Results:
    """Read the file of `write_json`.  Raises ResultsError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ResultsError(f"{path} has format {document['format']}, this benchmark reads {FORMAT}")
        return Results(
            rows=tuple(_row(entry) for entry in document["rows"]),
            limits=tuple(Limits(**entry) for entry in document["limits"]),
            overheads=tuple(Overhead(**entry) for entry in document["overheads"]),
            versions=document["versions"],
            own=document["own"],
            peers=tuple(document["peers"]),
            absent=document["absent"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path} holds no results of opgen bench: {error}") from error


def _row(entry: dict[str, Any]) -> Row:
    case = Case(**entry["case"])
    pace = None if entry["pace"] is None else Limits(**entry["pace"])
    words = ("threads", "seconds", "spread", "refused", "disagree")
    return Row(case, **{name: entry[name] for name in words}, pace=pace)
