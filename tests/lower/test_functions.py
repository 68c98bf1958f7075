"""Functions made of others, compiled: against decimal arithmetic of 60 digits, and at infinities, NaN and zeros."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import NDArray

from opgen.dtypes import BOOL, FLOAT32, FLOAT64, DType
from opgen.lower.functions import applied
from tests.codegen.llvm.test_conversions import NUMPY
from tests.codegen.llvm.test_elementary import DIGITS, SEED, arctan, half_pi, units, wave
from tests.codegen.llvm.test_expressions import bits, run

DTYPES = [FLOAT32, FLOAT64]
WIDTHS = {
    "sinh": (95, 720), "cosh": (95, 720), "expm1": (95, 720), "exp2": (140, 1080), "sigmoid": (110, 750),
    "tan": (3e4, 1e6),
}  # fmt: skip
"""Arguments lie this near to 0: of float32, of float64; of all others within 3."""
LIMIT = 2.5
"""Units in the last place that a result may be off."""
FUNCTIONS = [
    "tan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "expm1", "log1p", "exp2", "rsqrt", "sigmoid",
    "trunc",
]  # fmt: skip


def exact(function: str, x: float) -> Decimal | float:
    """The value for a finite number: a decimal, or what is no finite number."""
    with localcontext(DIGITS):
        d = Decimal(x)
        grown = max(min(d, Decimal(4000)), Decimal(-4000)).exp()
        match function:
            case "exp2":
                return (d * Decimal(2).ln()).exp() if abs(x) < 3000 else math.inf if x > 0 else 0.0
            case "expm1":
                return grown - 1 if abs(x) > 1e-15 else d + d * d / 2 + d**3 / 6
            case "sigmoid":
                return grown / (1 + grown)
            case "sinh":
                return (grown - 1 / grown) / 2 if abs(x) > 1e-15 else d + d**3 / 6
            case "cosh":
                return (grown + 1 / grown) / 2
            case "log1p":
                return -math.inf if x == -1 else math.nan if x < -1 else _log1p(d)
            case "rsqrt":
                return math.nan if x < 0 else math.copysign(math.inf, x) if x == 0 else 1 / d.sqrt()
            case "asinh":
                return _log1p(abs(d) + d * d / (1 + (1 + d * d).sqrt())).copy_sign(d)
            case "acosh":
                return math.nan if x < 1 else _log1p(d - 1 + ((d - 1) * (d + 1)).sqrt())
            case "atanh":
                if abs(x) >= 1:
                    return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
                return (_log1p(2 * abs(d) / (1 - abs(d))) / 2).copy_sign(d)
            case "tan":
                return wave(d, 1) / wave(d, 0)
            case "asin" | "acos" if abs(x) > 1:
                return math.nan
            case "asin":
                return arctan(d / ((1 - d) * (1 + d)).sqrt()) if abs(x) < 1 else +half_pi().copy_sign(d)
            case "acos":
                return 2 * arctan(((1 - d) / (1 + d)).sqrt()) if x > -1 else +(2 * half_pi())
        return Decimal(math.trunc(x)).copy_sign(d)


def _log1p(d: Decimal) -> Decimal:
    return (1 + d).ln() if abs(d) > Decimal("1e-15") else d - d * d / 2 + d**3 / 3


def arguments(function: str, dtype: DType) -> NDArray:
    """Of all magnitudes, and more of those where something happens."""
    rng = np.random.default_rng(SEED)
    kind = NUMPY[dtype.name].type
    width = WIDTHS.get(function, (3.0, 3.0))[dtype is FLOAT64]
    near = rng.uniform(-width, width, 500), rng.uniform(-1, 1, 300), 1 + rng.normal(0, 1e-3, 100)
    sizes = 10.0 ** rng.uniform(-30, 30 if function != "tan" else 4, 200) * rng.choice([-1, 1], 200)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 80.0, -80.0, 88.9, 89.3, 700.0, 710.3, 1e-30, 2.0**13, 2.0**28, 1e10]
    return np.concatenate([*(n.astype(kind) for n in (*near, sizes)), np.array(edges, kind)])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_errors_are_small(function: str, dtype: DType) -> None:
    x = arguments(function, dtype)
    got = run(lambda a: applied(function, a), [x], [dtype], dtype, 8, "host")
    off = [units(g, exact(function, v), dtype) for v, g in zip(x.tolist(), got.tolist(), strict=True)]
    worst = int(np.argmax(off))
    assert off[worst] <= LIMIT, (
        f"seed {SEED}: {function}({x[worst]!r}) is {got[worst]!r}, off by {off[worst]:.2f} units"
    )


SPECIAL = {
    "exp2": [math.inf, 0.0, math.nan, 1.0, 1.0],
    "expm1": [math.inf, -1.0, math.nan, 0.0, -0.0],
    "log1p": [math.inf, math.nan, math.nan, 0.0, -0.0],
    "rsqrt": [0.0, math.nan, math.nan, math.inf, -math.inf],
    "sigmoid": [1.0, 0.0, math.nan, 0.5, 0.5],
    "tan": [math.nan, math.nan, math.nan, 0.0, -0.0],
    "asin": [math.nan, math.nan, math.nan, 0.0, -0.0],
    "acos": [math.nan, math.nan, math.nan, math.pi / 2, math.pi / 2],
    "atan": [math.pi / 2, -math.pi / 2, math.nan, 0.0, -0.0],
    "sinh": [math.inf, -math.inf, math.nan, 0.0, -0.0],
    "cosh": [math.inf, math.inf, math.nan, 1.0, 1.0],
    "asinh": [math.inf, -math.inf, math.nan, 0.0, -0.0],
    "acosh": [math.inf, math.nan, math.nan, math.nan, math.nan],
    "atanh": [math.nan, math.nan, math.nan, 0.0, -0.0],
    "trunc": [math.inf, -math.inf, math.nan, 0.0, -0.0],
    "sign": [1.0, -1.0, math.nan, 0.0, -0.0],
    "isnan": [0.0, 0.0, 1.0, 0.0, 0.0],
    "isinf": [1.0, 1.0, 0.0, 0.0, 0.0],
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", SPECIAL)
def test_special_values(function: str, dtype: DType) -> None:
    x = np.array([math.inf, -math.inf, math.nan, 0.0, -0.0], NUMPY[dtype.name])
    truth = function.startswith("is")
    got = run(lambda a: applied(function, a), [x], [dtype], BOOL if truth else dtype, 1, "host").astype(x.dtype)
    want = np.array(SPECIAL[function], got.dtype)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert np.array_equal(bits(got)[~np.isnan(want)], bits(want)[~np.isnan(want)])


@pytest.mark.parametrize("function", [f for f in SPECIAL if not f.startswith("is")])
def test_results_do_not_depend_on_lanes_or_target(function: str) -> None:
    x = arguments(function, FLOAT32)

    def made(lanes: int, target: str) -> NDArray:
        return bits(run(lambda a: applied(function, a), [x], [FLOAT32], FLOAT32, lanes, target))

    assert np.array_equal(made(1, "generic"), made(16, "host"))
