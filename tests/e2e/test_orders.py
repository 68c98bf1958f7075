"""Orders: stable sorts as numpy has them, by every path.

Shapes and values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.bindings.c.build import chosen
from opgen.grad import load_text
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.lower import Variant, lower
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import compile_emulated
from opgen.schedule.default import scheduled
from opgen.schedule.steps import Rfactor
from opgen.spec.call.shapes import evaluate, solve
from opgen.spec.unparse import write_op
from tests.bindings.c.library import OK, Library, built, of
from tests.bindings.modules import ROOT, generated, spec

Array = npt.NDArray[Any]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
ORDERS = ROOT / "tests" / "specs" / "orders.op"
FLOATS = ("half", "bfloat16", "float32", "float64")
TYPES = (*FLOATS, "int8", "int64", "uint64")
SIZES = ((3, 1), (2, 5), (4, 16), (3, 17), (2, 64), (2, 100), (1, 257))
BEST = (((2, 7, 3), 3), ((1, 300, 2), 20), ((2, 5, 2), 8), ((3, 40, 1), 0), ((1, 130, 1), 130), ((2, 260, 2), 90))


def _ascending(keys: Array, axis: int = -1) -> Array:
    """NaN last, which is where numpy's stable sort has it (but of bfloat16)."""
    keys = keys.astype(np.float32) if keys.dtype == ml_dtypes.bfloat16 else keys
    return np.argsort(keys, axis=axis, kind="stable")


def _descending(keys: Array, axis: int) -> Array:
    """Stable and NaN first: the ascending order of all turned around, twice."""
    back = np.flip(_ascending(np.flip(keys, axis), axis), axis)
    places: Array = keys.shape[axis] - 1 - back
    return places


def _drawn(shape: tuple[int, ...], dtype: str, number: int) -> Array:
    """Values of which many are equal, and of floats some NaN, -0.0 and infinite."""
    print(f"OPGEN_TEST_SEED={SEED}: {shape}, {dtype}, {number}")
    rng = np.random.default_rng([SEED, number, *shape])
    named = np.dtype({"half": "float16"}.get(dtype, dtype))
    values = rng.integers(0 if dtype == "uint64" else -9, 9, shape).astype(named)
    if dtype in FLOATS:
        special = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf]).astype(named)
        values = np.where(rng.random(shape) < 0.3, rng.choice(special, shape), values)
    return values


def _best(x: Array, count: int) -> tuple[Array, Array]:
    shifted = np.concatenate([x[:, 1:], np.zeros_like(x[:, :1])], 1)
    with np.errstate(invalid="ignore"):
        at = _descending(x + shifted, 1)[:, :count]
    value = np.take_along_axis(x, at, 1)
    missing = [(0, 0), (0, count - at.shape[1]), (0, 0)]
    return np.pad(at, missing, constant_values=-1), np.pad(value, missing)


def _kernel(name: str, arrays: Mapping[str, Array], attrs: Mapping[str, int]) -> tuple[Kernel, dict[str, int]]:
    module = spec(ORDERS)
    op = module.op(name)
    types = {v.name: str(arrays["x"].dtype) for v in op.type_variables}
    lowered = lower(module, op, Variant(types, {}))
    call = solve(op, module, {n: a.shape for n, a in arrays.items()}, {}, dict(attrs))
    values = [int(evaluate(a, call)) for a in lowered.arguments]
    return lowered.kernel, {p.name: v for p, v in zip(lowered.kernel.parameters, values, strict=True)}


@pytest.mark.parametrize("dtype", TYPES)
def test_all_of_a_row(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sort = opgen.load(ORDERS).upward
    for policy in ("always", "never"):
        monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
        for number, shape in enumerate(SIZES if dtype == "float32" else SIZES[3::2]):
            x = _drawn(shape, dtype, number)
            y, places = sort(x)
            right = _ascending(x)
            np.testing.assert_array_equal(places, right)
            assert y.dtype == x.dtype
            found, given = (a.astype(np.float32) if dtype == "bfloat16" else a for a in (y, x))
            np.testing.assert_array_equal(found, np.take_along_axis(given, right, 1))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_best(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for policy in ("always", "never"):
        monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
        for number, (shape, count) in enumerate(BEST):
            x = _drawn(shape, dtype, number)
            found = opgen.load(ORDERS).best(x, count)
            for result, right in zip(found, _best(x, count), strict=True):
                np.testing.assert_array_equal(result, right)


def test_nothing() -> None:
    y, places = generated(ORDERS).upward(np.zeros((2, 0), np.float32))
    assert y.shape == places.shape == (2, 0)
    places, value = generated(ORDERS).best(np.zeros((1, 0, 2), np.float32), 3)
    assert (places == -1).all()
    assert (value == 0).all()


def test_what_is_upwardmay_be_a_sum() -> None:
    rng = np.random.default_rng([SEED, 1])
    x, w = rng.standard_normal((50, 4)), rng.standard_normal(4)
    np.testing.assert_array_equal(generated(ORDERS).vector(x, w), x[_ascending(x @ w)])


@pytest.mark.parametrize("count", [0, 3, 18, 20])
def test_loop_ir(count: int) -> None:
    """The interpreter, on the kernel as lowered and as scheduled for a CPU, generic and bound; all reads inside."""
    arrays = {"x": _drawn((2, 37, 2), "float32", count)}
    kernel, parameters = _kernel("Best", arrays, {"count": count})
    verify(kernel, bounds=True)
    assert parse_kernel(print_kernel(kernel)) == kernel
    bound = simplify(bind(kernel, parameters))
    for seen, given in ((kernel, parameters), (bound, {})):
        steps, in_lanes = scheduled(simplify(seen))
        fast = legalize(in_lanes)
        verify(fast, bounds=True)
        if count == 18:  # at most half of the values: those before the last one are counted side by side
            assert any(isinstance(s, Rfactor) and "total" in str(s) for s in steps.steps)
        for k in (seen, fast):
            found = interpret(k, arrays, given, seed=count)
            for result, right in zip(found.values(), _best(arrays["x"], count), strict=True):
                np.testing.assert_array_equal(result, right)


@pytest.mark.skipif(emulation.compiler() is None, reason="needs a C++ compiler")
def test_cuda() -> None:
    """CUDA C, run on the CPU."""
    calls = [(_drawn((2, 45, 3), "float32", count), count) for count in (3, 20, 30)]
    kernels = [_kernel("Best", {"x": x}, {"count": count}) for x, count in calls]
    programs = compile_emulated([legalize(scheduled(simplify(k), "cuda")[1]) for k, _ in kernels])
    for (x, count), (_, parameters), program in zip(calls, kernels, programs, strict=True):
        for result, right in zip(program({"x": x}, parameters).values(), _best(x, count), strict=True):
            np.testing.assert_array_equal(result, right)


def test_c() -> None:
    of_one = chosen(spec(ORDERS), ("Best",))
    library, op = Library(of_one, built(ORDERS, None, ("Best",))), of_one.op("Best")
    x = _drawn((2, 40, 3), "float32", 0)
    right = _best(x, 20)
    results = [np.zeros(r.shape, r.dtype) for r in right]
    assert library.run(op, [of(x)], {"count": 20}, [of(r) for r in results]) == OK, library.error()
    for result, expected in zip(results, right, strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", [o.name for o in spec(ORDERS).ops])
def test_model(name: str) -> None:
    """The model as a spec reads back as the same model."""
    op = spec(ORDERS).op(name)
    assert load_text(write_op(spec(ORDERS), op)).op(name).definitions == op.definitions
