"""Common ops of networks besides convolutions, in turns with PyTorch: `python -m tools.bench_ops`.

The rows are those of `tools/bench/op_rows.py`, at sizes of networks and odd ones.  They are ops of
`tools/common_ops.op`, and ONNX's of `generated/onnx_ops.py`, called as a user calls them.  PyTorch's functions for them
run in a process of their own (`--peer-python`: an interpreter that has it).  Prints our speed over PyTorch's row by
row, worst first, and the geometric mean; without PyTorch, the times alone.  On one thread it is the time for which the
process had a processor: other work on the machine lengthens no row.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from tools.bench.contestants import Worker, WorkerError
from tools.bench.op_rows import MODULE, ROWS, SPEC, OpRow
from tools.bench.peers import find

SEED = 0
WIDTH = 70
"""Characters of a row's name."""
TOLERANCE = 1e-4
"""The most that results may differ, of the greatest."""


class DifferError(Exception):
    """Two results of a row that should be the same."""


@dataclass(frozen=True)
class Row:
    """An op at some sizes; seconds of a call, ours and PyTorch's (0 if it is absent)."""

    name: str
    own: float
    peer: float

    @property
    def ratio(self) -> float:
        """Our speed over PyTorch's."""
        return self.peer / self.own

    def __str__(self) -> str:
        compared = f" {self.peer * 1e6:10.1f}   {self.ratio:5.2f}" if self.peer else ""
        return f"{self.name:<{WIDTH}} {self.own * 1e6:10.1f}{compared}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--peer-python", "peers", multiple=True, help="An interpreter that has PyTorch, or torch=PYTHON.")
@click.option("--op", "names", multiple=True, help="Only this op (may be given several times).")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=15, show_default=True, help="Turns of each library.")
def main(peers: tuple[str, ...], names: tuple[str, ...], threads: int, rounds: int) -> None:
    """Compares ops of one's own with PyTorch's functions."""
    known = dict.fromkeys(row.op for row in ROWS)
    unknown = set(names) - set(known)
    if unknown:
        raise click.UsageError(f"unknown op {min(unknown)!r}; there are {', '.join(known)}")
    torch = next((p for p in find(peers).peers if p.title == "PyTorch"), None)
    clock = "processor" if threads == 1 else "wall"
    workers = [Worker(sys.executable, "ops_worker", threads, str(SPEC), str(MODULE))]
    try:
        if torch is None:
            click.echo("PyTorch is in none of these interpreters; name one that has it by --peer-python", err=True)
        else:
            workers.append(Worker(torch.python, "torch_ops_worker", threads))
        rows, wrong = _measured([row for row in ROWS if not names or row.op in names], workers, rounds, clock)
    finally:
        for worker in workers:
            worker.close()
    for line in wrong:
        click.echo(line)
    if rows:
        _report(rows)
    if wrong:
        sys.exit(1)


def _measured(
    chosen: Sequence[OpRow], workers: Sequence[Worker], rounds: int, clock: str
) -> tuple[list[Row], list[str]]:
    """Return the rows, and lines on those that cannot be compared."""
    rows: list[Row] = []
    wrong: list[str] = []
    for row in chosen:
        try:
            rows.append(_row(row, workers, rounds, clock))
        except (DifferError, WorkerError) as error:
            wrong.append(f"{row.name}: {error}")
    return rows, wrong


def _report(rows: Sequence[Row]) -> None:
    compared = all(r.peer for r in rows)
    head = "worst first" if compared else ""
    click.echo(f"{head:<{WIDTH}} {'opgen':>10}" + (f" {'PyTorch':>10}   ratio" * compared) + "   (us)")
    for row in sorted(rows, key=lambda r: r.ratio):
        click.echo(str(row))
    if compared:
        mean = math.exp(sum(math.log(r.ratio) for r in rows) / len(rows))
        click.echo(f"geometric mean of {len(rows)} rows: {mean:.2f}")


def _row(row: OpRow, workers: Sequence[Worker], rounds: int, clock: str = "wall") -> Row:
    with tempfile.TemporaryDirectory() as folder:
        results = [Path(folder) / f"{k}.npy" for k in range(len(workers))]
        for worker, result in zip(workers, results, strict=True):
            given = {"variant": "ops", "case": row.case, "seed": SEED, "offset": 0}
            worker.ask({"do": "prepare", **given, "result": str(result)})
        ours, *others = map(np.load, results)
    for theirs in others:
        if ours.shape != theirs.shape:
            raise DifferError(f"the two results are of shapes {ours.shape} and {theirs.shape}")
        error = float(np.abs(np.subtract(ours, theirs, dtype=np.float64)).max() / np.abs(theirs).max())
        if not error <= TOLERANCE:
            raise DifferError(f"the two results differ by {error:.1e} of the greatest")
    times: list[list[float]] = [[] for _ in workers]
    for _ in range(rounds):
        for worker, taken in zip(workers, times, strict=True):
            taken += worker.time(3, "ops", clock)
    for worker in workers:
        worker.ask({"do": "forget"})
    own, *peer = map(_undisturbed, times)
    return Row(row.name, own, *(peer or [0.0]))


def _undisturbed(times: Sequence[float]) -> float:
    """Return the lower quartile of the samples: other work on the machine makes some longer."""
    return statistics.quantiles(times, n=4)[0] if len(times) > 1 else times[0]


if __name__ == "__main__":
    main()
