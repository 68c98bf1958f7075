"""Cells of the support matrices of TensorFlow's convolutions, computed: every one, or some with all pairs of values.

The cells come from the spec alone: all types, layouts and words; 1 and 2 for every element of a list of integers, and
3 for one alone; small sizes for every symbol.  Whether a cell has a meaning, and which, `tools.reference` says, which
does not know the specs.

* A cell with a meaning is right if the generated function gives it within rounding of the float64 reference.  Every
  second cell has numbers whose sums are exact in any order: there it gives, bit for bit, what the interpreter makes of
  the unscheduled loop IR.
* A cell without one is right if the call raises opgen's error for arguments.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track
from rich.table import Table

from opgen.compiler.request import OpVariant
from opgen.diagnostics.calls import ArgumentError
from opgen.dtypes import DTYPES
from opgen.grad import load
from opgen.loop.interpret import interpret
from opgen.lower import variant_of
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.spec import solve
from opgen.spec.model.model import Attr, Dimension, Module, OpSpec, Sizes
from tools import reference
from tools.demo.agreement import relative_error

ROOT = Path(__file__).resolve().parents[3]
Array: TypeAlias = npt.NDArray[Any]
Pairs: TypeAlias = "tuple[tuple[int, int], ...]"
Value: TypeAlias = "str | tuple[int, ...] | Pairs"
Amount: TypeAlias = Literal["quick", "some", "all"]
"""How many of the cells are tried."""

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

STRETCH = 200
"""How many neighbouring cells a process judges at a time."""

PADS = {"N": (0, 0), "C": (0, 0), "H": (1, 2), "W": (2, 0)}
"""The padding before and after each dimension where a list of it is given."""

THREES = ((1, 3, 1, 1), (1, 1, 3, 1))
"""Lists of four that are tried beside those of 1 and 2: 3 along one dimension alone, 1 along the other."""

SOME = 7
"""One cell in so many is tried, and those with a pair of values that no other has (a prime, so that no value is left
out throughout)."""

QUICK = 31
"""`--quick` tries one cell in so many."""

REFUSALS = 37
"""Of the cells without a meaning, which are most, one in so many is tried."""


@dataclass(frozen=True)
class Cell:
    """One call: an op, its type, and its arguments as a caller gives them.

    `images` and `weights` are the shapes of the forward op's arguments, to which a gradient op's belong.
    """

    op: OpSpec
    dtype: str
    images: tuple[int, ...]
    weights: tuple[int, ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    sizes: tuple[tuple[str, tuple[int, ...]], ...]
    attrs: tuple[tuple[str, Value], ...]

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} {list(shape)}" for name, shape in self.shapes)
        rest = ", ".join(f"{name}={value}" for name, value in (*self.sizes, *self.attrs))
        return f"{self.op.name} {self.dtype}: {shapes}; {rest}"

    @property
    def call(self) -> reference.Call:
        """The call as the reference takes it."""
        return reference_call(dict(self.attrs))

    @property
    def has_meaning(self) -> bool:
        try:
            self.call.windows(self.images, self.weights)
        except reference.Refused:
            return False
        return True


# The cells ------------------------------------------------------------------------------------------------------


def cells(module: Module, op: OpSpec, types: Sequence[str] | None = None) -> Iterator[Cell]:
    """Every cell of an op, or every one of some types, in a fixed order."""
    types = types_of(op) if types is None else types
    forward = op if op.gradient is None else module.op(op.gradient.op)
    symbols = sorted({f for t in forward.tensors for d in t.dims for f in d.factors if isinstance(f, str)})
    choices = [[(a.name, value) for value in candidates(op, a)] for a in op.attrs if not a.compatibility]
    sizes = [dict(zip(symbols, values, strict=True)) for values in itertools.product(*(SIZES[s] for s in symbols))]
    for dtype, named in itertools.product(types, sizes):
        for chosen in itertools.product(*choices):
            attrs = {name: value for name, value in chosen if value is not None}
            yield from cells_of_call(forward, op, dtype, named, attrs)


def types_of(op: OpSpec) -> tuple[str, ...]:
    """The types that an op takes."""
    return tuple(t.name for t in op.type_variables[0].allowed)


def cells_of_call(
    forward: OpSpec, op: OpSpec, dtype: str, sizes: dict[str, int], attrs: Mapping[str, Value]
) -> Iterator[Cell]:
    """A cell for each form in which the op's inputs of sizes can be given."""
    images, weights = (shape_of(forward, t.dims, t.layout, sizes, attrs) for t in forward.tensors)
    counts = window_counts(images, weights, attrs)
    sizes = {**sizes, "out_height": counts[0], "out_width": counts[1]}
    shapes = tuple((t.name, shape_of(op, t.dims, t.layout, sizes, attrs)) for t in op.tensors)
    vectors = [i for i in op.inputs if isinstance(i, Sizes)]
    for forms in itertools.product(*(range(len(v.forms)) for v in vectors)):
        pairs = list(zip(vectors, forms, strict=True))
        fixed = [b for v, n in pairs if v.bindings for b in v.bindings[n]]
        if all(sizes[name] == value for name, value in fixed):
            given = tuple((v.name, shape_of(op, v.forms[n], v.layouts[n], sizes, attrs)) for v, n in pairs)
            yield Cell(op, dtype, images, weights, shapes, given, tuple(attrs.items()))


def candidates(op: OpSpec, attr: Attr) -> list[Value | None]:
    """The values of an attribute that are tried; None leaves it out."""
    if attr.carried_by is not None:
        return [None]  # given in place of a word of the attribute that carries it
    if attr.kind in ("enum", "layout"):
        words: list[Value | None] = [w for w in attr.values if attr.payload is None or w != attr.payload[0]]
        return words if attr.payload is None else [*words, *pad_lists(op, op.attr(attr.payload[1]))]
    if len(attr.shape) == 2:
        return [None, *(flat(pairs) for pairs in pad_lists(op, attr))]
    return [*itertools.product((1, 2), repeat=attr.shape[0]), *(THREES if attr.shape == (4,) else ())]


def pad_lists(op: OpSpec, attr: Attr) -> list[Pairs]:
    """Pairs in the order of each layout; those in the wrong order pad what cannot be padded."""
    layouts = op.attr(attr.layout).values if attr.layout is not None else ("",)
    return [tuple(PADS[letter] for letter in layout) for layout in layouts]


def flat(value: Value) -> tuple[int, ...]:
    """The integers of a list, or of a list of pairs."""
    items: list[int] = []
    for item in value:
        items += item if isinstance(item, tuple) else (int(item),)
    return tuple(items)


def shape_of(
    op: OpSpec, dims: Sequence[Dimension], layout: str | None, sizes: Mapping[str, int], attrs: Mapping[str, Value]
) -> tuple[int, ...]:
    """Dimensions in the caller's order."""
    logical = [math.prod(f if isinstance(f, int) else sizes[f] for f in d.factors) for d in dims]
    if layout is None:
        return tuple(logical)
    letters = op.attr(layout).values[0]
    return tuple(logical[letters.index(letter)] for letter in str(attrs[layout]))


# What a cell should give ----------------------------------------------------------------------------------------


def reference_call(attrs: Mapping[str, Value]) -> reference.Call:
    padding, paddings = attrs["padding"], attrs.get("explicit_paddings", ())
    if not isinstance(padding, str):
        padding, paddings = "EXPLICIT", padding
    data_format = str(attrs["data_format"])
    dilations = flat(attrs["dilations"]) if "dilations" in attrs else spatial(data_format, flat(attrs["rate"]))
    return reference.Call(flat(attrs["strides"]), dilations, padding, flat(paddings), data_format)


def spatial(data_format: str, pair: Sequence[int]) -> tuple[int, ...]:
    """A list in the order of the data format, from the numbers for height and width."""
    by_letter = {"H": pair[0], "W": pair[1]}
    return tuple(by_letter.get(letter, 1) for letter in data_format)


def window_counts(images: Sequence[int], weights: Sequence[int], attrs: Mapping[str, Value]) -> tuple[int, int]:
    """How many windows there are along height and width; 1 for a call without a meaning."""
    try:
        height, width = reference_call(attrs).windows(images, weights)
    except reference.Refused:
        return 1, 1
    return height.count, width.count


def expected(cell: Cell, tensors: Mapping[str, Array]) -> reference.Sums:
    """The float64 reference of a cell that has a meaning."""
    dense = cell.op.name.startswith("Conv2D")

    def grouped(shape: Sequence[int]) -> Sequence[int]:
        return shape if dense else reference.channelwise(shape)

    weights = tensors["filter"].reshape(grouped(cell.weights)) if "filter" in tensors else None
    if cell.op.gradient is None and weights is not None:
        return reference.forward(tensors["input"], weights, cell.call)
    gradient = tensors["out_backprop"]
    if cell.op.gradient is not None and cell.op.gradient.wrt == "input" and weights is not None:
        return reference.input_gradient(cell.images, weights, gradient, cell.call)
    sums = reference.filter_gradient(tensors["input"], grouped(cell.weights), gradient, cell.call)
    return reference.Sums(sums.values.reshape(cell.weights), sums.magnitudes.reshape(cell.weights))


# What it gives --------------------------------------------------------------------------------------------------


class Matrix:
    """Judges cells; keeps the kernel of each variant."""

    def __init__(self, module: Module, functions: Mapping[str, Callable[..., Array]], seed: int) -> None:
        self._module = module
        self._functions = functions
        self._seed = seed
        self._variants: dict[object, OpVariant] = {}

    def judge(self, cell: Cell, number: int) -> str:
        """`right`, `refused rightly`, or what is wrong."""
        tensors = self._tensors(cell, number)
        arguments = {**tensors, **dict(cell.sizes), **dict(cell.attrs)}
        try:
            result = self._functions[cell.op.function_name](**arguments)
        except ArgumentError as refusal:
            return f"refused: {refusal}" if cell.has_meaning else "refused rightly"
        except Exception as failure:  # one broken cell must not hide the others
            return f"wrong: {type(failure).__name__}: {failure}"
        if not cell.has_meaning:
            return "wrong: accepted, though it has no meaning"
        if _is_exact(cell, number):
            interpreted = self._interpreted(cell, tensors)
            if result.dtype != interpreted.dtype or result.tobytes() != interpreted.tobytes():
                return "wrong: differs from the interpreter"
        error = relative_error(result, expected(cell, tensors), cell.dtype)
        return "right" if error <= 1 else f"wrong: {error:.3g} times the error that rounding allows"

    def _tensors(self, cell: Cell, number: int) -> dict[str, Array]:
        rng = np.random.default_rng([self._seed, number])
        dtype = numpy_dtype(DTYPES[cell.dtype])
        if dtype.kind == "i":
            return {name: rng.integers(-8, 9, shape).astype(dtype) for name, shape in cell.shapes}
        if _is_exact(cell, number):
            return {name: (rng.integers(-8, 9, shape) / 4).astype(dtype) for name, shape in cell.shapes}
        return {name: rng.standard_normal(shape).astype(dtype) for name, shape in cell.shapes}

    def _interpreted(self, cell: Cell, tensors: Mapping[str, Array]) -> Array:
        call = solve(cell.op, self._module, dict(cell.shapes), dict(cell.sizes), dict(cell.attrs))
        words = {name: value for name, value in call.attrs.items() if isinstance(value, str)}
        variant = variant_of(cell.op, {cell.op.type_variables[0].name: cell.dtype}, words)
        key = (cell.op.name, variant)
        if key not in self._variants:
            self._variants[key] = OpVariant(self._module, cell.op, variant)
        checked = self._variants[key].lowered()
        kernel = checked.lowered.kernel
        reads = {b.name: tensors[b.name] for b in kernel.inputs}
        return interpret(kernel, reads, checked.values(call))[cell.op.outputs[0].name]


def _is_exact(cell: Cell, number: int) -> bool:
    """Whether a cell's numbers are such that sums of their products are exact (quarters of small integers)."""
    return number % 2 == 0 or not DTYPES[cell.dtype].is_float


Numbered: TypeAlias = "list[tuple[int, Cell]]"


def chosen_cells(module: Module, ops: Sequence[OpSpec], amount: Amount) -> Numbered:
    """What is tried, numbered: of the cells with a meaning as many as are asked for, and some of those without."""
    meaningful: list[tuple[str, Cell]] = []
    others: list[tuple[str, Cell]] = []
    for op in ops:
        of_one = list(cells(module, op, types_of(op)[:1]))  # whether a cell has a meaning is not for its type to say
        right = [c.has_meaning for c in of_one]
        for dtype in types_of(op):
            for cell, has_meaning in zip(of_one, right, strict=True):
                (meaningful if has_meaning else others).append((dtype, cell))
    step = QUICK if amount == "quick" else 1
    first = with_all_pairs(meaningful) if amount == "some" else meaningful[::step]
    chosen = [*first, *others[:: REFUSALS * step]]
    return [(number, replace(cell, dtype=dtype)) for number, (dtype, cell) in enumerate(chosen)]


def with_all_pairs(found: Sequence[tuple[str, Cell]]) -> list[tuple[str, Cell]]:
    """One in `SOME` of the cells of an op, and each that has a pair of values which none before it has."""
    seen: set[object] = set()
    chosen = []
    for number, (dtype, cell) in enumerate(found):
        pairs = set(pairs_of(dtype, cell))
        if number % SOME == 0 or not pairs <= seen:
            chosen.append((dtype, cell))
            seen |= pairs
    return chosen


def pairs_of(dtype: str, cell: Cell) -> Iterator[object]:
    """What two things of a cell are: its type, shapes and attributes; each pair with the name of its op."""
    values = (("type", dtype), ("images", cell.images), ("weights", cell.weights), *cell.sizes, *cell.attrs)
    return ((cell.op.name, *two) for two in itertools.combinations(values, 2))


@dataclass(frozen=True)
class Trial:
    """What is tried, for processes that each judge a part of it."""

    specs: Path
    generated: Path
    names: tuple[str, ...]
    amount: Amount
    seed: int


@functools.lru_cache(maxsize=1)
def prepared(trial: Trial) -> tuple[Matrix, Numbered]:
    """The judge and all numbered cells, made once: processes that are forked have them."""
    os.environ["OPGEN_SPECIALIZE"] = "never"  # so that cells share kernels
    module = load(trial.specs)
    sys.path.insert(0, str(trial.generated.resolve().parent))
    matrix = Matrix(module, vars(importlib.import_module(trial.generated.stem)), trial.seed)
    ops = [op for op in module.ops if not trial.names or op.name in trial.names]
    return matrix, chosen_cells(module, ops, trial.amount)


def named(specs: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the names that are ops of these specs."""
    known = {op.name for op in load(specs).ops} if names else set()
    return tuple(name for name in names if name in known)


def judged(trial: Trial, start: int, stop: int) -> list[str]:
    """The verdicts on some of the cells."""
    matrix, chosen = prepared(trial)
    return [matrix.judge(cell, number) for number, cell in chosen[start:stop]]


def verdicts_of(trial: Trial, jobs: int) -> list[tuple[Cell, str]]:
    """All cells with their verdicts, in order; neighbours share kernels, so each process gets stretches of them."""
    _, chosen = prepared(trial)
    if jobs == 1:
        return [(cell, judged(trial, at, at + 1)[0]) for at, (_, cell) in enumerate(chosen)]
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        parts = [pool.submit(judged, trial, at, at + STRETCH) for at in range(0, len(chosen), STRETCH)]
        shown = track(parts, "cells", console=Console(stderr=True), transient=True)
        verdicts = [verdict for part in shown for verdict in part.result()]
    return [(cell, verdict) for (_, cell), verdict in zip(chosen, verdicts, strict=True)]


def show(verdicts: Sequence[tuple[Cell, str]]) -> int:
    """The counts for each op and type, then the first cells that are not right; how many those are."""
    table = Table(title="support matrix", title_justify="left")
    for name in ("op", "type", "right", "wrong", "refused", "no meaning: refused", "accepted"):
        table.add_column(name, justify="left" if name in ("op", "type") else "right")
    counts: dict[tuple[str, str], Counter[str]] = {}
    for cell, verdict in verdicts:
        kind = "accepted" if "accepted" in verdict else verdict.split(":")[0]
        counts.setdefault((cell.op.name, cell.dtype), Counter())[kind] += 1
    for (op, dtype), count in counts.items():
        kinds = ("right", "wrong", "refused", "refused rightly", "accepted")
        table.add_row(op, dtype, *(str(count[kind]) for kind in kinds))
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    failures = [(cell, verdict) for cell, verdict in verdicts if verdict not in ("right", "refused rightly")]
    for cell, verdict in failures[:20]:
        print(f"{verdict}\n    {cell}")
    return len(failures)
