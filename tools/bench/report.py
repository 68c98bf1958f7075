"""The tables that a person reads."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tools.bench import summary
from tools.bench.limits import Limits
from tools.bench.results import Overhead, Results, Row

WINNING, LOSING = "green", "red"


def show(console: Console, results: Results) -> None:
    """Everything, losses included."""
    console.print(" · ".join(f"{name} {version}" for name, version in results.versions.items()), highlight=False)
    for title, reason in results.absent.items():
        console.print(f"absent: {title}: {reason}", markup=False, highlight=False, soft_wrap=True)
    show_limits(console, results.limits)
    show_rows(console, results)
    show_means(console, results)
    show_losses(console, results)
    show_refusals(console, results.rows)
    if results.overheads:
        show_overheads(console, results.overheads)


def show_rows(console: Console, results: Results) -> None:
    """Every case, the worst for us first."""
    table = Table(
        title="speed of opgen / speed of the peer (above 1: opgen is faster), worst first", title_justify="left"
    )
    table.add_column("layer")
    table.add_column("direction")
    for name in ("batch", "threads", "ms", "±%", "GFLOP/s", "% of limit", "meanwhile"):
        table.add_column(name, justify="right")
    for peer in results.peers:
        table.add_column(peer, justify="right")
    for row in summary.worst_first(results):
        case = row.case
        words = [w for w in (case.direction, case.data_format, case.dtype) if w not in ("NHWC", "float32")]
        cells = (case.layer, " ".join(words), str(case.batch), str(row.threads))
        table.add_row(*cells, *_own(results, row), *_peers(row, results.own, results.peers))
    console.print(table)
    console.print(
        "(meanwhile: of what the machine did in the same turns, which is less than its limit where others use it)",
        highlight=False,
    )
    if any(results.limit(row).seconds_in_memory(row.case) for row in results.rows):
        console.print(
            "(in brackets: of memory's limit, where the last cache does not hold the tensors)", highlight=False
        )


def _own(results: Results, row: Row) -> tuple[str, ...]:
    own, part, meanwhile = results.own, summary.share(results, row), summary.share_meanwhile(results, row)
    if part is None or meanwhile is None:
        return "refused", "", "", "", ""
    seconds = row.seconds[own]
    spread = f"{50 * row.spread.get(own, 0.0):.0f}"
    memory = results.limit(row).seconds_in_memory(row.case)
    of_memory = "" if memory is None else f" ({100 * memory / seconds:.0f})"
    rate = f"{row.case.flops / seconds / 1e9:.1f}"
    return f"{seconds * 1e3:.3f}", spread, rate, f"{100 * part:.0f}{of_memory}", f"{100 * meanwhile:.0f}"


def _peers(row: Row, own: str, peers: Sequence[str]) -> list[str]:
    cells = []
    for peer in peers:
        value = summary.speedup(row, own, peer)
        refused = "refused" if peer in row.refused else ""
        text = refused if value is None else f"[{LOSING if value < 1 else WINNING}]{value:.2f}[/]"
        cells.append(text + (" [red]differs[/]" if peer in row.disagree else ""))
    return cells


def show_means(console: Console, results: Results) -> None:
    """Geometric means over each sort of rows: share of the limit, speed against each row's best peer and each peer."""
    table = Table(title="geometric means (least), and how many rows are lost", title_justify="left")
    for name in summary.COLUMNS:
        table.add_column(name, justify="left" if name in ("kind", "direction") else "right")
    for name in ("rows", "% of limit", "meanwhile", "best peer", "lost", *results.peers):
        table.add_column(name, justify="right")
    for group in summary.groups(results.rows):
        shares = [s for row in group.rows if (s := summary.share(results, row)) is not None]
        paced = [s for row in group.rows if (s := summary.share_meanwhile(results, row)) is not None]
        against = [r for row in group.rows if (r := summary.against_best(row, results.own, results.peers)) is not None]
        peers = [summary.geometric_mean(summary.speedup(r, results.own, p) for r in group.rows) for p in results.peers]
        table.add_row(
            *group.words,
            str(len(group.rows)),
            _mean(shares, 100, 0),
            _mean(paced, 100, 0),
            _mean(against, 1, 2),
            str(sum(r < 1 for r in against)) if against else "",
            *("" if p is None else f"{p:.2f}" for p in peers),
        )
    console.print(table)


def _mean(values: Sequence[float], scale: float, digits: int) -> str:
    mean = summary.geometric_mean(values)
    return "" if mean is None else f"{scale * mean:.{digits}f} ({scale * min(values):.{digits}f})"


def show_losses(console: Console, results: Results) -> None:
    """Each row that some peer does faster, once a line, so that none hides in a mean."""
    lost = summary.losses(results)
    if results.peers:
        console.print(f"{len(lost)} of {len(results.rows)} rows are lost to their best peer", highlight=False)
    for row in lost:
        best = summary.best_peer(row, results.peers)
        ratio = summary.against_best(row, results.own, results.peers)
        text = f"lost: {row.case.name}, {row.threads} threads: {ratio or 0:.2f} of the speed of {best}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def busy(load: float, processors: int) -> str | None:
    """Return a note on a machine that others use at the same time; one process of ours is always there."""
    if load <= 1.5:
        return None
    return f"others use this machine (load {load:.1f}, {processors} processors): the times are not to be trusted"


def show_limits(console: Console, limits: Sequence[Limits]) -> None:
    table = Table(title="limits of this machine, measured now", title_justify="left")
    for name in ("threads", "float32 GFLOP/s", "GB/s read from the last level of cache", "from memory"):
        table.add_column(name, justify="right")
    for limit in limits:
        rates = (limit.flops, limit.bytes, limit.memory)
        table.add_row(str(limit.threads), *(f"{rate / 1e9:.1f}" for rate in rates))
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
    """Print refusals and results that differ: each reason once a line, so that a table does not hide any."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        where = f"{row.case.name}, {row.threads} threads"
        for title, reason in row.refused.items():
            reasons.setdefault(f"refused by {title}: {reason}", []).append(where)
        for title, gap in row.disagree.items():
            reasons.setdefault(f"result of {title} differs by {gap:.3g}", []).append(where)
    for reason, places in reasons.items():
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        console.print(f"{reason}: {places[0]}{more}", markup=False, highlight=False, soft_wrap=True)
