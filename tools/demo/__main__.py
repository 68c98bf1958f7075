"""`opgen demo`, or `python -m tools.demo` in the repository."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click
import ml_dtypes
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track
from rich.table import Table

from opgen.cli.options import FILE, GivenPath
from tools import reference
from tools.demo import recorded
from tools.demo.agreement import Agreement, relative_error
from tools.demo.effects import Effect, effects
from tools.demo.picture import photograph, save_row, save_sheet

ROOT = Path(__file__).resolve().parent.parent.parent
Array = npt.NDArray[Any]
Op: TypeAlias = Callable[..., Array]

DTYPES = {"float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@click.command("demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-o", "--output", type=GivenPath(dir_okay=False), default=Path("opgen-demo.png"),
              show_default=True, help="The picture.")  # fmt: skip
@click.option("--row", type=GivenPath(dir_okay=False), help="A small picture, too: a row of it, as JPEG.")
@click.option("--module", type=FILE,
              default=ROOT / "generated" / "nn_ops.py", help="The generated module.")  # fmt: skip
@click.option(
    "--scale", type=click.IntRange(1), default=1, show_default=True, help="Use every n-th pixel of the photo."
)
def main(output: Path, row: Path | None, module: Path, scale: int) -> None:
    """Applies the generated ops to a photograph in every floating type, and to results recorded from TensorFlow.

    Saves a picture of the effects, prints how well each result agrees with a float64 reference, and exits with 1 if one
    does not.  Needs a checkout of opgen's repository.
    """
    ops = load(module)
    photo = photo_or_exit()[::scale, ::scale]
    panels, found = apply(ops, photo)
    save_sheet(output, panels)
    if row is not None:
        save_row(row, panels)
    rows = [*found, *recorded.agreements(ops)]
    show(rows)
    print(f"picture: {output}")
    if any(row.right < row.count for row in rows):
        sys.exit("some results are wrong")


def load(module: Path) -> dict[str, Op]:
    """Return the generated module's functions by name."""
    sys.path.insert(0, str(module.resolve().parent))
    return dict(vars(importlib.import_module(module.stem)))


def photo_or_exit() -> npt.NDArray[np.float64]:
    try:
        return photograph()
    except ImportError as error:
        sys.exit(f"the demonstration draws with matplotlib: pip install 'opgen[demo]'  ({error})")


def apply(ops: dict[str, Op], photo: npt.NDArray[np.float64]) -> tuple[list[tuple[str, Array]], list[Agreement]]:
    """Return the panels of the picture, and the agreement of every effect in every type."""
    functions = {"dense": ops["conv2d"], "channelwise": ops["depthwise_conv2d_native"]}
    panels: list[tuple[str, Array]] = [("the photograph", photo)]
    rows = {(op, dtype): Agreement(function.__name__, dtype, "photograph")
            for op, function in functions.items() for dtype in DTYPES}  # fmt: skip
    for effect in track(effects(), "effects", console=Console(stderr=True), transient=True):
        for dtype, scalar in DTYPES.items():
            images, weights = effect.images(photo).astype(scalar), effect.weights.astype(scalar)
            result = run(functions[effect.op], effect, images, weights)
            taps = weights if effect.op == "dense" else weights.reshape(reference.channelwise(weights.shape))
            error = relative_error(result, reference.forward(images, taps, effect.call()), dtype, effect.terms)
            rows[effect.op, dtype].add(error <= 1, error)
            if dtype == "float32":
                panels.append((effect.title, effect.picture(result)))
    return panels, list(rows.values())


def run(function: Op, effect: Effect, images: Array, weights: Array) -> Array:
    call = effect.call()
    return function(
        images,
        weights,
        strides=call.strides,
        padding=call.padding,
        dilations=call.dilations,
        data_format=call.data_format,
    )


def show(rows: list[Agreement]) -> None:
    """The table of agreement."""
    table = Table(
        title="agreement with the float64 reference (worst error, 1 = what rounding allows)", title_justify="left"
    )
    for name in ("op", "type", "source"):
        table.add_column(name)
    for name in ("results", "right", "worst error"):
        table.add_column(name, justify="right")
    for row in sorted(rows, key=lambda r: (r.source, r.op, r.dtype)):
        color = "green" if row.right == row.count else "red"
        right = f"[{color}]{row.right}[/]"
        table.add_row(row.op, row.dtype, row.source, str(row.count), right, f"{row.worst:.3f}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    main(prog_name="opgen demo")
