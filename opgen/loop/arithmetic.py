"""Arithmetic that numpy does not have: fused multiply-add, exact conversions, wrapping and saturating."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from opgen.dtypes import DTYPES, DType, wrap

Array: TypeAlias = "npt.NDArray[np.generic]"
Float32s: TypeAlias = "npt.NDArray[np.float32]"
Float64s: TypeAlias = "npt.NDArray[np.float64]"

NUMPY: dict[str, np.dtype[np.generic]] = {
    "bool": np.dtype(np.bool_),
    "int8": np.dtype(np.int8),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint8": np.dtype(np.uint8),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
} | {d.name: np.dtype(getattr(ml_dtypes, d.name)) for d in DTYPES.values() if d.is_bits}
"""The numpy type of each scalar type."""


def as_float32(x: float) -> np.float32:
    """Return a number rounded to float32."""
    rounded: np.float32 = np.float32(x)
    return rounded


def as_float64(x: float) -> np.float64:
    made: np.float64 = np.float64(x)
    return made


# Fused multiply-add ------------------------------------------------------------------------------


def fma32(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """Return a * b + c of float32, rounded once.

    The product is exact in float64; its sum with c is rounded to nearest there.  A second rounding to float32 errs only
    where the first gave a tie.  There the sum is nudged off it, towards the part that the first rounding dropped.
    """
    product, addend = float(a) * float(b), float(c)
    total = product + addend
    result = as_float32(total)
    excess = total - float(result)
    if excess == 0.0 or (excess == excess and abs(math.frexp(excess)[0]) != 0.5 and not math.isinf(excess)):
        return result
    if not math.isfinite(total):
        return result
    return as_float32(_nudged(total, _dropped(product, addend, total)))


def _dropped(x: float, y: float, total: float) -> float:
    """x + y - total exactly, where total is x + y rounded."""
    part = total - x
    return (x - (total - part)) + (y - part)


def _nudged(total: float, dropped: float) -> float:
    """Return a sum rounded to odd, from the sum rounded to nearest and the part that it dropped."""
    if dropped == 0.0 or int(np.float64(total).view(np.int64)) & 1:
        return total
    return math.nextafter(total, math.inf if dropped > 0 else -math.inf)


def pair(low: object, high: object) -> Array | int:
    """Return the bits of two bfloat16, the first in the lower half; a vector of int32, or an int of scalars."""
    halves = [np.asarray(half, dtype=ml_dtypes.bfloat16).view(np.uint16).astype(np.uint32) for half in (low, high)]
    bits = (halves[1] << np.uint32(16) | halves[0]).astype(np.uint32)
    both: Array = np.asarray(bits).view(np.int32)
    return both if both.ndim else int(both)


def quad(*parts: object) -> Array | int:
    """Return the bits of four integers of 8 bits, the first lowest; a vector of int32, or an int of scalars."""
    found = [np.asarray(part).astype(np.int64) & 0xFF for part in parts]
    both = np.asarray(sum(part << 8 * k for k, part in enumerate(found))).astype(np.uint32).view(np.int32)
    return both if both.ndim else int(both)


def dot_bytes(total: object, left: object, right: object) -> Array | int:
    """`total` and the products of bytes without a sign by signed ones, modulo 2**32, in every lane."""
    one, other = (np.array(side, dtype=np.int32)[..., np.newaxis] for side in (left, right))
    added = (one.view(np.uint8).astype(np.int64) * other.view(np.int8)).sum(axis=-1)
    result = np.asarray(np.asarray(total).astype(np.int64) + added).astype(np.uint32).view(np.int32)
    return result if result.ndim else int(result)


def dot(total: object, left: object, right: object) -> Array | np.float32:
    """`fma(low, low', fma(high, high', total))` of pairs, in every lane."""
    sides = [np.atleast_1d(np.asarray(side, dtype=np.int32)).view(np.uint32) for side in (left, right)]
    result: Float32s = np.atleast_1d(np.asarray(total, dtype=np.float32))
    for halves in ([s & np.uint32(0xFFFF0000) for s in sides], [s << np.uint32(16) for s in sides]):
        a, b = (half.view(np.float32) for half in halves)
        result = fma32_lanes(a, b, result)
    return result if np.asarray(total).ndim else result[0]


def fma32_lanes(a: Float32s, b: Float32s, c: Float32s) -> Float32s:
    """`fma32` in every lane."""
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    part = total - product
    dropped = (product - (total - part)) + (addend - part)
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (dropped != 0) & even
    odd = np.where(inexact, np.nextafter(total, np.where(dropped > 0, np.inf, -np.inf)), total)
    return odd.astype(np.float32)


def fma64(a: np.float64, b: np.float64, c: np.float64) -> np.float64:
    """a * b + c of float64, rounded once: by exact rational arithmetic."""
    x, y, z = float(a), float(b), float(c)
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return as_float64(_infinite_fma(x, y, z))
    product_sign = math.copysign(1.0, x) * math.copysign(1.0, y)
    if x == 0.0 or y == 0.0:
        return as_float64(math.copysign(0.0, product_sign) + z)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return as_float64(0.0)
    try:
        rounded = float(exact)
    except OverflowError:
        rounded = math.inf
    return as_float64(math.copysign(rounded, -1.0 if exact < 0 else 1.0))


def _infinite_fma(x: float, y: float, z: float) -> float:
    """Return the sum with an infinite or NaN operand; a finite product that overflows must not count as infinite."""
    if math.isfinite(x) and math.isfinite(y):
        return z
    return x * y + z


def fma64_lanes(a: Float64s, b: Float64s, c: Float64s) -> Float64s:
    """`fma64` in every lane."""
    return np.array([fma64(x, y, z) for x, y, z in zip(a, b, c, strict=True)], dtype=np.float64)


# Integers of elements ----------------------------------------------------------------------------


def quotient(a: int, b: int) -> int:
    """a / b rounded towards 0; 0 where b is 0."""
    size = abs(a) // abs(b) if b else 0
    return -size if (a < 0) != (b < 0) else size


def remainder(a: int, b: int) -> int:
    """a - b * quotient(a, b), which has the sign of a; 0 where b is 0."""
    size = abs(a) % abs(b) if b else 0
    return -size if a < 0 else size


def shifted_left(a: int, by: int, bits: int) -> int:
    """a * 2**by, not yet wrapped to its bits; 0 where all of them are shifted out."""
    return a << by if 0 <= by < bits else 0


def shifted_right(a: int, by: int, bits: int) -> int:
    """a / 2**by rounded down; the sign where all bits are shifted out."""
    return a >> (by if 0 <= by < bits else bits)


def integer_power(a: int, b: int, dtype: DType) -> int:
    """a to the power of b in an integer type; with a negative exponent rounded towards 0, and 0 of 0."""
    if b >= 0:
        return wrap(pow(a, b, 1 << dtype.bits), dtype)
    return wrap(a if b % 2 else 1, dtype) if a in (1, -1) else 0


def quotients(a: Array, b: Array) -> Array:
    """`quotient` in every lane, wrapped."""
    by = _no_trap(b)
    with np.errstate(over="ignore"):
        found = np.floor_divide(a - np.fmod(a, by), by)
        return np.where(b == 0, 0, np.where(b == by, found, 0 - a)).astype(a.dtype)


def remainders(a: Array, b: Array) -> Array:
    """`remainder` in every lane; of floats C's fmod."""
    if a.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            return np.fmod(a, b)
    return np.fmod(a, _no_trap(b))


def _no_trap(b: Array) -> Array:
    """Return a divisor with 0 and -1 replaced by 1."""
    special = (b == 0) | (b == -1) if b.dtype.kind == "i" else b == 0
    return np.where(special, np.ones((), b.dtype), b)


def integer_powers(a: Array, b: Array, dtype: DType) -> Array:
    """`integer_power` in every lane."""
    return np.array([integer_power(int(x), int(y), dtype) for x, y in zip(a, b, strict=True)], a.dtype)


# Extrema -----------------------------------------------------------------------------------------


def least(a: np.floating[npt.NBitBase], b: np.floating[npt.NBitBase]) -> np.floating[npt.NBitBase]:
    """`a if a <= b or isnan(a) else b`."""
    return a if a <= b or a != a else b


def greatest(a: np.floating[npt.NBitBase], b: np.floating[npt.NBitBase]) -> np.floating[npt.NBitBase]:
    """`a if a >= b or isnan(a) else b`."""
    return a if a >= b or a != a else b


def least_lanes(a: Array, b: Array) -> Array:
    return np.where(np.less_equal(a, b) | np.not_equal(a, a), a, b)


def greatest_lanes(a: Array, b: Array) -> Array:
    return np.where(np.greater_equal(a, b) | np.not_equal(a, a), a, b)


# Functions ---------------------------------------------------------------------------------------


def erf(x: Array) -> Array:
    """Return the error function, computed in float64 and rounded to the type of `x`."""
    flat = [math.erf(float(v)) for v in np.ravel(x)]
    return np.array(flat, dtype=np.float64).reshape(np.shape(x)).astype(x.dtype)


def erf_scalar(x: np.floating[npt.NBitBase]) -> np.generic:
    rounded: np.generic = x.dtype.type(math.erf(float(x)))
    return rounded


def power(x: Array, y: Array) -> Array:
    """x to the power of y.  numpy takes a square root where the exponent is one 0.5, which differs for -inf."""
    with np.errstate(invalid="ignore"):
        raised: Array = np.power(x, y)
    root_of_minus_infinity = (y == 0.5) & (x == -np.inf)
    return np.where(root_of_minus_infinity, np.array(np.inf, raised.dtype), raised)


def _function(name: str) -> Callable[..., object]:
    found: Callable[..., object] = getattr(np, {"round": "rint", "atan": "arctan"}.get(name, name))
    return found


_NUMPYS = ("exp", "log", "sqrt", "tanh", "sin", "cos", "atan", "floor", "ceil", "round", "abs")
FUNCTIONS: dict[str, Callable[..., object]] = {name: _function(name) for name in _NUMPYS} | {"pow": power}
"""The scalar functions other than fma and erf; they take numpy scalars and arrays."""


# Casts -------------------------------------------------------------------------------------------


def cast_lanes(x: Array, source: DType, target: DType) -> Array:
    """Return every element converted as the loop IR says."""
    to = NUMPY[target.name]
    if source.is_bits and source != target:
        compute = source.compute_type
        return cast_lanes(x.astype(NUMPY[compute.name]), compute, target)
    if target.kind == "bool":
        return np.not_equal(x, np.zeros((), x.dtype))
    if target.is_int and target.is_stored and not source.is_float:
        return _low_bits(x, target)
    if target.small is not None:
        wide = x.astype(np.float32) if source.is_float and source.bits == 16 else _odd_float32(x)
        return _small(wide, target)
    if source.is_float and target.is_int:
        return _saturated(x.astype(np.float64), target)
    if target.name == "bfloat16" and source.name != "float16":
        return _odd_float32(x).astype(to)
    if target.name == "float16" and source.is_int:
        return x.astype(np.float64).astype(to)  # exact below 2**53, infinite above 65520
    if target.name == "float16" and source.name == "bfloat16":
        return x.astype(np.float32).astype(to)
    return x.astype(to)


def cast_scalar(x: object, source: DType, target: DType) -> object:
    """Convert one element; integers come and go as Python ints, bools as Python bools."""
    made = cast_lanes(np.array([x], dtype=NUMPY[source.name]), source, target)[0]
    if target.is_int:
        return int(made)
    return bool(made) if target.kind == "bool" else made


def bits_scalar(x: object, source: DType, target: DType) -> object:
    """Return the bits of one element as another type of as many; integers come and go as Python ints."""
    made = np.array([x], dtype=NUMPY[source.name]).view(NUMPY[target.name])[0]
    return int(made) if target.is_int else made


def _low_bits(x: Array, target: DType) -> Array:
    """Keep the lowest bits of integers."""
    spare = 8 - target.digits
    low = (x.astype(np.uint64) << np.uint64(spare)).astype(np.uint8)
    kept = low.view(np.int8) >> spare if target.signed else low >> spare
    made: Array = kept.astype(NUMPY[target.name])
    return made


def _small(x: Float32s, target: DType) -> Array:
    """Convert float32 to a floating type of at most 8 bits; ml_dtypes does it, except where it defines no result."""
    form, to = target.small, NUMPY[target.name]
    assert form is not None
    if form.signed:
        return np.where(np.isnan(x), np.float32(0), x).astype(to) if form.nan is None else x.astype(to)
    bits = x.view(np.uint32)
    rounded = (bits + np.uint32(1 << 22)) >> np.uint32(23)
    codes = np.where(bits < 1 << 23, bits >= 3 << 21, rounded)
    codes = np.where((bits > 0xFF << 23) | (rounded > 0xFE), 0xFF, codes)
    return np.where(x == 0, 0, codes).astype(np.uint8).view(to)


def _saturated(x: Float64s, target: DType) -> Array:
    """Convert a float to an integer: truncated, saturated, NaN to 0."""
    above = float(target.greatest + 1)  # a power of 2; the least of int64 less 1 is that least, which is right anyway
    inside = (x > float(target.least) - 1) & (x < above)
    to = NUMPY[target.name]
    whole = np.trunc(np.where(inside, x, 0.0)).astype(to)
    ends = np.where(x > 0, np.array(target.greatest, to), np.array(target.least, to))
    return np.where(inside | (x != x), whole, ends)


def _odd_float32(x: Array) -> Float32s:
    """Converted to float32 rounding to odd, so that a rounding to bfloat16 after it is as good as the only one."""
    if x.dtype == np.float32:
        return x.astype(np.float32)
    with np.errstate(invalid="ignore"):
        near = x.astype(np.float32)
        gap = _remainder(x, near)
    even = (near.view(np.int32) & 1) == 0
    nudge = even & (gap != 0) & np.isfinite(near)
    moved = np.nextafter(near, np.where(gap > 0, np.float32(np.inf), np.float32(-np.inf)))
    return np.where(nudge, moved, near).astype(np.float32)


def _remainder(x: Array, near: Float32s) -> Float64s:
    """Return the sign of `x - near`."""
    if x.dtype.kind not in "iu":
        return x.astype(np.float64) - near.astype(np.float64)
    return np.array([float(int(v) - int(n)) for v, n in zip(x, near, strict=True)], dtype=np.float64)
