"""`opgen bench`, or `python -m tools.bench` in the repository."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tools.bench import limits as machine
from tools.bench import overheads, report
from tools.bench.contestants import Contestant, Worker, own_worker, peer_workers
from tools.bench.layers import LAYERS, QUICK, Case, read_cases
from tools.bench.limits import Limits
from tools.bench.overheads import Overhead
from tools.bench.session import Row, measure

MODULE = Path(__file__).resolve().parent.parent.parent / "generated" / "nn_ops.py"


@dataclass(frozen=True)
class Options:
    """What is measured, and how long."""

    cases: tuple[Case, ...]
    threads: tuple[int, ...]
    rounds: int
    seed: int
    quick: bool
    module: Path
    overheads: bool


@dataclass(frozen=True)
class Results:
    rows: tuple[Row, ...]
    limits: tuple[Limits, ...]
    overheads: tuple[Overhead, ...]
    versions: dict[str, str]
    own: str
    peers: tuple[str, ...]


@click.command("bench", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Three layers, batch 1, few rounds: a minute.")
@click.option("--layers", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=LAYERS,
              help="The file of layers.")  # fmt: skip
@click.option("--layer", "names", multiple=True, help="Only this layer (may be given several times).")
@click.option("--batch", "batches", multiple=True, type=click.IntRange(1), help="Batch sizes  [default: 1, 8]")
@click.option("--threads", multiple=True, type=click.IntRange(1), help="Numbers of threads  [default: 1, 2]")
@click.option("--rounds", type=click.IntRange(1), help="Turns that each contestant gets at a case  [default: 7]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random arguments.")
@click.option("--peer-python", "pythons", multiple=True, metavar="PYTHON",
              help="An interpreter that has libraries to compare with (may be given several times).")  # fmt: skip
@click.option("--module", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=MODULE,
              help="The generated module.")  # fmt: skip
@click.option("--overheads/--no-overheads", "with_overheads", default=True, help="Tiny calls, builds, imports.")
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path), help="Also write the results there.")
def main(
    quick: bool,
    layers: Path,
    names: tuple[str, ...],
    batches: tuple[int, ...],
    threads: tuple[int, ...],
    rounds: int | None,
    seed: int,
    pythons: tuple[str, ...],
    module: Path,
    with_overheads: bool,
    output: Path | None,
) -> None:
    """Compares the generated ops with the libraries that are installed and with this machine's limits.

    All contestants measure the same calls on the same numbers in one sitting, taking turns; times are medians.
    """
    if hasattr(os, "getloadavg") and (warning := report.busy(os.getloadavg()[0], os.cpu_count() or 1)):
        click.echo(warning, err=True)
    cases = read_cases(layers, batches or ((1,) if quick else (1, 8)), names or (QUICK if quick else ()))
    options = Options(
        cases=tuple(cases),
        threads=threads or (1, 2),
        rounds=rounds or (3 if quick else 7),
        seed=seed,
        quick=quick,
        module=module,
        overheads=with_overheads,
    )
    results = run(options, pythons or (sys.executable,))
    show(results)
    if output is not None:
        report.write_json(output, results.rows, results.limits, results.overheads, results.versions)


def run(options: Options, pythons: Sequence[str]) -> Results:
    """The whole sitting, with progress on stderr."""
    columns = (SpinnerColumn(), TextColumn("{task.completed}/{task.total} {task.description}"), TimeElapsedColumn())
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
        workers = [own_worker(options.module), *peer_workers(pythons)]
        for worker in workers:
            stack.callback(worker.close)
        contestants = [Contestant(worker, variant) for worker in workers for variant in worker.variants]
        task = progress.add_task("limits of the machine", total=len(options.cases) * len(options.threads) + 1)
        limits = tuple(machine.measure(n, options.quick) for n in options.threads)
        rows = []
        for case in options.cases:
            for threads in options.threads:
                progress.update(task, advance=1, description=f"{case.name}, {threads} threads")
                rows.append(measure(case, threads, contestants, options.seed, options.rounds))
        progress.update(task, advance=1, description="overheads")
        extra = _overheads(options, contestants)
    titles = [c.title for c in contestants]
    return Results(tuple(rows), limits, tuple(extra), _versions(workers), titles[0], tuple(titles[1:]))


def _overheads(options: Options, contestants: Sequence[Contestant]) -> list[Overhead]:
    if not options.overheads:
        return []
    repeats = 1 if options.quick else 5
    return [
        *overheads.tiny_calls(contestants, options.rounds),
        *overheads.builds(options.module, repeats),
        *overheads.commands(repeats),
    ]


def _versions(workers: Iterable[Worker]) -> dict[str, str]:
    versions = {worker.library: worker.version for worker in workers}
    return {**versions, "Python": platform.python_version(), "machine": platform.machine()}


def show(results: Results) -> None:
    """Everything, losses included, on stdout."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(" · ".join(f"{name} {version}" for name, version in results.versions.items()), highlight=False)
    if not results.peers:
        console.print("no library to compare with was found; --peer-python names an interpreter that has one")
    report.show_limits(console, results.limits)
    report.show_rows(console, results.rows, results.limits, results.own, results.peers)
    report.show_means(console, results.rows, results.own, results.peers)
    report.show_refusals(console, results.rows)
    if results.overheads:
        report.show_overheads(console, results.overheads)


if __name__ == "__main__":
    main(prog_name="opgen bench")
