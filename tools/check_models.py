"""`python -m tools.check_models DIR`: are the models that `tools.models` made right, and how fast, beside ONNX Runtime?

Exits with 1 if a model is wrong or refused.  `opgen bench --models DIR` is the same.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from opgen.cli.progress import working
from tools.bench import models
from tools.bench.peers import VARIABLE, PeerError, find


@click.command("check_models", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--model", "names", multiple=True, help="Only this model (may be given several times).")
@click.option("--peer-python", "pythons", multiple=True, metavar="[ort=]PYTHON",
              help=f"The interpreter that has onnxruntime.  [default: ${VARIABLE}, else this one]")  # fmt: skip
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option("--rounds", type=click.IntRange(0), default=7, show_default=True, help="Turns; 0: no times.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the inputs.")
@click.option("--widths", type=click.IntRange(2), help="In place of this: ppocr_rec at so many random widths.")
def main(
    folder: Path,
    names: tuple[str, ...],
    pythons: tuple[str, ...],
    threads: int,
    rounds: int,
    seed: int,
    widths: int | None,
) -> None:
    """Compares the models of FOLDER with ONNX Runtime, in turns, losses first."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        found = find(pythons, os.environ.get(VARIABLE, ""))
        if widths is None:
            good = models.report(console, folder, names, found, threads, rounds, seed)
        else:
            drawn = np.random.default_rng(seed).integers(32, 640, widths).tolist()
            with working("widths") as tell:
                rows = models.changing(folder, "ppocr_rec", 3, drawn, found, seed, tell)
            good = models.show_changing(console, rows)
    except (PeerError, FileNotFoundError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
