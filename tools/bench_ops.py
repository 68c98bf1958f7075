"""Ops that many networks are made of, beside convolutions, in turns with PyTorch: `python -m tools.bench_ops`.

The ops of `tools/common_ops.op`, float32 (those of integers int32), at sizes that tiles divide and sizes that they do
not, and the functions that PyTorch has for them (`--peer-python`: an interpreter that has it), each in a process of its
own.  Prints our speed over PyTorch's row by row, worst first, and the geometric mean; without PyTorch, the times alone.
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

from tools.bench.contestants import Worker
from tools.bench.peers import find

SPEC = Path(__file__).with_name("common_ops.op")
CASES: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = (
    ("mat_mul", ((512, 512), (512, 512))),
    ("mat_mul", ((1000, 1000), (1000, 1000))),
    ("mat_mul", ((784, 240), (240, 144))),
    ("mat_mul", ((64, 2048), (2048, 512))),
    ("mat_mul", ((7, 33), (33, 129))),
    ("mat_mul_transposed", ((128, 768), (3072, 768))),
    ("weight_gradient", ((784, 240), (784, 300))),
    ("weight_gradient", ((1024, 512), (1024, 512))),
    ("mat_vec", ((1024, 1024), (1024,))),
    ("vec_mat", ((1024,), (1024, 1024))),
    ("dense", ((128, 768), (768, 768), (768,))),
    ("dense", ((32, 2048), (2048, 1000), (1000,))),
    ("softmax", ((128, 1024),)),
    ("softmax", ((4096, 64),)),
    ("softmax", ((1000, 1000),)),
    ("layer_norm", ((128, 768), (768,), (768,))),
    ("layer_norm", ((4096, 768), (768,), (768,))),
    ("gelu", ((128, 3072),)),
    ("transpose", ((1024, 1024),)),
    ("transpose", ((1000, 300),)),
    ("column_sums", ((1024, 1024),)),
    ("column_sums", ((784, 300),)),
    ("attention", ((12, 128, 64), (12, 128, 64), (12, 128, 64))),
    ("two_products", ((256, 256), (256, 256), (256, 256), (256, 256))),
    ("two_products", ((100, 300), (300, 500), (100, 500), (500, 500))),
    ("let_and_sum", ((256, 256), (256, 256), (256, 256), (256, 256))),
    ("gated", ((128, 768), (768, 768), (768, 768))),
    ("gated_gradient", ((128, 768), (768, 768), (768, 768), (128, 768))),
    ("gemm", ((256, 512), (384, 512))),
    ("gates", ((64, 256), (1024, 256), (1024,))),
    ("mat_mul_int32", ((256, 256), (256, 256))),
    ("mat_mul_int32", ((512, 512), (512, 512))),
    ("powers", ((128, 3072), (128, 3072))),
    ("sine", ((128, 3072),)),
)
SEED = 0
TOLERANCE = 1e-4
"""The most that results may differ, of the greatest."""


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
        return f"{self.name:<52} {self.own * 1e6:10.1f}{compared}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--peer-python", "peers", multiple=True, help="An interpreter that has PyTorch, or torch=PYTHON.")
@click.option("--op", "names", multiple=True, help="Only this op (may be given several times).")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=15, show_default=True, help="Turns of each library.")
def main(peers: tuple[str, ...], names: tuple[str, ...], threads: int, rounds: int) -> None:
    """Compares ops of one's own with PyTorch's functions."""
    unknown = set(names) - {op for op, _ in CASES}
    if unknown:
        raise click.UsageError(f"unknown op {min(unknown)!r}; there are {', '.join(dict(CASES))}")
    torch = next((p for p in find(peers).peers if p.title == "PyTorch"), None)
    workers = [Worker(sys.executable, "ops_worker", threads, str(SPEC))]
    try:
        if torch is None:
            click.echo("PyTorch is in none of these interpreters; name one that has it by --peer-python", err=True)
        else:
            workers.append(Worker(torch.python, "torch_ops_worker", threads))
        rows = [_row(op, shapes, workers, rounds) for op, shapes in CASES if not names or op in names]
    finally:
        for worker in workers:
            worker.close()
    _report(rows)


def _report(rows: Sequence[Row]) -> None:
    compared = all(r.peer for r in rows)
    click.echo(
        f"{'worst first' if compared else '':<52} {'opgen':>10}" + (f" {'PyTorch':>10}   ratio" * compared) + "   (us)"
    )
    for row in sorted(rows, key=lambda r: r.ratio):
        click.echo(str(row))
    if compared:
        mean = math.exp(sum(math.log(r.ratio) for r in rows) / len(rows))
        click.echo(f"geometric mean of {len(rows)} rows: {mean:.2f}")


def _row(op: str, shapes: Sequence[Sequence[int]], workers: Sequence[Worker], rounds: int) -> Row:
    name = f"{op} {' '.join('x'.join(map(str, s)) for s in shapes)}"
    case = {"op": op, "shapes": shapes, "dtype": "int32" if op.endswith("int32") else "float32"}
    with tempfile.TemporaryDirectory() as folder:
        results = [Path(folder) / f"{k}.npy" for k in range(len(workers))]
        for worker, result in zip(workers, results, strict=True):
            given = {"variant": "ops", "case": case, "seed": SEED, "offset": 0}
            worker.ask({"do": "prepare", **given, "result": str(result)})
        ours, *others = map(np.load, results)
    for theirs in others:
        error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
        if not error <= TOLERANCE:
            raise SystemExit(f"{name}: the two results differ by {error:.1e} of the greatest")
    times: list[list[float]] = [[] for _ in workers]
    for _ in range(rounds):
        for worker, taken in zip(workers, times, strict=True):
            seconds = worker.ask({"do": "time", "variant": "ops", "samples": 3})["seconds"]
            taken += seconds if isinstance(seconds, list) else []
    for worker in workers:
        worker.ask({"do": "forget"})
    own, *peer = map(statistics.median, times)
    return Row(name, own, *(peer or [0.0]))


if __name__ == "__main__":
    main()
