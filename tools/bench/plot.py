"""A picture of the results: for each kind and direction, how near to the limit we and the best peer of each row are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tools.bench.layers import DIRECTIONS
from tools.bench.results import Results, Row
from tools.bench.summary import best_peer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".svg")
OWN, PEER = "#0b6e4f", "#b0b7bd"


class PlotError(Exception):
    """A plot is impossible without the package, or in that format."""


def check(path: Path) -> None:
    """Raise PlotError, before anything is measured, if a plot is impossible."""
    if path.suffix not in FORMATS:
        raise PlotError(f"expected a name that ends with {' or '.join(FORMATS)}, given {path.name}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise PlotError("a plot needs matplotlib: pip install matplotlib") from error


def save(path: Path, results: Results) -> None:
    """Bars, a panel for each kind of layer, direction and number of threads."""
    check(path)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = _panels(results)
    if not panels:
        raise PlotError("there are no rows to draw")
    widest = max(len(rows) for _, rows in panels)
    size = (max(6.0, 2.2 + 0.26 * widest), 2.9 * len(panels))
    figure, axes = pyplot.subplots(len(panels), 1, figsize=size, squeeze=False, layout="constrained")
    for (title, rows), ax in zip(panels, axes[:, 0], strict=True):
        _draw(ax, title, rows, results)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _panels(results: Results) -> list[tuple[str, list[Row]]]:
    found: dict[tuple[str, int, int, str], list[Row]] = {}
    for row in results.rows:
        if results.own in row.seconds:
            key = (row.case.kind, row.threads, DIRECTIONS.index(row.case.direction), row.case.direction)
            found.setdefault(key, []).append(row)
    return [
        (f"{kind}, {direction}, {threads} thread{'s' if threads > 1 else ''}", rows)
        for (kind, threads, _, direction), rows in sorted(found.items())
    ]


def _draw(ax: Axes, title: str, rows: list[Row], results: Results) -> None:
    places = range(len(rows))
    own = [100 * results.least(row) / row.seconds[results.own] for row in rows]
    best = [best_peer(row, results.peers) for row in rows]
    peers = [100 * results.least(row) / row.seconds[b] if b else 0.0 for row, b in zip(rows, best, strict=True)]
    if any(best):
        ax.bar([x + 0.2 for x in places], peers, width=0.4, color=PEER, label="best peer")
    ax.bar([x - 0.2 for x in places], own, width=0.4, color=OWN, label="opgen")
    ax.axhline(100, color="black", linewidth=0.8)
    ax.set_xlim(-0.7, len(rows) - 0.3)
    ax.set_ylabel("% of the machine's limit", fontsize=8)
    ax.set_title(title, fontsize=9, loc="left")
    labels = [row.case.name.replace(f"/{row.case.direction}", "") for row in rows]
    ax.set_xticks(list(places), labels, rotation=60, ha="right", fontsize=6)
    ax.tick_params(axis="y", labelsize=7)
    ax.set_ylim(0, 1.2 * max(100.0, *own, *peers))
    ax.legend(fontsize=7, loc="upper right", ncols=2)
