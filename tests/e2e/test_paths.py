"""Every op through the whole path on the CPU: the compiled kernel, generic and specialised, against the interpreter.

Inputs and outputs stand between protected pages, outputs start poisoned (`run_kernel(guarded=True)`).  What is
computed with `exp` and its like may differ in the last bits of each operation; all else is equal bit for bit.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
import pytest

from opgen.dtypes import DTYPES
from opgen.grad import load
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Call as Function
from opgen.loop.nodes import Kernel
from opgen.loop.verify import verify
from opgen.loop.walk import walk_exprs
from opgen.lower import Variant, lower, variants
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.steps import Divide, Prefix, Relay, Rfactor
from opgen.spec.call.shapes import evaluate, solve
from opgen.spec.model.model import Module, OpSpec, Tensor
from tests.harness import random_arrays

ROOT = Path(__file__).parents[2]
MODULES = {"nn_ops": load(ROOT / "specs" / "nn_ops.op"), "samples": load(ROOT / "tests" / "specs" / "samples.op")}
PLATFORM = {"exp", "log", "tanh", "erf", "pow", "sin", "cos"}
"""Functions that differ from machine to machine in their last bits."""
ULPS = 16
"""Most units in the last place, of the compute type, that a value through a few such functions may be off, relative to
the largest magnitude it is combined with; the deepest sample applies one and divides twice."""

CASES = [
    pytest.param(module, op.name, i, id=f"{op.name}-{variant.suffix}")
    for module in MODULES
    for op in MODULES[module].ops
    for i, variant in enumerate(variants(op))
]


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


@pytest.mark.parametrize(("module", "name", "index"), CASES)
def test_compiled_equals_interpreted(module: str, name: str, index: int) -> None:
    spec = MODULES[module]
    op = spec.op(name)
    variant = list(variants(op))[index]
    kernel, parameters = a_call(spec, op, variant, index)
    shapes = {b.name: tuple(_sizes(b.shape, parameters)) for b in kernel.inputs}
    arrays = random_arrays(shapes, variant.types["T"], index)
    expected = interpret(kernel, arrays, parameters)
    exact = not any(isinstance(e, Function) and e.function in PLATFORM for e in walk_exprs(kernel.body))
    integers = {n: v for n, v in parameters.items() if not isinstance(v, float)}
    for made in (kernel, simplify(bind(kernel, integers))):
        schedule, after = scheduled(made)
        legal = legalize(after)
        verify(legal, bounds=True)
        left = {p.name: parameters[p.name] for p in legal.parameters}
        found = run_kernel(legal, arrays, left, 2, guarded=True)
        summed_otherwise = any(isinstance(step, Rfactor | Divide | Prefix | Relay) for step in schedule.steps)
        ordered = interpret(after, arrays, left) if summed_otherwise else expected
        for output, want in expected.items():
            why = f"seed {index}, {name} {variant.suffix} {parameters}\n{schedule}"
            same(found[output], ordered[output], exact, why)
            same(found[output], want, exact and not summed_otherwise, why)


def _sizes(shape: tuple[object, ...], parameters: Mapping[str, int | float]) -> list[int]:
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


def test_the_comparison_can_fail() -> None:
    a = np.ones(3, np.float32)
    with pytest.raises(AssertionError):
        same(a, np.nextafter(a, np.float32(2)), True, "planted")
    with pytest.raises(AssertionError):
        same(a, a * np.float32(1 + 1e-5), False, "planted")
