"""Emitted CUDA C, run on the CPU, gives what the loop IR means: against numpy, exact arithmetic and the interpreter."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from opgen.codegen.cuda.emit import emit
from opgen.codegen.cuda.types import narrow_bits, to_float32
from opgen.diagnostics import InternalError
from opgen.diagnostics.calls import ArgumentTypeError
from opgen.dtypes import BFLOAT16, DTYPES, FLOAT16, FLOAT32, FLOAT64
from opgen.loop import interpret as interpreter
from opgen.loop.parse import parse_kernel
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import EmulatedKernel, compile_emulated, run_emulated
from tests.codegen.cuda.kernels import ARRAYS, CASES, PRODUCT, STEPS, UNEVEN, Array, Case, conversions
from tests.support.arrays import assert_same

pytestmark = pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")


@pytest.fixture(scope="module")
def compiled() -> dict[str, EmulatedKernel]:
    kernels = {case.kernel.name: case.kernel for case in CASES}
    return dict(zip(kernels, compile_emulated(list(kernels.values())), strict=True))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_the_interpreter_agrees(case: Case, seed: int, compiled: dict[str, EmulatedKernel]) -> None:
    arrays = case.arrays(seed)
    expected = interpreter.interpret(case.kernel, arrays, case.parameters)
    for reverse in (False, True):
        found = compiled[case.kernel.name](arrays, case.parameters, reverse=reverse)
        assert set(found) == set(expected)
        for name in expected:
            where = f"seed {seed}, {name}, reverse={reverse}\n{emit(case.kernel).source}"
            assert_same(found[name], expected[name], case.exact, where)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (8, 8, 8), (19, 9, 21), (5, 40, 3)])
def test_a_tiled_product_through_shared_memory(
    sizes: tuple[int, int, int], compiled: dict[str, EmulatedKernel]
) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    for reverse in (False, True):
        found = compiled["product"]({"a": a, "b": b}, {"m": m, "n": n, "k": k}, reverse=reverse)
        np.testing.assert_array_equal(found["c"], a @ b)


def test_threads_wait_for_each_other(compiled: dict[str, EmulatedKernel]) -> None:
    x = np.arange(96, dtype=np.float32).reshape(3, 32)
    for reverse in (False, True):
        np.testing.assert_array_equal(compiled["tree"]({"x": x}, {"rows": 3}, reverse=reverse)["y"], x.sum(axis=1))


def test_loops_of_unequal_extents_share_a_launch(compiled: dict[str, EmulatedKernel]) -> None:
    x = np.arange(1, 71, dtype=np.int32)
    found = compiled["uneven"]({"x": x}, {"n": 70})
    np.testing.assert_array_equal(found["y"], x + np.append(x[1:], 0))
    np.testing.assert_array_equal(found["first"], x[::32])


def test_a_race_shows_when_the_order_is_reversed() -> None:
    racy = parse_kernel("""
kernel racy(x: int32[8]) -> (y: int32[8]):
    alloc tile: int32[8] shared
    thread.x for t in 0..8:
        tile[t] = x[t]
    thread.x for u in 0..8:
        y[u] = tile[7 - u]
""")
    x = np.arange(8, dtype=np.int32)
    run = compile_emulated([racy])[0]
    assert not np.array_equal(run({"x": x}, {})["y"], run({"x": x}, {}, reverse=True)["y"])


def test_every_pattern_of_the_16_bit_types_converts(compiled: dict[str, EmulatedKernel]) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    arrays = dict(Case(conversions(), {"n": 65536}).arrays(0))
    arrays |= {"x_float16": bits.view(np.float16), "x_bfloat16": bits.view(ml_dtypes.bfloat16)}
    found = compiled["conversions"](arrays, {"n": 65536})
    for name, other in (("float16", "bfloat16"), ("bfloat16", "float16")):
        x = arrays[f"x_{name}"]
        with np.errstate(invalid="ignore"):  # of signalling NaNs
            exact = x.astype(np.float64)
        nan = np.isnan(exact)
        for wide in ("float32", "float64"):
            with np.errstate(invalid="ignore"):
                expected = exact.astype(wide)
            assert_same(found[f"y_{name}_{wide}"], expected, True, name)
        assert np.array_equal(found[f"y_{name}_{name}"].view(np.uint16), bits)
        narrow = found[f"y_{name}_{other}"]
        assert np.array_equal(np.isnan(narrow.astype(np.float64)), nan)
        rounded = np.array([narrow_bits(float(v), DTYPES[other]) for v in exact], np.uint16)
        assert np.array_equal(narrow.view(np.uint16)[~nan], rounded[~nan])
        assert np.array_equal(found[f"y_{name}_bool"], nan | (exact != 0))
        for whole in (np.int32, np.int64):
            limits = np.iinfo(whole)
            wanted = [0 if math.isnan(v) else saturated(v, limits.min, limits.max) for v in exact.tolist()]
            assert found[f"y_{name}_{np.dtype(whole).name}"].tolist() == wanted


def saturated(value: float, low: int, high: int) -> int:
    return low if value < low else high if value > high else int(value)


def nearest(value: Fraction, precision: int, lowest: int, largest: Fraction) -> Fraction | float:
    """A value rounded to nearest even, by exact arithmetic: `precision` bits, steps no finer than 2**lowest."""
    size = abs(value)
    exponent = math.floor(math.log2(size)) if size else lowest
    while size and Fraction(2) ** exponent > size:
        exponent -= 1
    while size and Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    step = Fraction(2) ** max(exponent - precision + 1, lowest)
    rounded = round(value / step) * step
    return math.copysign(math.inf, value) if abs(rounded) > largest else rounded


FORMATS = {
    "float16": (11, -24, Fraction(65504)),
    "bfloat16": (8, -133, Fraction(255) * Fraction(2) ** 120),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("source", ["float32", "float64", "int32", "int64"])
def test_narrowing_rounds_once(source: str, seed: int, compiled: dict[str, EmulatedKernel]) -> None:
    values = awkward(source, seed)
    arrays = dict(Case(conversions(), {"n": len(values)}).arrays(0)) | {f"x_{source}": values}
    found = compiled["conversions"](arrays, {"n": len(values)})
    for target, (precision, lowest, largest) in FORMATS.items():
        results = found[f"y_{source}_{target}"].astype(np.float64).tolist()
        for value, result in zip(values.tolist(), results, strict=True):
            assert result == nearest(Fraction(value), precision, lowest, largest), f"seed {seed}: {value!r} to {target}"


def awkward(source: str, seed: int) -> Array:
    """Finite values at, just above and just below the middle between two 16-bit values, and random ones."""
    rng = np.random.default_rng(seed)
    if source.startswith("int"):
        bits = rng.integers(1, np.iinfo(source).bits, 3000)
        high = rng.integers(128, 4096, 3000)
        values = [(int(h) << int(b)) + int(d) for h, b, d in zip(high, bits, rng.integers(-1, 2, 3000), strict=True)]
        limits = np.iinfo(source)
        signs = rng.choice([-1, 1], 3000).tolist()
        return np.array([min(max(v * s, limits.min), limits.max) for v, s in zip(values, signs, strict=True)], source)
    halves = np.arange(0, 65535, 37, dtype=np.uint16)
    near = []
    for kind in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        with np.errstate(all="ignore"):
            low, high = (h.astype(np.uint16).view(kind).astype(np.float64) for h in (halves, halves + 1))
            middle = ((low + high) / 2).astype(source)
        near += [middle, np.nextafter(middle, np.inf, dtype=source), np.nextafter(middle, -np.inf, dtype=source)]
    top = np.array([65519.99, 65520, 3.39e38, 3.3961e38, 1e-45, 0.0, 6e-8, 2.98e-8, 2.9802322387695312e-08], source)
    wide = np.array([1e300, -1e300, 5e-324, 1 + 2**-8 + 2**-40, 1 + 2**-11 + 2**-50]) if source == "float64" else top
    values = np.concatenate([*near, top, -top, wide.astype(source)])
    return values[np.isfinite(values)]


def test_literals_round_as_the_helpers_do() -> None:
    rng = np.random.default_rng(9)
    for value in (rng.standard_normal(500) * 10.0 ** rng.integers(-45, 39, 500)).tolist():
        for dtype in (FLOAT16, BFLOAT16):
            precision, lowest, largest = FORMATS[dtype.name]
            kind = np.float16 if dtype == FLOAT16 else ml_dtypes.bfloat16
            found = np.array([narrow_bits(value, dtype)], np.uint16).view(kind).astype(np.float64)[0]
            assert found == nearest(Fraction(value), precision, lowest, largest), value
        assert to_float32(value) == float(np.float32(value))


def test_saturation_truncation_and_nan(compiled: dict[str, EmulatedKernel]) -> None:
    values = [np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 1e30, 1.9, -1.9, 0.0, -0.0]
    for source in (FLOAT32, FLOAT64):
        x = np.array(values, source.name)
        arrays = dict(Case(conversions(), {"n": len(x)}).arrays(0)) | {f"x_{source}": x}
        found = compiled["conversions"](arrays, {"n": len(x)})
        for bits in (32, 64):
            low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
            wanted = [0 if math.isnan(v) else saturated(v, low, high) for v in values]
            assert found[f"y_{source}_int{bits}"].tolist() == wanted


def test_a_barrier_that_only_some_threads_meet_is_found() -> None:
    program = emit(PRODUCT)
    broken = type(program)(
        program.kernel, program.source.replace("__syncthreads();", "if (tx > 2) __syncthreads();", 1), program.steps
    )
    a = np.ones((8, 8), np.float32)
    with pytest.raises(InternalError, match=r"^product_0: a barrier was met by some threads of a block only$"):
        run_emulated(broken, {"a": a, "b": a}, {"m": 8, "n": 8, "k": 8})


def test_inputs_are_checked() -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        run_emulated(UNEVEN, {"x": np.zeros(3, np.float32)}, {"n": 3})
    assert str(caught.value) == "uneven: argument 'x': expected int32[3], given float32[3]"


def test_outputs_that_nothing_writes_stay_poisoned() -> None:
    nothing = parse_kernel("""
kernel nothing(n: int64) -> (y: float32[n]):
    block.x for i in 1..n:
        y[i] = 0.0f32
""")
    assert np.isnan(run_emulated(nothing, {}, {"n": 3})["y"]).tolist() == [True, False, False]


def test_programs_of_one_name_live_in_one_library() -> None:
    first, second = compile_emulated([ARRAYS, STEPS]), compile_emulated([STEPS, STEPS])
    case = Case(STEPS, {"n": 4, "rounds": 2, "scale": 1.0, "fancy": True})
    arrays = case.arrays(0)
    results = [run(arrays, case.parameters)["s"].tobytes() for run in (first[1], *second)]
    assert results[0] == results[1] == results[2]
