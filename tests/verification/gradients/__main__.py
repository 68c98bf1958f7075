"""Gradients of ONNX's operators against finite differences: `python -m tests.verification.gradients [WORD] [--seed N]`.

Every operator of `specs/onnx` with floats in and out has calls here (`cases.txt`), one at least, and one for each main
variant of its attributes.  The gradient with respect to all of a call's floats, derived and interpreted in float64, is
compared with central differences of the results in a random direction.  Exits with 1 unless all are right.
"""

from __future__ import annotations

import sys

import click
from rich.progress import track

from opgen.diagnostics import UserError
from tests.verification.gradients.cases import CASES, DISCRETE
from tests.verification.gradients.slopes import differentiable, mistake


@click.command(help=__doc__)
@click.argument("word", default="")
@click.option("--seed", default=0, help="Of the values and directions.")
def main(word: str, seed: int) -> None:
    """Runs the calls of the operators whose names have the word."""
    chosen = [(name, case) for name, case in CASES if word in name]
    covered = {name for name, _ in CASES} | set(DISCRETE)
    wrong = [f"{name}: no call of it" for name in differentiable() if name not in covered]
    refused = 0
    for name, case in track(chosen, "calls"):
        try:
            found = mistake(name, case, seed)
        except UserError as error:
            found, refused = f"{type(error).__name__}: {error}", refused + 1
        except Exception as error:  # whatever comes, the other calls are run
            found = f"{type(error).__name__}: {error}"
        if found is not None:
            wrong.append(f"{name} {case}: {found}")
    for line in wrong:
        print(line)
    operators = len({name for name, _ in chosen})
    print(f"{len(chosen)} calls of {operators} operators, {len(wrong)} wrong, {refused} of them refused")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
