"""Types of at most 8 bits: machine code, CUDA C and the interpreter against ml_dtypes and exact numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from opgen.codegen.llvm.target import Target
from opgen.dtypes import (
    DTYPES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    UINT8,
    UINT64,
    DType,
    small_bits,
    small_value,
    wrap,
)
from opgen.loop import build as b
from opgen.loop.arithmetic import NUMPY, cast_lanes
from opgen.loop.interpret import interpret
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import compile_emulated
from tests.codegen.llvm.jit import Compiled
from tests.codegen.llvm.kernels import elementwise
from tests.support.small_floats import SEED, numbers

FLOATS = [d for d in DTYPES.values() if d.small is not None]
INTEGERS = [d for d in DTYPES.values() if d.width and d.is_int]
WIDE = [DTYPES[n] for n in ("bool", "int8", "int64", "uint64", "float16", "bfloat16", "float32", "float64")]
Array = NDArray[np.generic]


def codes(dtype: DType) -> Array:
    """All values of a type of at most 8 bits."""
    return np.arange(1 << dtype.digits, dtype=np.uint8).view(NUMPY[dtype.name])


def same(found: Array, wanted: Array, given: Array) -> None:
    """Equal bits, but that a NaN's do not count."""
    bits = f"u{found.dtype.itemsize}"
    nan = np.isnan(wanted.astype(np.float64))
    bad = np.flatnonzero((found.view(bits) != wanted.view(bits)) & ~(nan & np.isnan(found.astype(np.float64))))
    assert not bad.size, (
        f"{bad.size} wrong (seed {SEED}): {given[bad[0]]!r} to {found[bad[0]]!r}, not {wanted[bad[0]]!r}"
    )


def compiled(values: Array, source: DType, to: DType, lanes: int, target: Target) -> Array:
    """The values through a compiled cast."""
    padded = np.concatenate([values, np.zeros(-len(values) % lanes, values.dtype)])
    kernel = Compiled(elementwise([source], to, lambda x: b.cast(to, x), lanes=lanes), target)
    result = np.empty(len(padded), NUMPY[to.name])
    assert kernel(padded, result, n=len(padded) // lanes) == 0
    return result[: len(values)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_number_is_the_nearest(dtype: DType) -> None:
    values = numbers(dtype)
    wanted = np.array([small_bits(float(v), dtype) for v in values], np.uint8).view(NUMPY[dtype.name])
    same(cast_lanes(values, FLOAT64, dtype), wanted, values)
    same(cast_lanes(values.astype(np.float32), FLOAT32, dtype), wanted, values)
    for lanes in (1, 16):
        for name in ("generic", "host"):
            target = Target.from_name(name)
            same(compiled(values, FLOAT64, dtype, lanes, target), wanted, values)
            same(compiled(values.astype(np.float32), FLOAT32, dtype, lanes, target), wanted, values)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_numbers_are_those_of_ml_dtypes(dtype: DType) -> None:
    all_codes = codes(dtype)
    wanted = np.array([small_value(c, dtype) for c in range(len(all_codes))])
    np.testing.assert_array_equal(all_codes.astype(np.float64), wanted)
    for to in (FLOAT32, FLOAT64):
        for lanes in (1, 16):
            found = compiled(all_codes, dtype, to, lanes, Target.host())
            same(found, all_codes.astype(NUMPY[to.name]), all_codes)
    if dtype.small is not None and dtype.small.signed:  # of powers of two it differs at 0 and where two are as near
        values = numbers(dtype)
        values = values[~np.isnan(values)].astype(np.float32)
        same(cast_lanes(values, FLOAT32, dtype), values.astype(NUMPY[dtype.name]), values)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_of_an_integer_the_lowest_bits_count(dtype: DType) -> None:
    whole = np.concatenate([np.arange(-300, 300), [2**40 + 5, -(2**63), 2**63 - 1]])
    wanted = np.array([wrap(int(v), dtype) for v in whole], np.int8).astype(NUMPY[dtype.name])
    real = np.array([-9.7, -1.5, 0.5, 3.7, 200.0, math.nan, 1e20], np.float32)
    cut = np.array([min(max(v, dtype.least), dtype.greatest) for v in (-9, -1, 0, 3, 200, 0, 2**31)], np.int8).astype(
        NUMPY[dtype.name]
    )
    dirty = np.arange(256, dtype=np.uint8)
    for lanes in (1, 16):
        assert np.array_equal(compiled(whole, INT64, dtype, lanes, Target.host()).view(np.uint8), wanted.view(np.uint8))
        assert np.array_equal(compiled(real, FLOAT32, dtype, lanes, Target.host()), cut)
        found = compiled(dirty.view(NUMPY[dtype.name]), dtype, INT32, lanes, Target.host())
        assert found.tolist() == [wrap(int(v), dtype) for v in dirty]


@pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")
def test_interpreter_machine_code_and_cuda_agree() -> None:
    pairs = [(s, t) for s in [*FLOATS, *INTEGERS] for t in [*WIDE, *FLOATS, *INTEGERS] if s != t]
    pairs += [(s, t) for s in WIDE for t in [*FLOATS, *INTEGERS]]
    kernels = [elementwise([s], t, lambda x, t=t: b.cast(t, x)) for s, t in pairs]
    emulated = compile_emulated(kernels[::7])
    for at, ((source, to), kernel) in enumerate(zip(pairs, kernels, strict=True)):
        values = codes(source) if source in (*FLOATS, *INTEGERS) else _sample(source)
        names = kernel.inputs[0].name, kernel.outputs[0].name
        wanted = interpret(kernel, {names[0]: values}, {"n": len(values)})[names[1]]
        same(cast_lanes(values, source, to), wanted, values)
        if at % 7 == 0:
            same(emulated[at // 7]({names[0]: values}, {"n": len(values)})[names[1]], wanted, values)
        if at % 5 == 0:
            same(compiled(values, source, to, 8, Target.host()), wanted, values)


def _sample(dtype: DType) -> Array:
    rng = np.random.default_rng(SEED)
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.is_int:
        return np.concatenate([np.arange(100), rng.integers(0, min(dtype.greatest, 2**62), 50)]).astype(
            NUMPY[dtype.name]
        )
    scale = np.float64(10) ** rng.uniform(-5, 4, 300)
    return np.concatenate([rng.standard_normal(300) * scale, [0.0, np.inf, np.nan]]).astype(NUMPY[dtype.name])


def test_uint64_beyond_a_float_is_rounded_once() -> None:
    dtype = DTYPES["float8_e8m0fnu"]
    values = np.array([3 << 40, (3 << 40) - 1, (3 << 40) + 1, 2**64 - 1], np.uint64)
    exact = [Fraction(int(v)) for v in values]
    wanted = [max((2 ** Fraction(k) for k in range(66)), key=lambda p, v=v: (-abs(p - v), p)) for v in exact]
    for lanes in (1, 4):
        found = compiled(values, UINT64, dtype, lanes, Target.host()).astype(np.float64)
        assert [Fraction(float(v)) for v in found] == wanted


def test_literals_and_masked_lanes_have_a_text() -> None:
    text = """kernel k(
    x: float8_e4m3fn[n] global,
    n: int64 in [0, inf],
) -> (
    y: float32[n] global,
):
    for i in 0..n:
        y[i] = float32(select(i < 2, 0.5f8e4m3, select(i < 3, -448.0f8e4m3, x[i]))) + float32(-3i4) + float32(1u2)
"""
    kernel = parse_kernel(text)
    assert parse_kernel(print_kernel(kernel)) == kernel
    x = np.array([9, 9, 9, 1.5], ml_dtypes.float8_e4m3fn)
    wanted = [-1.5, -1.5, -450.0, -0.5]
    assert interpret(kernel, {"x": x}, {"n": 4})["y"].tolist() == wanted
    y = np.empty(4, np.float32)
    assert Compiled(kernel)(x, y, n=4) == 0
    assert y.tolist() == wanted
    assert INT8.least == -128
    assert UINT8.greatest == 255
