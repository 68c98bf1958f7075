"""Cells of support matrices, computed: `python -m tests.verification.support_matrix [--quick | --all | --onnx]`.

Of TensorFlow's convolutions some cells are tried, with all pairs of values, or with `--all` all (`convolutions`).
Cells of ONNX's operators have all pairs of types, ranks and attributes (`cells`): a few of each operator are tried, or
with `--onnx` all.  Exits with 1 unless every cell is right.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from opgen.cli.options import FILE_OR_FOLDER
from tests.verification.support_matrix import convolutions, operators
from tests.verification.support_matrix.convolutions import QUICK, ROOT, Amount, Trial

SAMPLE = 3
"""Cells of each of ONNX's operators that are tried, if not all are."""
SHOWN = 20


@click.command("support_matrix", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help=f"Only one cell of convolutions in {QUICK}.")
@click.option("--all", "every", is_flag=True, help="All cells of convolutions, not only some with all pairs of values.")
@click.option("--onnx", "whole", is_flag=True, help="All cells of ONNX's operators, and no others.")
@click.option("--op", "names", multiple=True, help="Only this op, or this operator of ONNX (several times).")
@click.option("--specs", type=FILE_OR_FOLDER, default=ROOT / "specs" / "nn_ops.op", help="The convolutions.")
@click.option("--module", "generated", type=FILE_OR_FOLDER,
              default=ROOT / "generated" / "nn_ops.py", help="The generated module.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--sample", type=click.IntRange(min=1), help=f"Cells of each of ONNX's operators.  [default: {SAMPLE}]")
@click.option("--shown", type=click.IntRange(min=0), default=SHOWN, show_default=True, help="Cells that are printed.")
@click.option("--device", type=click.Choice(["cpu", "cuda", "emulated"]), default="cpu", show_default=True,
              help="Where ONNX's operators run; emulated: as CUDA C, on the CPU.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Processes.  [default: CPUs]")
def main(
    quick: bool,
    every: bool,
    whole: bool,
    names: tuple[str, ...],
    specs: Path,
    generated: Path,
    seed: int,
    sample: int | None,
    shown: int,
    device: str,
    jobs: int,
) -> None:
    """Computes cells of the support matrices and says how many are right."""
    wrong = 0
    amount: Amount = "quick" if quick else "all" if every else "some"
    begin = time.perf_counter()
    mine = convolutions.named(specs, names)
    if not whole and device == "cpu" and (mine or not names):
        verdicts = convolutions.verdicts_of(Trial(specs, generated, mine, amount, seed), jobs)
        wrong += convolutions.show(verdicts)
        print(f"{len(verdicts)} cells in {time.perf_counter() - begin:.1f} s, seed {seed}")
    others = tuple(name for name in names if name not in mine)
    if whole or others or not (names or quick):
        begin = time.perf_counter()
        found = operators.judged(others, seed, sample if sample or whole or others else SAMPLE, jobs, device)
        if not found:
            raise click.UsageError(f"no op named {', '.join(others)} in {specs} or {operators.SPECS}")
        wrong += operators.show(found, shown)
        print(f"{len(found)} cells of ONNX's operators in {time.perf_counter() - begin:.1f} s, seed {seed}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(prog_name="python -m tests.verification.support_matrix")
