"""The tables that a person reads, and the JSON that a program reads."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.bench.limits import Limits
from tools.bench.overheads import Overhead
from tools.bench.session import Row

WINNING, LOSING = "green", "red"


def ratio(row: Row, own: str, peer: str) -> float | None:
    """How many times as long as the peer we take: below 1 we are faster."""
    if own not in row.seconds or peer not in row.seconds:
        return None
    return row.seconds[own] / row.seconds[peer]


def worst(row: Row, own: str, peers: Sequence[str]) -> float:
    """The row's largest ratio; infinite if we could not do it at all."""
    if own not in row.seconds:
        return math.inf
    return max((r for p in peers if (r := ratio(row, own, p)) is not None), default=0.0)


def geometric_mean(values: Iterable[float | None]) -> float | None:
    logs = [math.log(v) for v in values if v is not None]
    return math.exp(sum(logs) / len(logs)) if logs else None


def show_rows(console: Console, rows: Sequence[Row], limits: Sequence[Limits], own: str, peers: Sequence[str]) -> None:
    """Every case, the worst for us first."""
    table = Table(
        title="time of opgen / time of the peer (below 1: opgen is faster), worst first", title_justify="left"
    )
    table.add_column("layer")
    for name in ("batch", "threads", "ms", "GFLOP/s", "% of limit"):
        table.add_column(name, justify="right")
    for peer in peers:
        table.add_column(peer, justify="right")
    bounds = {limit.threads: limit for limit in limits}
    for row in sorted(rows, key=lambda r: worst(r, own, peers) or r.seconds.get(own, 0.0), reverse=True):
        table.add_row(
            row.case.layer, str(row.case.batch), str(row.threads), *_own(row, own, bounds), *_peers(row, own, peers)
        )
    console.print(table)


def _own(row: Row, own: str, bounds: dict[int, Limits]) -> tuple[str, str, str]:
    if own not in row.seconds:
        return "refused", "", ""
    seconds = row.seconds[own]
    least = bounds[row.threads].seconds(row.case.flops, row.case.bytes)
    return f"{seconds * 1e3:.3f}", f"{row.case.flops / seconds / 1e9:.1f}", f"{100 * least / seconds:.0f}"


def _peers(row: Row, own: str, peers: Sequence[str]) -> list[str]:
    cells = []
    for peer in peers:
        value = ratio(row, own, peer)
        text = "refused" if value is None else f"[{LOSING if value > 1 else WINNING}]{value:.2f}[/]"
        cells.append(text + (" [red]differs[/]" if peer in row.disagree else ""))
    return cells


def show_means(console: Console, rows: Sequence[Row], own: str, peers: Sequence[str]) -> None:
    """Geometric means of the ratios for each kind of layer, batch and number of threads, and of them all."""
    if not peers:
        return
    table = Table(title="geometric means of the ratios, and how many rows are lost", title_justify="left")
    for name in ("kind", "batch", "threads", "rows"):
        table.add_column(name, justify="left" if name == "kind" else "right")
    for peer in peers:
        table.add_column(peer, justify="right")
        table.add_column("lost", justify="right")
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.case.kind, str(row.case.batch), str(row.threads)), []).append(row)
    for key, members in [*sorted(groups.items()), (("all", "", ""), list(rows))]:
        table.add_row(*key, str(len(members)), *_mean_cells(members, own, peers))
    console.print(table)


def _mean_cells(members: Sequence[Row], own: str, peers: Sequence[str]) -> list[str]:
    cells = []
    for peer in peers:
        ratios = [r for row in members if (r := ratio(row, own, peer)) is not None]
        mean = geometric_mean(ratios)
        cells += ["" if mean is None else f"{mean:.2f}", str(sum(r > 1 for r in ratios))]
    return cells


def busy(load: float, processors: int) -> str | None:
    """What to say of a machine that others use at the same time; one process of ours is always there."""
    if load <= 1.5:
        return None
    return f"others use this machine (load {load:.1f}, {processors} processors): the times are not to be trusted"


def show_limits(console: Console, limits: Sequence[Limits]) -> None:
    table = Table(title="limits of this machine, measured now", title_justify="left")
    for name in ("threads", "float32 GFLOP/s", "copy GB/s (read + written)"):
        table.add_column(name, justify="right")
    for limit in limits:
        table.add_row(str(limit.threads), f"{limit.flops / 1e9:.1f}", f"{limit.bytes / 1e9:.1f}")
    console.print(table)


def show_overheads(console: Console, overheads: Sequence[Overhead]) -> None:
    table = Table(title="overheads", title_justify="left")
    table.add_column("what")
    table.add_column("time", justify="right")
    table.add_column("limit", justify="right")
    for row in overheads:
        limit = "" if row.limit is None else duration(row.limit)
        color = LOSING if row.limit is not None and row.seconds > row.limit else "default"
        table.add_row(row.name, f"[{color}]{duration(row.seconds)}[/]", limit)
    console.print(table)


def duration(seconds: float) -> str:
    """In the unit that leaves one to three digits before the point."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e6:.2f} us"


def show_refusals(console: Console, rows: Sequence[Row]) -> None:
    """What could not be done, and results that differ: each once a line, so that nothing hides in a table."""
    for row in rows:
        where = f"{row.case.name}, {row.threads} threads"
        for title, reason in row.refused.items():
            console.print(f"refused by {title}: {where}: {reason}", markup=False, soft_wrap=True)
        for title, gap in row.disagree.items():
            console.print(f"result of {title} differs by {gap:.3g}: {where}", markup=False, soft_wrap=True)


def write_json(
    path: Path, rows: Sequence[Row], limits: Sequence[Limits], overheads: Sequence[Overhead], versions: dict[str, str]
) -> None:
    document = {
        "versions": versions,
        "limits": [asdict(limit) for limit in limits],
        "overheads": [asdict(overhead) for overhead in overheads],
        "rows": [{**asdict(row), "flops": row.case.flops, "bytes": row.case.bytes} for row in rows],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
