"""Arrays of numbers with bounds on how far off a right implementation may be, and with derivatives in one direction.

A running error analysis (Wilkinson): every operation adds to the bound what its type may round, and passes on what its
operands' bounds make of it.  Where nothing can be said (a comparison of what is equal within the bounds, an overflow,
what is infinite or no number) the bound is infinite, and nothing is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import erf, pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from opgen.dtypes import DTYPES

Array = npt.NDArray[Any]

LIMITS = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.4e38, "float64": 1.7e308}
"""The largest number of each floating type, about."""
TINY = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
"""The least number above 0 of each floating type."""
UNITS = 4
"""How many roundings a scalar function may be off."""
WHOLE = ("floor", "ceil", "round")


@dataclass(frozen=True)
class Value:
    """Numbers (float64, int64 or bool), the bound `e` on their error, and the scalar type that they stand for; None
    takes the type of what it is combined with.

    `t` are derivatives and `m` the sum of the sizes of what they are made of; None: nothing here depends on the input.
    `narrow`: of numbers without a type that were combined, the bound if float32 turns out to be their type.
    """

    v: Array
    e: Array
    dtype: str | None
    t: Array | None = None
    m: Array | None = None
    narrow: Array | None = None

    @property
    def is_float(self) -> bool:
        return self.v.dtype.kind == "f"


def exact(v: object, dtype: str | None) -> Value:
    """Numbers that are what they are."""
    array = np.asarray(v)
    kinds = {"i": np.int64, "b": np.bool_}
    return Value(array.astype(kinds.get(array.dtype.kind, np.float64)), np.zeros(array.shape), dtype)


def unit(dtype: str | None) -> float:
    """What one operation may be off, relatively: a rounding of the type, and one of this evaluator."""
    return 2.0 ** -DTYPES[dtype or "float64"].precision + 2.0**-53


def rounded(v: Array, e: Array, dtype: str | None, units: float = 1) -> Array:
    """The bound after the result `v` of an operation is rounded to a type."""
    name = dtype or "float64"
    total = e + units * unit(name) * (np.abs(v) + e) + TINY[name]
    known = np.isfinite(v) & (np.abs(v) + e <= LIMITS[name])
    return np.where(known & ~np.isnan(total), total, np.inf)


def wrapped(v: Array, dtype: str | None) -> Array:
    """Integers in two's complement."""
    return v.astype(np.int32).astype(np.int64) if dtype == "int32" else v.astype(np.int64)


def convert(a: Value, dtype: str) -> Value:
    """A cast: to a floating type with its rounding, to an integer type towards zero, saturating."""
    kind = DTYPES[dtype].kind
    if kind == "float":
        v = a.v.astype(np.float64)
        same = a.is_float and a.dtype is not None and unit(a.dtype) >= unit(dtype)
        if same or (dtype in _HOLDS and np.array_equal(_HOLDS[dtype](v), v)):
            return replace(a, v=v, dtype=dtype)
        e = a.e if a.narrow is None or dtype == "float64" else a.narrow
        return replace(a, v=v, e=rounded(v, e, dtype), dtype=dtype, narrow=None)
    if kind == "bool":
        return Value(a.v != 0, np.where((np.abs(a.v) <= a.e) & (a.e > 0), np.inf, 0.0), dtype)
    if not a.is_float:
        return Value(wrapped(a.v, dtype), a.e, dtype)
    bits = DTYPES[dtype].bits
    small = np.isfinite(a.v) & (np.abs(a.v) + a.e < 2.0 ** (bits - 1) - 1)
    certain = small & (np.trunc(a.v - a.e) == np.trunc(a.v + a.e))
    return Value(np.trunc(np.where(small, a.v, 0)).astype(np.int64), np.where(certain, 0.0, np.inf), dtype)


def bits_as(a: Value, dtype: str) -> Value:
    """The bits of numbers as those of another type, where they are known; they do not vary with the numbers."""
    assert a.dtype is not None
    v = np.asarray(a.v.astype(a.dtype)).view(dtype).astype(np.float64 if DTYPES[dtype].is_float else np.int64)
    return Value(v, np.where((a.e == 0) & np.isfinite(v), 0.0, np.inf), dtype)


_HOLDS: dict[str, Callable[[Array], Array]] = {"float32": np.float32, "float64": np.float64}


def unified(a: Value, b: Value) -> tuple[Value, Value, str | None]:
    """Two operands of one type."""
    names = (a.dtype, b.dtype)
    dtype = next((n for n in names if n is not None and DTYPES[n].is_float), names[0] or names[1])
    if dtype is None:
        return a, b, None
    left, right = (x if x.dtype == dtype else convert(x, dtype) for x in (a, b))
    return left, right, dtype


# Derivatives -----------------------------------------------------------------------------------------------------


def scaled(factor: Array, a: Value) -> tuple[Array | None, Array | None]:
    """The derivatives of `a` times a factor; where there are none an infinite factor has no part."""
    if a.t is None or a.m is None:
        return None, None
    none = a.m == 0
    return np.where(none, 0.0, factor * a.t), np.where(none, 0.0, np.abs(factor) * a.m)


def _sum(*parts: tuple[Array | None, Array | None]) -> tuple[Array | None, Array | None]:
    given = [(t, m) for t, m in parts if t is not None and m is not None]
    if not given:
        return None, None
    total = given[0]
    for t, m in given[1:]:
        total = (total[0] + t, total[1] + m)
    return total


def chosen(c: Array, a: Value, b: Value) -> tuple[Array | None, Array | None]:
    """The derivatives of `a` where `c` holds, else of `b`."""
    if a.t is None and b.t is None:
        return None, None
    zero = np.zeros(())
    ts = [zero if x.t is None else x.t for x in (a, b)]
    ms = [zero if x.m is None else x.m for x in (a, b)]
    return np.where(c, *ts), np.where(c, *ms)


# Arithmetic ------------------------------------------------------------------------------------------------------


def negated(a: Value) -> Value:
    if not a.is_float:
        return replace(a, v=wrapped(-a.v, a.dtype))
    return replace(a, v=-a.v, t=None if a.t is None else -a.t)


def arithmetic(op: str, left: Value, right: Value) -> Value:
    """`+ - * /`, `min`, `max`, `pow` of elements."""
    a, b, dtype = unified(left, right)
    if not (a.is_float or b.is_float):
        doubt = a.e + b.e
        return Value(wrapped(_INTEGERS[op](a.v, b.v), dtype), doubt, dtype)
    if op in ("max", "min"):
        first = (a.v >= b.v) if op == "max" else (a.v <= b.v)
        first = first | np.isnan(a.v)
        return Value(np.where(first, a.v, b.v), np.maximum(a.e, b.e), dtype, *chosen(first, a, b))
    v, e, (ta, tb) = _FLOATS[op](a, b)
    units = UNITS if op == "pow" else 1
    narrow = None
    if dtype is None:
        narrow = rounded(v, _FLOATS[op](_as_float32(a), _as_float32(b))[1], "float32", units)
    return Value(v, rounded(v, e, dtype, units), dtype, *_sum(scaled(ta, a), scaled(tb, b)), narrow)


def _as_float32(a: Value) -> Value:
    """Numbers without a type as float32: rounded, with what they were made of."""
    return replace(a, e=rounded(a.v.astype(np.float64), a.e, "float32") if a.narrow is None else a.narrow)


_INTEGERS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_Parts = tuple[Array, Array, tuple[Array, Array]]


def _added(a: Value, b: Value) -> _Parts:
    return a.v + b.v, a.e + b.e, (np.ones(()), np.ones(()))


def _subtracted(a: Value, b: Value) -> _Parts:
    return a.v - b.v, a.e + b.e, (np.ones(()), -np.ones(()))


def _multiplied(a: Value, b: Value) -> _Parts:
    return a.v * b.v, np.abs(a.v) * b.e + np.abs(b.v) * a.e + a.e * b.e, (b.v, a.v)


def _divided(a: Value, b: Value) -> _Parts:
    v = a.v / b.v
    room = np.abs(b.v) - b.e
    return v, np.where(room > 0, (a.e + np.abs(v) * b.e) / room, np.inf), (1 / b.v, -v / b.v)


def _raised(a: Value, b: Value) -> _Parts:
    v = np.power(a.v, b.v)
    corners = [np.power(a.v + s * a.e, b.v + z * b.e) for s in (-1, 1) for z in (-1, 1)]
    e = np.maximum.reduce([np.abs(c - v) for c in corners])
    sharp = (a.v - a.e <= 0) & ((a.e > 0) | (b.e > 0))  # where a sign or a whole exponent is in doubt
    by_a = np.where(b.v == 0, 0.0, b.v * np.power(a.v, b.v - 1))
    by_b = np.where((a.v == 0) & (b.v >= 0), 0.0, v * np.log(a.v))
    return v, np.where(sharp, np.inf, e), (by_a, by_b)


_FLOATS: dict[str, Callable[[Value, Value], _Parts]] = {
    "+": _added, "-": _subtracted, "*": _multiplied, "/": _divided, "pow": _raised,
}  # fmt: skip


# Functions -------------------------------------------------------------------------------------------------------

_erf = np.frompyfunc(erf, 1, 1)
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
    "erf": lambda x: np.asarray(_erf(x), np.float64), "floor": np.floor, "ceil": np.ceil, "round": np.rint,
}  # fmt: skip
_DERIVATIVES: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "log": lambda x: 1 / x, "sqrt": lambda x: 0.5 / np.sqrt(x), "tanh": lambda x: 1 - np.tanh(x) ** 2,
    "sin": np.cos, "cos": lambda x: -np.sin(x), "erf": lambda x: 2 / sqrt(pi) * np.exp(-x * x),
}  # fmt: skip


def applied(function: str, a: Value) -> Value:
    """A scalar function."""
    if function == "abs":
        if not a.is_float:
            return replace(a, v=wrapped(np.abs(a.v), a.dtype))
        t, m = scaled(np.sign(a.v), a)
        return Value(np.abs(a.v), a.e, a.dtype, t, m)
    if a.dtype is None:
        a = replace(a, v=a.v.astype(np.float64), dtype="float64")
    f = FUNCTIONS[function]
    v = f(a.v)
    ends = np.abs(f(a.v - a.e) - v), np.abs(f(a.v + a.e) - v)
    if function in WHOLE:
        doubt = np.where((ends[0] == 0) & (ends[1] == 0), 0.0, np.inf)
        return Value(v, np.where(np.isfinite(v), doubt, np.inf), a.dtype)
    e = a.e if function in ("sin", "cos") else np.maximum(*ends)
    return Value(v, rounded(v, e, a.dtype, UNITS), a.dtype, *scaled(_DERIVATIVES[function](a.v), a))


# Conditions ------------------------------------------------------------------------------------------------------

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


def compared(op: str, left: Value, right: Value) -> Value:
    a, b, _ = unified(left, right)
    doubt = a.e + b.e
    near = (doubt > 0) & ~(np.abs(a.v.astype(np.float64) - b.v) > doubt)
    return Value(_COMPARE[op](a.v, b.v), np.where(near, np.inf, 0.0), "bool")


def logic(op: str, a: Value, b: Value) -> Value:
    v = (a.v & b.v) if op == "and" else (a.v | b.v)
    settled = (~a.v & (a.e == 0)) | (~b.v & (b.e == 0)) if op == "and" else (a.v & (a.e == 0)) | (b.v & (b.e == 0))
    return Value(v, np.where(settled, 0.0, a.e + b.e), "bool")


def conditional(c: Value, if_true: Value, if_false: Value) -> Value:
    """A side that is not taken has no part; where that is in doubt the bound spans both."""
    if if_true.v.dtype.kind == "b":
        v = np.where(c.v, if_true.v, if_false.v)
        return Value(v, np.where(c.v, if_true.e, if_false.e) + np.where(if_true.v == if_false.v, 0.0, c.e), "bool")
    a, b, dtype = unified(if_true, if_false)
    span = np.maximum(a.e, b.e) + np.abs(a.v.astype(np.float64) - b.v)
    v, e = np.where(c.v, a.v, b.v), np.where(c.v, a.e, b.e)
    if v.dtype.kind != "f":
        span = np.where(a.v == b.v, a.e + b.e, np.inf)
    return Value(v, np.where(c.e == 0, e, np.where(np.isnan(span), np.inf, span)), dtype, *chosen(c.v, a, b))
