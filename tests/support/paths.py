"""Random valid calls of the ops that every path computes, and the comparison of their results."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from opgen.dtypes import DTYPES
from opgen.grad import load
from opgen.loop.nodes import Kernel
from opgen.lower import Variant, lower
from opgen.spec.call.shapes import evaluate, solve
from opgen.spec.model.model import Module, OpSpec, Tensor

ROOT = Path(__file__).parents[2]
MODULES = {"nn_ops": load(ROOT / "specs" / "nn_ops.op"), "samples": load(ROOT / "tests" / "specs" / "samples.op")}
PLATFORM = {"exp", "log", "tanh", "erf", "pow", "sin", "cos"}
"""Functions that differ from machine to machine in their last bits."""


ULPS = 16
"""Most units in the last place, of the compute type, that a value through a few such functions may be off, relative to
the largest magnitude it is combined with; the deepest sample applies one and divides twice."""


def attributes(op: OpSpec, rng: random.Random, words: Mapping[str, str]) -> dict[str, object]:
    """Small values for an op's attributes; lists with a layout are 1 along batch and channels."""
    result: dict[str, object] = dict(words)
    for attr in op.attrs:
        if attr.name in words or attr.compatibility or attr.carried_by or attr.optional:
            continue
        if attr.kind == "enum":
            result[attr.name] = rng.choice([v for v in attr.values if v != "EXPLICIT"])
        elif attr.kind == "int" and attr.shape:
            letters = words[attr.layout] if attr.layout else "HW"
            result[attr.name] = [1 if letter in "NC" else rng.randint(1, 2) for letter in letters]
        elif attr.kind == "int":
            result[attr.name] = rng.randint(-3, 3)
        elif attr.kind == "float":
            result[attr.name] = rng.uniform(0.1, 2.0)
    return result


def sizes_of(op: OpSpec, rng: random.Random) -> dict[str, int]:
    """A size for each symbol of the op's dimensions: images large enough for windows, channels for lanes and a tail."""
    symbols = {f for t in op.tensors for d in t.dims for f in d.factors if isinstance(f, str)}
    symbols |= {f for i in op.inputs if not isinstance(i, Tensor) for form in i.forms for d in form for f in d.factors}
    chosen = {}
    for name in sorted(str(s) for s in symbols):
        small = name.startswith(("batch", "group", "multiplier", "filter_"))
        chosen[name] = (
            rng.randint(1, 3) if small else rng.choice([5, 8, 17]) if "channels" in name else rng.randint(4, 9)
        )
    return chosen


def physical(op: OpSpec, layout: str | None, words: Mapping[str, str], logical: list[int]) -> tuple[int, ...]:
    if layout is None:
        return tuple(logical)
    first = op.attr(layout).values[0]
    return tuple(logical[first.index(letter)] for letter in words[layout])


def a_call(module: Module, op: OpSpec, variant: Variant, seed: int) -> tuple[Kernel, dict[str, int | float]]:
    """The generic kernel of a variant and the parameters of a random call that is valid."""
    rng = random.Random(seed)
    lowered = lower(module, op, variant)
    for _ in range(200):
        attrs = attributes(op, rng, variant.values)
        known = sizes_of(op, rng)
        window = _windows(module, op, known, attrs, variant)
        if window is None:
            continue
        environment = solve(op, module, *window, attrs)
        values = [evaluate(a, environment) for a in lowered.arguments]
        return lowered.kernel, {p.name: v for p, v in zip(lowered.kernel.parameters, values, strict=True)}
    raise AssertionError(f"no valid call of {op.name} was found from seed {seed}")


def _windows(
    module: Module, op: OpSpec, known: dict[str, int], attrs: Mapping[str, object], variant: Variant
) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]] | None:
    """The shapes of a call: dimensions that are results of the op's own arithmetic are found by trying."""
    for out_height in range(12):
        for out_width in [out_height] if out_height < 1 else range(1, 12):
            sizes = {**known, "out_height": out_height, "out_width": out_width}
            shapes = {t.name: _shape(op, t, sizes, variant) for t in op.tensors}
            lists = {i.name: _list(op, i, sizes, variant) for i in op.inputs if not isinstance(i, Tensor)}
            try:
                solve(op, module, shapes, lists, attrs)
            except ValueError:
                continue
            return shapes, lists
    return None


def _shape(op: OpSpec, t: Tensor, sizes: Mapping[str, int], variant: Variant) -> tuple[int, ...]:
    logical = [int(np.prod([f if isinstance(f, int) else sizes[f] for f in d.factors])) for d in t.dims]
    return physical(op, t.layout, variant.values, logical)


def _list(op: OpSpec, i: object, sizes: Mapping[str, int], variant: Variant) -> tuple[int, ...]:
    assert not isinstance(i, Tensor)
    dims = i.forms[0]  # type: ignore[attr-defined]
    logical = [int(np.prod([f if isinstance(f, int) else sizes[f] for f in d.factors])) for d in dims]
    return physical(op, i.layouts[0], variant.values, logical)  # type: ignore[attr-defined]


def sizes_in(shape: tuple[object, ...], parameters: Mapping[str, int | float]) -> list[int]:
    from opgen.loop.interpret import evaluate as value

    return [int(value(e, parameters)) for e in shape]  # type: ignore[arg-type,call-overload]


def same(found: np.ndarray, want: np.ndarray, exact: bool, why: str) -> None:
    assert found.shape == want.shape, why
    if exact:
        assert np.array_equal(np.atleast_1d(found).view(np.uint8), np.atleast_1d(want).view(np.uint8)), why
        return
    dtype = DTYPES[str(want.dtype)]
    error = np.abs(found.astype(np.float64) - want.astype(np.float64))
    unit = 2.0**-dtype.precision + ULPS * 2.0**-dtype.compute_type.precision
    assert (error <= unit * max(1.0, float(np.abs(want.astype(np.float64)).max(initial=0.0)))).all(), why
