"""Every cell of every op's support matrix, computed: `python -m tools.support_matrix [--quick]`.

The cells come from the spec alone: all types, layouts and words; 1 and 2 for every element of a list of integers; small
sizes for every symbol.  Whether a cell has a meaning, and which, `tools.reference` says, which does not know the specs.

* A cell with a meaning is right if the generated function gives, bit for bit, what the interpreter makes of the
  unscheduled loop IR, and that is within rounding of the float64 reference.
* A cell without one is right if the call raises opgen's error for arguments.

Exits with 1 unless every cell is right.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track
from rich.table import Table

from opgen.dtypes import DTYPES
from opgen.grad import load
from opgen.loop.interpret import interpret
from opgen.pipeline import Pipeline, variant_of
from opgen.runtime.buffers import numpy_dtype
from opgen.runtime.errors import ArgumentError
from opgen.spec import solve
from opgen.spec.model import Attr, Module, OpSpec, Tensor
from tools import reference
from tools.demo.agreement import relative_error

ROOT = Path(__file__).resolve().parent.parent
Array: TypeAlias = npt.NDArray[Any]
Pairs: TypeAlias = "tuple[tuple[int, int], ...]"
Value: TypeAlias = "str | tuple[int, ...] | Pairs"

SIZES: dict[str, tuple[int, ...]] = {
    "batch": (2,),
    "in_height": (5,),
    "in_width": (6,),
    "filter_height": (2,),
    "filter_width": (3,),
    "groups": (1, 2),
    "group_channels": (2,),
    "group_outputs": (3,),
    "in_channels": (3,),
    "multiplier": (1, 2),
}
"""The sizes that each symbol of the specs takes."""

PADS = {"N": (0, 0), "C": (0, 0), "H": (1, 2), "W": (2, 0)}
"""The padding before and after each dimension where a list of it is given."""

QUICK = 31
"""`--quick` computes one cell in so many (a prime, so that no value is left out throughout)."""


@dataclass(frozen=True)
class Cell:
    """One call: an op, its type, the shapes of its inputs and its attributes, both as a caller gives them."""

    op: OpSpec
    dtype: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    attrs: tuple[tuple[str, Value], ...]

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} {list(shape)}" for name, shape in self.shapes)
        attrs = ", ".join(f"{name}={value}" for name, value in self.attrs)
        return f"{self.op.name} {self.dtype}: {shapes}; {attrs}"


# The cells -----------------------------------------------------------------------------------------------------------


def cells(op: OpSpec) -> Iterator[Cell]:
    """Every cell of an op, in a fixed order."""
    symbols = sorted({f for t in op.tensors for d in t.dims for f in d.factors if isinstance(f, str)})
    choices = [[(a.name, value) for value in candidates(op, a)] for a in op.attrs if not a.compatibility]
    for variable in op.type_variables[0].allowed:
        for sizes in itertools.product(*(SIZES[s] for s in symbols)):
            for attrs in itertools.product(*choices):
                given = {name: value for name, value in attrs if value is not None}
                if any(a.carried_by in given and given[str(a.carried_by)] != () for a in op.attrs if a.name in given):
                    continue
                named = dict(zip(symbols, sizes, strict=True))
                shapes = tuple((t.name, shape_of(op, t, named, given)) for t in op.tensors)
                yield Cell(op, variable.name, shapes, tuple(given.items()))


def candidates(op: OpSpec, attr: Attr) -> list[Value | None]:
    """The values of an attribute that are tried; None leaves it out."""
    if attr.carried_by is not None:
        return [None]  # given in place of a word of the attribute that carries it
    if attr.kind in ("enum", "layout"):
        words: list[Value | None] = [w for w in attr.values if attr.payload is None or w != attr.payload[0]]
        return words if attr.payload is None else [*words, *pad_lists(op, op.attr(attr.payload[1]))]
    if len(attr.shape) == 2:
        return [None, *(_flat(pairs) for pairs in pad_lists(op, attr))]
    return list(itertools.product((1, 2), repeat=attr.shape[0]))


def pad_lists(op: OpSpec, attr: Attr) -> list[Pairs]:
    """Pairs in the order of each layout; those in the wrong order pad what cannot be padded."""
    layouts = op.attr(attr.layout).values if attr.layout is not None else ("",)
    return [tuple(PADS[letter] for letter in layout) for layout in layouts]


def _flat(value: Value) -> tuple[int, ...]:
    """The integers of a list, or of a list of pairs."""
    items: list[int] = []
    for item in value:
        items += item if isinstance(item, tuple) else (int(item),)
    return tuple(items)


def shape_of(op: OpSpec, tensor: Tensor, sizes: Mapping[str, int], attrs: Mapping[str, Value]) -> tuple[int, ...]:
    """A tensor's shape in the caller's order."""
    logical = [int(np.prod([f if isinstance(f, int) else sizes[f] for f in d.factors])) for d in tensor.dims]
    if tensor.layout is None:
        return tuple(logical)
    letters = op.attr(tensor.layout).values[0]
    return tuple(logical[letters.index(letter)] for letter in str(attrs[tensor.layout]))


# What a cell should give ---------------------------------------------------------------------------------------------


def expected(cell: Cell, tensors: Mapping[str, Array]) -> tuple[Array, Array]:
    """The float64 reference and the sums of absolute terms; raises `reference.Refused` for a call without a meaning."""
    attrs = dict(cell.attrs)
    padding, paddings = attrs["padding"], attrs.get("explicit_paddings", ())
    if not isinstance(padding, str):
        padding, paddings = "EXPLICIT", padding
    data_format = str(attrs["data_format"])
    dilations = _flat(attrs["dilations"]) if "dilations" in attrs else _spatial(data_format, _flat(attrs["rate"]))
    call = reference.Call(_flat(attrs["strides"]), dilations, padding, _flat(paddings), data_format)
    compute = reference.dense if cell.op.name == "Conv2D" else reference.channelwise
    return compute(tensors["input"], tensors["filter"], call)


def _spatial(data_format: str, pair: Sequence[int]) -> tuple[int, ...]:
    by_letter = {"H": pair[0], "W": pair[1]}
    return tuple(by_letter.get(letter, 1) for letter in data_format)


# What it gives -------------------------------------------------------------------------------------------------------


class Matrix:
    """Judges cells; keeps the kernel of each variant."""

    def __init__(self, module: Module, functions: Mapping[str, Callable[..., Array]], seed: int) -> None:
        self._module = module
        self._functions = functions
        self._seed = seed
        self._pipelines: dict[object, Pipeline] = {}

    def judge(self, cell: Cell, number: int) -> str:
        """`right`, `refused rightly`, or what is wrong."""
        tensors = self._tensors(cell, number)
        try:
            values, magnitudes = expected(cell, tensors)
        except reference.Refused:
            values = None
        try:
            result = self._functions[cell.op.function_name](**tensors, **dict(cell.attrs))
        except ArgumentError as refusal:
            return "refused rightly" if values is None else f"refused: {refusal}"
        except Exception as failure:  # one broken cell must not hide the others
            return f"wrong: {type(failure).__name__}: {failure}"
        if values is None:
            return "wrong: accepted, though it has no meaning"
        interpreted = self._interpreted(cell, tensors)
        if result.dtype != interpreted.dtype or result.tobytes() != interpreted.tobytes():
            return "wrong: differs from the interpreter"
        error = relative_error(result, values, magnitudes, cell.dtype)
        return "right" if error <= 1 else f"wrong: {error:.3g} times the error that rounding allows"

    def _tensors(self, cell: Cell, number: int) -> dict[str, Array]:
        rng = np.random.default_rng([self._seed, number])
        dtype = numpy_dtype(DTYPES[cell.dtype])
        if dtype.kind == "i":
            return {name: rng.integers(-8, 9, shape).astype(dtype) for name, shape in cell.shapes}
        return {name: rng.standard_normal(shape).astype(dtype) for name, shape in cell.shapes}

    def _interpreted(self, cell: Cell, tensors: Mapping[str, Array]) -> Array:
        call = solve(cell.op, self._module, dict(cell.shapes), {}, dict(cell.attrs))
        words = {name: value for name, value in call.attrs.items() if isinstance(value, str)}
        variant = variant_of(cell.op, {cell.op.type_variables[0].name: cell.dtype}, words)
        key = (cell.op.name, variant)
        if key not in self._pipelines:
            self._pipelines[key] = Pipeline(self._module, cell.op, variant)
        pipeline = self._pipelines[key]
        return interpret(pipeline.lowered.kernel, tensors, pipeline.values(call))[cell.op.outputs[0].name]


@click.command("support_matrix", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help=f"One cell in {QUICK}.")
@click.option("--specs", type=click.Path(exists=True, path_type=Path), default=ROOT / "specs" / "nn_ops.op")
@click.option("--module", "generated", type=click.Path(exists=True, path_type=Path),
              default=ROOT / "generated" / "nn_ops.py", help="The generated module.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True)
def main(quick: bool, specs: Path, generated: Path, seed: int) -> None:
    """Computes every cell of the support matrix and says how many are right."""
    os.environ["OPGEN_SPECIALIZE"] = "never"  # so that cells share kernels
    begin = time.perf_counter()
    module = load(specs)
    sys.path.insert(0, str(generated.resolve().parent))
    matrix = Matrix(module, vars(importlib.import_module(generated.stem)), seed)
    chosen = [(n, c) for n, c in enumerate(c for op in module.ops for c in cells(op)) if not quick or n % QUICK == 0]
    verdicts = [(cell, matrix.judge(cell, number)) for number, cell in
                track(chosen, "cells", console=Console(stderr=True), transient=True)]  # fmt: skip
    wrong = show(verdicts)
    print(f"{len(verdicts)} cells in {time.perf_counter() - begin:.1f} s, seed {seed}")
    sys.exit(1 if wrong else 0)


def show(verdicts: Sequence[tuple[Cell, str]]) -> int:
    """The counts for each op and type, then the first cells that are not right; how many those are."""
    table = Table(title="support matrix", title_justify="left")
    for name in ("op", "type", "with a meaning: right", "wrong", "refused", "without: refused", "accepted"):
        table.add_column(name, justify="left" if name in ("op", "type") else "right")
    counts: dict[tuple[str, str], Counter[str]] = {}
    for cell, verdict in verdicts:
        kind = "accepted" if "accepted" in verdict else verdict.split(":")[0]
        counts.setdefault((cell.op.name, cell.dtype), Counter())[kind] += 1
    for (op, dtype), count in counts.items():
        kinds = ("right", "wrong", "refused", "refused rightly", "accepted")
        table.add_row(op, dtype, *(str(count[kind]) for kind in kinds))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    failures = [(cell, verdict) for cell, verdict in verdicts if verdict not in ("right", "refused rightly")]
    for cell, verdict in failures[:20]:
        print(f"{verdict}\n    {cell}")
    return len(failures)


if __name__ == "__main__":
    main(prog_name="python -m tools.support_matrix")
