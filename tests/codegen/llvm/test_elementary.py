"""Functions in lanes against decimal arithmetic of 60 digits: how many units in the last place they are off, anywhere.

Powers of float32 are within 0.51, those of float64 within 0.7.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import NDArray

from opgen.codegen.llvm.target import Target
from opgen.dtypes import FLOAT32, FLOAT64, DType
from opgen.loop.nodes import Call
from tests.support.elementary import DIGITS, SEED, arctan, erf, units, wave
from tests.support.elementwise import NUMPY, bits, run

FUNCTIONS = ["exp", "log", "tanh", "erf", "sin", "cos", "atan"]
WIDTHS = {
    "exp": (110, 750),
    "log": (4, 4),
    "tanh": (10, 10),
    "erf": (5, 5),
    "sin": (7e4, 2e9),
    "cos": (7e4, 2e9),
    "atan": (9, 9),
}
"""Most of the numbers tried lie this near to 0: of float32, of float64."""
TARGETS = ["generic", "host", *(f"x86-64-{v}" for v, f in [("v3", "avx2"), ("v4", "avx512f")] if Target.host().has(f))]
"""What this machine can run."""


def most_units(function: str, dtype: DType) -> float:
    match function:
        case "erf" if dtype is FLOAT32:
            return 1.4
        case "sin" | "cos":
            return 1.7
    return 2.0


def exact(function: str, x: float) -> Decimal | float:
    """The value for a finite number: a decimal, or what is no finite number."""
    with localcontext(DIGITS):
        d = Decimal(x)
        match function:
            case "exp":
                return math.inf if x > 800 else max(d, Decimal(-800)).exp()
            case "log":
                return d.ln() if x > 0 else -math.inf if x == 0 else math.nan
            case "erf":
                return erf(d)
            case "sin":
                return wave(d, 1)
            case "cos":
                return wave(d, 0)
            case "atan":
                return arctan(d)
        grown = (2 * min(abs(d), Decimal(60))).exp()
        size = (grown - 1) / (grown + 1) if abs(x) > 1e-9 else abs(d) - abs(d) ** 3 / 3
        return size.copy_sign(d)


def arguments(function: str, dtype: DType) -> NDArray:
    """Of all magnitudes, and more of those between nothing and overflow."""
    rng = np.random.default_rng(SEED)
    kind = NUMPY[dtype.name].type
    whole = rng.integers(0, 2**dtype.bits, 400, dtype=np.uint64)
    any_bits = whole.astype(np.uint32 if dtype is FLOAT32 else np.uint64).view(kind)
    width = WIDTHS[function][dtype is FLOAT64]
    near = rng.uniform(-width, width, 1500), rng.uniform(-0.7, 0.7, 500), 1 + rng.normal(0, 1e-3, 200)
    info = np.finfo(kind)
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        info.tiny,
        info.tiny / 8,
        info.smallest_subnormal,
        info.max,
        -info.max,
        0.625,
        1.14,
        4.0,
        6.0,
        2.0**16,
        2.0**30,
        *(np.arange(1, 400) * math.pi / 2 if function in ("sin", "cos") else ()),
    ]
    powers = [2.0**k for k in range(-120, 120, 7)]
    found = np.concatenate([any_bits, *(n.astype(kind) for n in near), np.array([*edges, *powers], kind)])
    return found[np.isfinite(found)]


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_errors_are_small(function: str, dtype: DType) -> None:
    x = arguments(function, dtype)
    got = run(lambda a: Call(function, (a,)), [x], [dtype], dtype, 4, "host")
    off = [units(g, exact(function, v), dtype) for v, g in zip(x.tolist(), got.tolist(), strict=True)]
    worst = int(np.argmax(off))
    assert off[worst] <= most_units(function, dtype), (
        f"seed {SEED}: {function}({x[worst]!r}) is {got[worst]!r}, off by {off[worst]:.2f} units"
    )


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("exp", [math.inf, 0.0, math.nan, 1.0, 1.0]),
        ("log", [math.inf, math.nan, math.nan, -math.inf, -math.inf]),
        ("tanh", [1.0, -1.0, math.nan, 0.0, -0.0]),
        ("erf", [1.0, -1.0, math.nan, 0.0, -0.0]),
        ("sin", [math.nan, math.nan, math.nan, 0.0, -0.0]),
        ("cos", [math.nan, math.nan, math.nan, 1.0, 1.0]),
    ],
)
def test_special_values(function: str, expected: list[float], dtype: DType) -> None:
    x = np.array([math.inf, -math.inf, math.nan, 0.0, -0.0], NUMPY[dtype.name])
    got = run(lambda a: Call(function, (a,)), [x], [dtype], dtype, 1, "host")
    want = np.array(expected, got.dtype)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert np.array_equal(bits(got)[~np.isnan(want)], bits(want)[~np.isnan(want)])


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_do_not_depend_on_lanes_or_target(function: str, dtype: DType) -> None:
    x = arguments(function, dtype)

    def made(lanes: int, target: str) -> NDArray:
        return bits(run(lambda a: Call(function, (a,)), [x], [dtype], dtype, lanes, target))

    alone = made(1, "generic")
    assert all(np.array_equal(made(lanes, target), alone) for lanes in (2, 8, 16) for target in TARGETS)


def test_erf_of_every_size_is_near_and_never_beyond_one() -> None:
    """Of float32: one number in 97 between 2**-13, below which erf is linear, and 4.5, above which it is 1."""
    first, last = (int(np.float32(v).view(np.uint32)) for v in (2.0**-13, 4.5))
    x = np.arange(first, last, 97, dtype=np.uint32).view(np.float32)
    got = run(lambda a: Call("erf", (a,)), [x], [FLOAT32], FLOAT32, 16, "host")
    want = np.array([math.erf(v) for v in x.tolist()])
    off = np.abs(got - want) / np.spacing(np.minimum(want, 1 - 2.0**-25).astype(np.float32))
    assert off.max() <= 1.4, f"erf({x[off.argmax()]!r}) is off by {off.max():.2f}"
    assert got.max() == 1


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("function", ["sin", "cos"])
def test_a_great_number_changes_nothing_beside_it(function: str, dtype: DType) -> None:
    """The library is asked where one of the lanes is great."""
    small = np.random.default_rng(SEED).uniform(-9, 9, 64).astype(NUMPY[dtype.name])
    for place in range(0, 64, 5):
        mixed = small.copy()
        mixed[place] = 1e30
        alone, beside = (
            bits(run(lambda a: Call(function, (a,)), [x], [dtype], dtype, 8, "host")) for x in (small, mixed)
        )
        assert np.flatnonzero(alone != beside).tolist() == [place]


def powers(dtype: DType) -> tuple[NDArray, NDArray]:
    """Bases and exponents: of all magnitudes, and more of those whose powers are finite."""
    rng = np.random.default_rng(SEED)
    kind = NUMPY[dtype.name].type
    greatest, nearness, whole = (105, 1e-4, np.uint32) if dtype is FLOAT32 else (750, 1e-9, np.uint64)
    end = int(np.array(math.inf, kind).view(whole))
    x = rng.integers(1, end, 2000, dtype=np.uint64).astype(whole).view(kind)
    y = rng.uniform(-1, 1, x.size) * greatest / np.maximum(np.abs(np.log(x.astype(float))), 1e-7)
    near = 1 + rng.normal(0, nearness, 500)
    x = np.concatenate([x, near, rng.uniform(0, 8, 1500), -rng.uniform(0, 8, 500)]).astype(kind)
    counts = np.rint(rng.normal(0, 12, 500))
    many = rng.normal(0, 10 / nearness, 500)
    y = np.concatenate([y, many, rng.uniform(-20, 20, 1500), counts]).astype(kind)
    known = np.isfinite(x) & np.isfinite(y) & (x != 0)
    return x[known], y[known]


def exact_power(x: float, y: float) -> Decimal | float:
    with localcontext(DIGITS):
        exponent = Decimal(y) * abs(Decimal(x)).ln()
        if exponent > 800:
            return math.inf if x > 0 or y % 2 == 0 else -math.inf
        return max(exponent, Decimal(-800)).exp().copy_sign(Decimal(-1 if x < 0 and y % 2 else 1))


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_powers_are_nearly_the_right_ones_rounded(dtype: DType) -> None:
    x, y = powers(dtype)
    got = run(lambda a, c: Call("pow", (a, c)), [x, y], [dtype] * 2, dtype, 8, "host")
    off = [units(g, exact_power(*v), dtype) for *v, g in zip(x.tolist(), y.tolist(), got.tolist(), strict=True)]
    worst = int(np.argmax(off))
    assert off[worst] <= (0.51 if dtype is FLOAT32 else 0.7), (
        f"seed {SEED}: pow({x[worst]!r}, {y[worst]!r}) is {got[worst]!r}, off by {off[worst]:.3f}"
    )


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_powers_of_whole_numbers_are_exact(dtype: DType) -> None:
    bits_kept = 24 if dtype is FLOAT32 else 53
    known = [(b, e) for b in range(-40, 1001) for e in range(1, 54) if abs(b) ** e < 2**bits_kept]
    roots = [(b**e, b, 1 / e) for b, e in known if b > 1 and e in (2, 4)]
    x = np.array([b for b, _ in known] + [power for power, _, _ in roots], NUMPY[dtype.name])
    y = np.array([e for _, e in known] + [exponent for _, _, exponent in roots], NUMPY[dtype.name])
    got = run(lambda a, c: Call("pow", (a, c)), [x, y], [dtype] * 2, dtype, 8, "host")
    assert got.tolist() == [b**e for b, e in known] + [root for _, root, _ in roots]


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_special_powers(dtype: DType) -> None:
    """As IEEE 754 has them, those of numpy; other numbers among them have the neighbour of numpy's at most."""
    some = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        math.inf,
        -math.inf,
        math.nan,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        1e30,
        -1e30,
        16777217.0,
    ]
    x, y = (v.ravel().astype(NUMPY[dtype.name]) for v in np.meshgrid(some, some))
    got = run(lambda a, c: Call("pow", (a, c)), [x, y], [dtype] * 2, dtype, 1, "host")
    with np.errstate(all="ignore"):
        want = np.power(x.astype(float), y.astype(float)).astype(NUMPY[dtype.name])
    assert np.array_equal(np.isnan(got), np.isnan(want))
    ordinary = np.isfinite(x) & np.isfinite(y) & np.isfinite(want) & (want != 0)
    assert np.array_equal(bits(got)[~ordinary & ~np.isnan(want)], bits(want)[~ordinary & ~np.isnan(want)])
    assert np.all(np.abs(got[ordinary] - want[ordinary]) <= np.spacing(np.abs(want[ordinary])))


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_powers_do_not_depend_on_lanes_or_target(dtype: DType) -> None:
    x, y = powers(dtype)

    def made(lanes: int, target: str) -> NDArray:
        return bits(run(lambda a, c: Call("pow", (a, c)), [x, y], [dtype] * 2, dtype, lanes, target))

    alone = made(1, "generic")
    assert all(np.array_equal(made(lanes, target), alone) for lanes in (2, 8, 16) for target in TARGETS)
