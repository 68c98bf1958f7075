"""Comparison of two runs of the benchmark: rows that became faster or slower, and the machine's difference."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tools.bench.results import Results, Row
from tools.bench.summary import geometric_mean, groups

NOISE = 0.03
"""Changes smaller than this count as none."""


@dataclass(frozen=True)
class Change:
    """A row of both runs.  `own` is our speed now over then; `peers` that of the libraries in both runs.

    The libraries did not change: their apparent gains are the machine's.
    """

    row: Row
    own: float
    peers: float | None


def changes(old: Results, new: Results) -> list[Change]:
    """Return the rows that both runs have, the greatest loss first."""
    before = {row.key: row for row in old.rows}
    found = []
    for row in new.rows:
        then = before.get(row.key)
        if then is None or old.own not in then.seconds or new.own not in row.seconds:
            continue
        common = [p for p in new.peers if p in row.seconds and p in then.seconds]
        drift = geometric_mean(then.seconds[p] / row.seconds[p] for p in common)
        found.append(Change(row, then.seconds[old.own] / row.seconds[new.own], drift))
    return sorted(found, key=lambda change: change.own)


def show(console: Console, old: Results, new: Results) -> None:
    """The means over groups, the machine's drift, and every row that changed."""
    found = changes(old, new)
    by_key = {change.row.key: change for change in found}
    drift = geometric_mean(change.peers for change in found)
    said = "no library took part in both" if drift is None else f"the libraries run at {drift:.3f} of their speed then"
    console.print(f"{len(found)} rows in both runs; {said}", highlight=False)
    for name, rows, others in (("old", old.rows, new.rows), ("new", new.rows, old.rows)):
        alone = {row.key for row in rows} - {row.key for row in others}
        if alone:
            console.print(f"{len(alone)} rows only in the {name} run", highlight=False)
    means = Table(title="our speed now / then, geometric means", title_justify="left")
    for column in ("kind", "direction", "batch", "threads", "rows", "opgen", "libraries"):
        means.add_column(column, justify="left" if column in ("kind", "direction") else "right")
    for group in groups([change.row for change in found]):
        members = [by_key[row.key] for row in group.rows]
        own, peers = (geometric_mean(values) for values in ([c.own for c in members], [c.peers for c in members]))
        means.add_row(*group.words, str(len(members)), _text(own), _text(peers))
    console.print(means)
    table = Table(title=f"rows that changed by more than {100 * NOISE:.0f}%, slower ones first", title_justify="left")
    for column in ("row", "threads", "now / then", "libraries"):
        table.add_column(column, justify="left" if column == "row" else "right")
    for change in found:
        if abs(change.own - 1) > NOISE:
            color = "red" if change.own < 1 else "green"
            cells = (change.row.case.name, str(change.row.threads), f"[{color}]{change.own:.2f}[/]")
            table.add_row(*cells, _text(change.peers))
    console.print(table)


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
