"""`python -m tools.ready DIR`: how long until models that `tools.models` made give their first result.

Each time is that of a new process, from its start (the interpreter's own, and all imports, are in it) to the first
result at the first size; drawing the inputs is not.  `cold`: the cache is empty, everything is built.  `cached`:
another process did that before; the least of some.  The processors' time is shown too; other work changes it less.
Exits with 1 if a model is later than `--most` seconds from the cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from opgen.cli.progress import working
from tools.models.manifest import Manifest, read_all

ROOT = Path(__file__).resolve().parents[1]

_CHILD = """
import sys, time
import numpy
import opgen
from pathlib import Path
from tools.models.manifest import read
begin = time.perf_counter(), time.process_time()
manifest = read(Path(sys.argv[1]))
inputs = manifest.draw(0)
drawing = time.perf_counter() - begin[0], time.process_time() - begin[1]
model = opgen.compile(manifest.model)
model.run(inputs)
end = time.perf_counter(), time.process_time()
import json, resource
others = resource.getrusage(resource.RUSAGE_CHILDREN)
spent = end[1] - drawing[1] + others.ru_utime + others.ru_stime
print(json.dumps([end[0] - float(sys.argv[2]) - drawing[0], spent]))
"""


@dataclass(frozen=True)
class Start:
    """Seconds until the first result, and those that processors were busy with it."""

    seconds: float
    busy: float


@dataclass(frozen=True)
class Row:
    """A model's starts, and the MiB of the cache that it takes."""

    model: str
    cold: Start
    cached: tuple[Start, ...]
    mib: float

    @property
    def best(self) -> Start:
        """Return the least of those from the cache."""
        return min(self.cached, key=lambda start: start.seconds)


def start(manifest: Manifest, cache: Path, threads: int | None = None) -> Start:
    """Return a start in a new process.  Raises CalledProcessError if it fails."""
    environment = {**os.environ, "OPGEN_CACHE_DIR": str(cache), "OPGEN_CACHE": "on"}
    if threads is not None:
        environment["OPGEN_NUM_THREADS"] = str(threads)
    path = str(manifest.model.with_name(f"{manifest.name}.json").resolve())
    command = [sys.executable, "-c", _CHILD, path]
    begin = time.perf_counter()  # of one clock for all processes
    done = subprocess.run([*command, str(begin)], cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE)
    return Start(*json.loads(done.stdout.splitlines()[-1]))


def measured(manifest: Manifest, runs: int, threads: int | None = None) -> Row:
    """Measure a model, from an empty cache and then from a filled one."""
    with tempfile.TemporaryDirectory() as scratch:
        cache = Path(scratch) / "cache"
        cold = start(manifest, cache, threads)
        cached = tuple(start(manifest, cache, threads) for _ in range(runs))
        size = sum(file.stat().st_size for file in cache.iterdir())
    return Row(manifest.name, cold, cached, size / (1 << 20))


def show(console: Console, rows: Sequence[Row]) -> None:
    """The table, slowest from the cache first."""
    table = Table(box=None)
    for heading in ("model", "cold s", "busy s", "cached s", "busy s", "cache MiB"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for row in sorted(rows, key=lambda row: -row.best.seconds):
        numbers = (row.cold.seconds, row.cold.busy, row.best.seconds, row.best.busy)
        table.add_row(row.model, *(f"{number:.2f}" for number in numbers), f"{row.mib:.0f}")
    console.print(table)


@click.command("ready", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--model", "names", multiple=True, help="Only this model (may be given several times).")
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="Starts from the cache.")
@click.option("--threads", type=click.IntRange(1), help="How many threads run it.  [default: all processors]")
@click.option("--most", type=float, help="Seconds that a start from the cache may take.")
def main(folder: Path, names: tuple[str, ...], runs: int, threads: int | None, most: float | None) -> None:
    """Measures how long the models of FOLDER take until their first result."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        manifests = read_all(folder, names)
    except FileNotFoundError as error:
        raise click.ClickException(str(error)) from error
    rows = []
    with working("models") as tell:
        for manifest in manifests:
            tell(manifest.name)
            rows.append(measured(manifest, runs, threads))
    show(console, rows)
    sys.exit(1 if most is not None and any(row.best.seconds > most for row in rows) else 0)


if __name__ == "__main__":
    main()
