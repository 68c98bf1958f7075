"""Arithmetic against exact rational numbers: fma, conversions, extrema, wrapping."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opgen.dtypes import (
    BFLOAT16,
    BOOL,
    DTYPES,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
    wrap,
)
from opgen.loop.arithmetic import (
    NUMPY,
    cast_lanes,
    cast_scalar,
    fma32,
    fma32_lanes,
    fma64,
    fma64_lanes,
    greatest,
    least,
)
from tests.support.rounding import rounded


def same(a: float, b: float) -> bool:
    return (a != a and b != b) or struct.pack("<d", a) == struct.pack("<d", b)


float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)
float64s = st.floats(allow_nan=False, allow_infinity=False)
near_one = st.integers(-(2**24), 2**24).map(lambda n: float(np.float32(1.0) + np.float32(n) * np.float32(2**-23)))
tiny = st.integers(-(2**12), 2**12).map(lambda n: n * 2.0**-149)

HARD = [
    # the float64 sum lands on a float32 tie, and what it dropped decides
    (1.0 + 2**-23, 1.0 + 2**-23, 2.0**-60),
    (1.0 + 2**-12, 1.0 + 2**-12, 2.0**-80),
    (1.0 + 2**-12, 1.0 - 2**-12, -(2.0**-70)),
    (2.0**-75, 2.0**-75, 1.0),
    (2.0**-75, 2.0**-75, -1.0),
    (2.0**-75, 2.0**-75, 2.0**-149),
    (1.5 * 2**-75, 2.0**-75, 2.0**-149),
    (float(np.finfo(np.float32).max), 1.0, 2.0**103),
    (float(np.finfo(np.float32).max), 1.0, float(np.nextafter(np.float32(2.0**103), np.float32(0)))),
    (float(np.finfo(np.float32).max), 2.0, -float(np.finfo(np.float32).max)),
    (-0.0, 5.0, 0.0),
    (-0.0, 5.0, -0.0),
    (3.0, 4.0, -12.0),
    (-3.0, 4.0, 12.0),
]


def exact_fma(a: float, b: float, c: float, dtype: DType) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    return rounded(exact, dtype)


@pytest.mark.parametrize(("a", "b", "c"), HARD)
def test_fma32_where_two_roundings_would_err(a: float, b: float, c: float) -> None:
    expected = exact_fma(a, b, c, FLOAT32)
    with np.errstate(all="ignore"):
        assert same(float(fma32(np.float32(a), np.float32(b), np.float32(c))), expected)
        lanes = fma32_lanes(*(np.full(3, x, dtype=np.float32) for x in (a, b, c)))
    assert all(same(float(x), expected) for x in lanes)


@settings(max_examples=1500, deadline=None)
@given(*[st.one_of(float32s, near_one, tiny)] * 3)
def test_fma32_rounds_once(a: float, b: float, c: float) -> None:
    expected = exact_fma(a, b, c, FLOAT32)
    with np.errstate(all="ignore"):
        assert same(float(fma32(np.float32(a), np.float32(b), np.float32(c))), expected)
        assert same(float(fma32_lanes(*(np.full(1, x, dtype=np.float32) for x in (a, b, c)))[0]), expected)


@settings(max_examples=600, deadline=None)
@given(float32s, float32s, st.integers(-3, 3))
def test_fma32_near_ties(a: float, b: float, nudge: int) -> None:
    """c is chosen so that the sum is next to the middle of two float32 numbers."""
    product = Fraction(a) * Fraction(b)
    near = np.float32(rounded(product, FLOAT32))
    if not np.isfinite(near) or abs(near) == np.finfo(np.float32).max or near == 0:
        return
    c = float(np.float32(np.spacing(near) / 2)) * (1 if nudge > 0 else -1)
    for x in (c, float(np.nextafter(np.float32(c), np.float32(0)))):
        with np.errstate(all="ignore"):
            assert same(float(fma32(np.float32(a), np.float32(b), np.float32(x))), exact_fma(a, b, x, FLOAT32))


@settings(max_examples=600, deadline=None)
@given(float64s, float64s, float64s)
def test_fma64_rounds_once(a: float, b: float, c: float) -> None:
    assert same(float(fma64(np.float64(a), np.float64(b), np.float64(c))), exact_fma(a, b, c, FLOAT64))


SPECIAL = [
    (math.inf, 0.0, 1.0, math.nan),
    (math.inf, 1.0, -math.inf, math.nan),
    (1e200, 1e200, -math.inf, -math.inf),
    (1e200, 1e200, 0.0, math.inf),
    (math.nan, 1.0, 1.0, math.nan),
    (1.0, math.inf, 1.0, math.inf),
    (1e-200, -1e-200, 0.0, -0.0),
    (0.0, -1.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("a", "b", "c", "expected"), SPECIAL)
def test_fma64_special_values(a: float, b: float, c: float, expected: float) -> None:
    with np.errstate(all="ignore"):
        assert same(float(fma64(np.float64(a), np.float64(b), np.float64(c))), expected)
        assert same(float(fma64_lanes(*(np.full(2, x) for x in (a, b, c)))[1]), expected)


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float64"])
def test_float_to_float_rounds_once(source: str, target: str) -> None:
    """Every midpoint of the 16-bit formats and its neighbours, and a sweep of exponents."""
    rng = np.random.default_rng(7)
    wide = np.frombuffer(rng.bytes(8 * 3000), dtype=np.float64)
    patterns = rng.integers(0, 0x7F80, 800).astype(np.uint16)
    middles = ((patterns.astype(np.uint32) << 16) + 0x8000).view(np.float32).astype(np.float64)
    values = np.concatenate([wide, middles, np.nextafter(middles, 0), np.nextafter(middles, np.inf)])
    with np.errstate(all="ignore"):
        given = values.astype(NUMPY[source])
        got = cast_lanes(given, DTYPES[source], DTYPES[target])
    for x, y in zip(given.tolist(), got.astype(np.float64).tolist(), strict=True):
        if math.isfinite(x):
            expected = rounded(Fraction(x), DTYPES[target])
            assert same(y, math.copysign(expected, x)), f"{x.hex()} to {target}: {y.hex()}, not {expected.hex()}"
        else:
            assert same(y, x)


def test_double_rounding_to_bfloat16_is_avoided() -> None:
    x = 1 + 2**-8 + 2**-40  # just above a tie of bfloat16, on it in float32
    assert cast_scalar(np.float64(x), FLOAT64, BFLOAT16) == 1 + 2**-7
    assert float(np.float64(x).astype(ml_dtypes.bfloat16)) == 1.0, "the trap is gone; the detour can go too"


@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float64"])
@settings(max_examples=200, deadline=None)
@given(value=st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**12), 2**12))
def test_integer_to_float_rounds_once(target: str, value: int) -> None:
    with np.errstate(all="ignore"):
        got = cast_scalar(value, INT64, DTYPES[target])
    assert isinstance(got, np.generic)
    assert same(float(got), rounded(Fraction(value), DTYPES[target]))


TO_INTEGER = [
    (math.nan, INT32, 0),
    (math.inf, INT32, 2**31 - 1),
    (-math.inf, INT64, -(2**63)),
    (1e30, INT64, 2**63 - 1),
    (-1e30, INT32, -(2**31)),
    (-2.9, INT32, -2),
    (2.9, INT64, 2),
    (2.0**31, INT32, 2**31 - 1),
    (-(2.0**31) - 0.5, INT32, -(2**31)),
    (2.0**31 - 0.5, INT32, 2**31 - 1),
    (-(2.0**63), INT64, -(2**63)),
    (2.0**63, INT64, 2**63 - 1),
    (-0.9, UINT8, 0),
    (-1e9, UINT16, 0),
    (255.9, UINT8, 255),
    (256.0, UINT8, 255),
    (2.0**32, UINT32, 2**32 - 1),
    (2.0**64, UINT64, 2**64 - 1),
    (2.0**63 + 2.0**20, UINT64, 2**63 + 2**20),
    (math.nan, UINT64, 0),
    (math.inf, INT8, 127),
    (-129.0, INT8, -128),
]


@pytest.mark.parametrize(("value", "target", "expected"), TO_INTEGER)
def test_float_to_integer_truncates_and_saturates(value: float, target: DType, expected: int) -> None:
    assert cast_scalar(value, FLOAT64, target) == expected


def test_other_casts() -> None:
    assert cast_scalar(2**31 + 5, INT64, INT32) == -(2**31) + 5
    assert cast_scalar(math.nan, FLOAT32, BOOL) is True
    assert cast_scalar(-0.0, FLOAT64, BOOL) is False
    assert cast_scalar(True, BOOL, FLOAT16) == np.float16(1)
    assert cast_scalar(True, BOOL, INT32) == 1
    assert cast_lanes(np.array([-0.5, 0.0, 7.0]), FLOAT64, BOOL).tolist() == [True, False, True]


@given(st.integers(-(2**70), 2**70))
def test_wrap_is_twos_complement(value: int) -> None:
    for dtype in (d for d in DTYPES.values() if d.is_int and not d.is_bits):
        info = np.iinfo(dtype.name)
        found = wrap(value, dtype)
        assert (dtype.least, dtype.greatest) == (info.min, info.max)
        assert info.min <= found <= info.max
        assert (found - value) % 2**dtype.bits == 0


def test_extrema_keep_nan_and_the_first_of_equals() -> None:
    zero, nan = np.float32(0.0), np.float32(math.nan)
    for pick in (least, greatest):
        assert [np.signbit(pick(-zero, zero)), np.signbit(pick(zero, -zero))] == [True, False]
        assert [np.isnan(pick(nan, zero)), np.isnan(pick(zero, nan))] == [True, True]
