"""`opgen bench`, or `python -m tools.bench` in the repository."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import cast

import click
from rich.console import Console

from opgen.cli.options import FILE, GivenPath
from opgen.diagnostics import UserError
from tools.bench import compare, explain, plot, report, sitting
from tools.bench import models as whole
from tools.bench.contestants import Contestant, WorkerError, own_worker, places
from tools.bench.layers import (
    DIRECTIONS,
    DTYPES,
    FORMATS,
    LAYERS,
    QUICK,
    Case,
    Choice,
    DataFormat,
    Direction,
    DType,
    Layer,
    Tensors,
    cases_of,
    read_layers,
)
from tools.bench.odd import odd_layers
from tools.bench.peers import VARIABLE, PeerError, find
from tools.bench.results import Results, ResultsError, read_json, write_json
from tools.bench.session import measure

MODULE = Path(__file__).resolve().parent.parent.parent / "generated" / "nn_ops.py"
WRITTEN = GivenPath(dir_okay=False)
FOLDER_READ = GivenPath(exists=True, file_okay=False)


@click.command("bench", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Three layers forward, batch 1, few rounds: a minute.")
@click.option("--layers", type=FILE, default=LAYERS, help="The file of layers.")
@click.option("--odd", type=click.IntRange(1), metavar="COUNT",
              help="In place of a file's: so many layers that stand in no table, made from the seed (odd and prime "
              "sizes, thin and very large windows, groups of few channels, multipliers, large strides).")  # fmt: skip
@click.option("--layer", "names", multiple=True, help="Only this layer, or model (may be given several times).")
@click.option("--direction", "directions", multiple=True, type=click.Choice(DIRECTIONS),
              help="forward, input (gradient) or filter (gradient)  [default: all]")  # fmt: skip
@click.option("--batch", "batches", multiple=True, type=click.IntRange(1), help="Batch sizes  [default: 1, 8]")
@click.option("--threads", multiple=True, type=click.IntRange(1), help="Numbers of threads  [default: 1, 2]")
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS), help="[default: NHWC]")
@click.option("--dtype", "dtypes", multiple=True, type=click.Choice(DTYPES), help="[default: float32]")
@click.option("--rounds", type=click.IntRange(1), help="Turns that each contestant gets at a case  [default: 7]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random arguments, and of odd layers.")
@click.option("--offset", type=click.Choice(["0", "16", "32", "48"]), default="0", show_default=True,
              help="Bytes behind a cache line at which our arguments begin, and those that a peer takes as they are: 0 "
              "as results of libraries do, 16 as most of numpy's arrays.")  # fmt: skip
@click.option("--peer-python", "pythons", multiple=True, metavar="[NAME=]PYTHON",
              help="The interpreter that has a library to compare with: torch, tf, jax or ort; without a name, any of "
              f"them. May be given several times.  [default: ${VARIABLE}, else this interpreter]")  # fmt: skip
@click.option("--models", type=FOLDER_READ, metavar="DIR",
              help="Compare whole models in place of ops: those that `python -m tools.models DIR` wrote, with ONNX "
              "Runtime (with --peer-python, --threads, --rounds, --seed).")  # fmt: skip
@click.option("--module", type=FILE, default=MODULE, help="The generated module.")
@click.option("--overheads/--no-overheads", "with_overheads", default=True, help="Tiny calls, builds, imports.")
@click.option("--json", "output", type=WRITTEN, help="Also write the results there.")
@click.option("--append", is_flag=True, help="Keep the rows that the --json file has and add these.")
@click.option("--plot", "picture", type=WRITTEN, metavar="FILE.png|.svg", help="Also draw the results.")
@click.option("--compare", "compared", type=FILE, nargs=2, metavar="OLD NEW",
              help="Measure nothing: compare two files that --json wrote.")  # fmt: skip
@click.option("--show", "shown", type=FILE, metavar="FILE", help="Measure nothing: show a file that --json wrote.")
@click.option("--explain", "explained", metavar="LAYER/DIRECTION",
              help="Say of one row what bounds it (with --batch, --threads, --format, --dtype).")  # fmt: skip
def main(
    quick: bool,
    layers: Path,
    odd: int | None,
    names: tuple[str, ...],
    directions: tuple[str, ...],
    batches: tuple[int, ...],
    threads: tuple[int, ...],
    formats: tuple[str, ...],
    dtypes: tuple[str, ...],
    rounds: int | None,
    seed: int,
    offset: str,
    pythons: tuple[str, ...],
    models: Path | None,
    module: Path,
    with_overheads: bool,
    output: Path | None,
    append: bool,
    picture: Path | None,
    compared: tuple[Path, Path] | None,
    shown: Path | None,
    explained: str | None,
) -> None:
    """Compares the generated ops with the libraries that are installed and with this machine's limits.

    All contestants measure the same calls on the same numbers in one sitting, taking turns, on the same processors;
    times are medians.  Needs a checkout of opgen's repository.
    """
    choice = Choice(
        batches or ((1,) if quick or explained is not None else (1, 8)),
        cast("tuple[Direction, ...]", directions or (("forward",) if quick else DIRECTIONS)),
        cast("tuple[DataFormat, ...]", formats or ("NHWC",)),
        cast("tuple[DType, ...]", dtypes or ("float32",)),
    )
    tensors = Tensors(seed, int(offset))
    source = str(layers) if odd is None else f"--odd {odd} --seed {seed}"
    console = Console(width=None if sys.stdout.isatty() else 220)
    with reported():
        table = read_layers(layers) if odd is None else odd_layers(odd, seed)
        if picture is not None:
            plot.check(picture)
        if models is not None:
            found = find(pythons, os.environ.get(VARIABLE, ""))
            for number in threads or (1,):
                whole.report(console, models, names, found, number, rounds or 7, seed)
        elif compared:
            compare.show(console, read_json(compared[0]), read_json(compared[1]))
        elif shown is not None:
            finish(console, read_json(shown), None, picture)
        elif explained is not None:
            for case, number in product(explained_cases(table, source, explained, choice), threads or (1,)):
                tell(console, case, number, module, rounds or 7, tensors)
        else:
            cases = tuple(cases_of(table, choice, names or (QUICK if quick and odd is None else ()), source))
            repeats = 0 if not with_overheads else 1 if quick else 5
            turns = rounds or (3 if quick else 7)
            options = sitting.Options(cases, threads or (1, 2), turns, tensors, module, repeats)
            finish(console, sit(options, pythons, output if append else None), output, picture)


@contextmanager
def reported() -> Iterator[None]:
    """Report mistakes that the user can fix without a traceback."""
    try:
        yield
    except (PeerError, ResultsError, UserError, plot.PlotError, FileNotFoundError) as error:
        raise click.ClickException(str(error)) from error


def sit(options: sitting.Options, pythons: Sequence[str], earlier: Path | None) -> Results:
    """Return the sitting's results, joined to those of an earlier file if there is one."""
    warn(max(options.threads))
    before = read_json(earlier) if earlier is not None and earlier.exists() else None
    results = sitting.run(options, find(pythons, os.environ.get(VARIABLE, "")))
    return results if before is None else before.joined(results)


def warn(threads: int) -> None:
    """Print on stderr the reasons that make the times untrustworthy."""
    if hasattr(os, "getloadavg") and (warning := report.busy(os.getloadavg()[0], os.cpu_count() or 1)):
        click.echo(warning, err=True)
    if len(places(threads)) not in (0, threads):
        click.echo(f"{threads} threads have to share {len(places(threads))} processors", err=True)


def finish(console: Console, results: Results, output: Path | None, picture: Path | None) -> None:
    if output is not None:
        write_json(output, results)
    report.show(console, results)
    if picture is not None:
        plot.save(picture, results)


def explained_cases(table: Sequence[Layer], source: str, place: str, choice: Choice) -> list[Case]:
    """Return the cases of `LAYER/DIRECTION`."""
    layer, _, direction = place.partition("/")
    if direction not in DIRECTIONS:
        raise click.UsageError(f"--explain: expected LAYER/{'|'.join(DIRECTIONS)}, given '{place}'")
    return cases_of(table, Choice(choice.batches, (direction,), choice.formats, choice.dtypes), (layer,), source)


def tell(console: Console, case: Case, threads: int, module: Path, rounds: int, tensors: Tensors) -> None:
    """One row, explained and measured."""
    try:
        worker = own_worker(module, threads)
    except WorkerError as error:
        raise click.ClickException(f"the generated module does not start: {error}") from error
    try:
        row = measure(case, threads, [Contestant(worker, worker.variants[0])], tensors, rounds)
    finally:
        worker.close()
    explain.show(console, explain.explain(case, threads), next(iter(row.seconds.values()), None))
    for title, reason in row.refused.items():
        console.print(f"refused by {title}: {reason}", markup=False, highlight=False)


if __name__ == "__main__":
    main(prog_name="opgen bench")
