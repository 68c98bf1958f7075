"""Functions made of others, compiled: against decimal arithmetic of 60 digits, and at infinities, NaN and zeros."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from opgen.dtypes import BOOL, FLOAT32, FLOAT64, DType
from opgen.lower.functions import applied, combined
from tests.support.elementary import DIGITS, SEED, arctan, erf, half_pi, units, wave
from tests.support.elementwise import NUMPY, bits, run

DTYPES = [FLOAT32, FLOAT64]
WIDTHS = {
    "sinh": (95, 720), "cosh": (95, 720), "expm1": (95, 720), "exp2": (140, 1080), "sigmoid": (110, 750),
    "erfc": (11, 28), "lgamma": (14, 14),
    "tan": (3e4, 1e6),
}  # fmt: skip
"""Arguments lie this near to 0: of float32, of float64; of all others within 3."""
LIMIT, LIMITS = 2.5, {"erfc": 5.0, "lgamma": 3.0}
"""Units in the last place that a result may be off; of some functions."""
FUNCTIONS = [
    "tan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "expm1", "log1p", "log2", "exp2", "rsqrt",
    "sigmoid", "trunc", "erfc", "lgamma",
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
            case "log2":
                return d.ln() / Decimal(2).ln() if x > 0 else -math.inf if x == 0 else math.nan
            case "erfc":
                return erfc(d)
            case "lgamma":
                return log_gamma(d) if x > -1 and x != 0 else math.inf
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


def erfc(x: Decimal) -> Decimal:
    """1 - erf(x), and from 2 on the continued fraction in M. Abramowitz and I. A. Stegun (1964), 7.1.14."""
    if x < 2:
        return 1 - erf(x)
    below = x
    for k in range(1200, 0, -1):
        below = x + Decimal(k) / 2 / below
    return (-x * x).exp() / below / (2 * half_pi()).sqrt()


def log_gamma(x: Decimal) -> Decimal:
    """log gamma(x), x above 0, by Stirling's series of x + 40 (6.1.40); log |gamma(x)| of a negative x above -1."""
    raised = x + 40 if x < 40 else x
    product = math.prod((x + k for k in range(40)), start=Decimal(1)) if x < 40 else Decimal(1)
    series = sum(
        _bernoulli(2 * k) / (2 * k * (2 * k - 1)) / raised ** (2 * k - 1) for k in range(1, 25) if x < Decimal("1e100")
    )
    return (raised - Decimal("0.5")) * raised.ln() - raised + (4 * half_pi()).ln() / 2 + series - abs(product).ln()


@cache
def _bernoulli(n: int) -> Decimal:
    numbers: list[Fraction] = [Fraction(1)]
    for k in range(1, n + 1):
        numbers.append(-sum((math.comb(k + 1, j) * numbers[j] for j in range(k)), Fraction(0)) / (k + 1))
    return Decimal(numbers[n].numerator) / numbers[n].denominator


def arguments(function: str, dtype: DType) -> NDArray:
    """Of all magnitudes, and more of those where something happens."""
    rng = np.random.default_rng(SEED)
    kind = NUMPY[dtype.name].type
    width = WIDTHS.get(function, (3.0, 3.0))[dtype is FLOAT64]
    near = rng.uniform(-width, width, 500), rng.uniform(-1, 1, 300), 1 + rng.normal(0, 1e-3, 100)
    sizes = 10.0 ** rng.uniform(-30, 30 if function != "tan" else 4, 200) * rng.choice([-1, 1], 200)
    if function == "lgamma":  # below by the reflection: a test of its own
        near, sizes = (*(np.abs(n) for n in near), rng.uniform(-0.5, 0, 100)), np.abs(sizes)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 80.0, -80.0, 88.9, 89.3, 700.0, 710.3, 1e-30, 2.0**13, 2.0**28, 1e10]
    return np.concatenate([*(n.astype(kind) for n in (*near, sizes)), np.array(edges, kind)])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_errors_are_small(function: str, dtype: DType) -> None:
    x = arguments(function, dtype)
    got = run(lambda a: applied(function, a), [x], [dtype], dtype, 8, "host")
    off = [units(g, exact(function, v), dtype) for v, g in zip(x.tolist(), got.tolist(), strict=True)]
    worst = int(np.argmax(off))
    assert off[worst] <= LIMITS.get(function, LIMIT), (
        f"seed {SEED}: {function}({x[worst]!r}) is {got[worst]!r}, off by {off[worst]:.2f} units"
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_angles_of_points(dtype: DType) -> None:
    """Errors below 2.5 units in the last place; and signs of zeros, infinities and NaN as numpy has them."""
    rng = np.random.default_rng(SEED)
    kind = NUMPY[dtype.name].type
    y, x = ((rng.standard_normal(500) * 10.0 ** rng.uniform(-9, 9, 500)).astype(kind) for _ in range(2))
    got = run(lambda a, b: combined("atan2", a, b), [y, x], [dtype, dtype], dtype, 4, "host")
    off = []
    for v, u, g in zip(y.tolist(), x.tolist(), got.tolist(), strict=True):
        with localcontext(DIGITS):
            angle = arctan(abs(Decimal(v) / Decimal(u)))
            off.append(units(g, (angle if u > 0 else 2 * half_pi() - angle).copy_sign(Decimal(v)), dtype))
    assert max(off) <= LIMIT, f"seed {SEED}: atan2({y[np.argmax(off)]!r}, {x[np.argmax(off)]!r}) is off by {max(off)}"
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], kind)
    y, x = np.repeat(special, 7), np.tile(special, 7)
    got = run(lambda a, b: combined("atan2", a, b), [y, x], [dtype, dtype], dtype, 1, "host")
    want = np.arctan2(y, x)
    np.testing.assert_allclose(got, want, rtol=4 * np.finfo(kind).eps)
    assert np.array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lgamma_of_negative_numbers(dtype: DType) -> None:
    """Within 6 units of the larger of what the reflection subtracts."""
    rng = np.random.default_rng(SEED)
    kind = NUMPY[dtype.name].type
    x = -np.concatenate([rng.uniform(0.5, 6, 300), rng.uniform(6, 200, 100)]).astype(kind)
    got = run(lambda a: applied("lgamma", a), [x], [dtype], dtype, 4, "host")
    for v, g in zip(x.tolist(), got.tolist(), strict=True):
        with localcontext(DIGITS):
            size = -Decimal(v)
            mirrored, own = (2 * half_pi() / (size * abs(wave(2 * half_pi() * size, 1)))).ln(), log_gamma(size)
            off = abs(Decimal(g) - (mirrored - own)) / Decimal(float(np.spacing(kind(max(abs(mirrored), abs(own))))))
        assert off <= 6, f"seed {SEED}: lgamma({v!r}) is {g!r}, off by {off:.2f} units"
    poles = np.array([-1.0, -2.0, -3.0, -1e5, -1e30], kind)
    assert np.isposinf(run(lambda a: applied("lgamma", a), [poles], [dtype], dtype, 1, "host")).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_digamma(dtype: DType) -> None:
    """Within 8 units of the largest number that is added, against differences of log gamma."""
    rng = np.random.default_rng(SEED)
    kind = NUMPY[dtype.name].type
    x = np.concatenate([rng.uniform(0.01, 3, 100), rng.uniform(3, 20, 50), -rng.uniform(0.01, 9, 100)]).astype(kind)
    got = run(lambda a: applied("digamma", a), [x], [dtype], dtype, 2, "host")
    step = Decimal("1e-15")
    for v, g in zip(x.tolist(), got.tolist(), strict=True):
        with localcontext(DIGITS):
            size = abs(Decimal(v))
            want = (log_gamma(size + step) - log_gamma(size - step)) / (2 * step)
            largest = max(1 / size, (size + 8).ln())
            if v < 0:
                turned = 2 * half_pi() * wave(2 * half_pi() * size, 0) / wave(2 * half_pi() * size, 1)
                want, largest = want + 1 / size + turned, max(largest, abs(turned))
            off = abs(Decimal(g) - want) / Decimal(float(np.spacing(kind(largest))))
        assert off <= 8, f"seed {SEED}: digamma({v!r}) is {g!r}, off by {off:.2f} units"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_log2_of_powers_of_two_is_exact(dtype: DType) -> None:
    kind = NUMPY[dtype.name].type
    least = math.frexp(np.finfo(kind).smallest_subnormal)[1] - 1
    exponents = np.arange(least, np.finfo(kind).maxexp)
    x = np.ldexp(kind(1), exponents)
    assert np.array_equal(run(lambda a: applied("log2", a), [x], [dtype], dtype, 8, "host"), exponents)


SPECIAL = {
    "exp2": [math.inf, 0.0, math.nan, 1.0, 1.0],
    "expm1": [math.inf, -1.0, math.nan, 0.0, -0.0],
    "log1p": [math.inf, math.nan, math.nan, 0.0, -0.0],
    "log2": [math.inf, math.nan, math.nan, -math.inf, -math.inf],
    "erfc": [0.0, 2.0, math.nan, 1.0, 1.0],
    "lgamma": [math.inf, math.inf, math.nan, math.inf, math.inf],
    "digamma": [math.inf, math.nan, math.nan, math.nan, math.nan],
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
