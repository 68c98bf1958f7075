"""Every conversion against numpy and ml_dtypes, on a CPU without and on the CPU with conversion instructions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from opgen.codegen.llvm.compile import assembly
from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, DType, wrap
from opgen.loop import build as b
from opgen.loop.nodes import Call
from tests.codegen.llvm.jit import Compiled
from tests.codegen.llvm.kernels import elementwise
from tests.support.elementwise import INTEGERS, NUMPY

SMALL = [FLOAT16, BFLOAT16]
TARGETS = ["generic", "x86-64-v3", "host"]
PATTERNS = np.arange(65536, dtype=np.uint16)


def target_named(name: str) -> Target:
    target = Target.from_name(name)
    if name == "x86-64-v3" and not (Target.host().is_x86 and Target.host().has("avx2")):
        pytest.skip("this machine is not x86-64-v3")
    return target


def converted(values: NDArray, source: DType, to: DType, lanes: int, target: Target) -> NDArray:
    """The values through a compiled cast; padded to whole vectors."""
    padded = np.concatenate([values, np.zeros(-len(values) % lanes, values.dtype)])
    kernel = Compiled(elementwise([source], to, lambda x: b.cast(to, x), lanes=lanes), target)
    result = np.empty(len(padded), NUMPY[to.name])
    assert kernel(padded, result, n=len(padded) // lanes) == 0
    return result[: len(values)]


def assert_same(got: NDArray, want: NDArray, values: NDArray) -> None:
    """Equal bits, any NaN being as good as another as long as it is quiet and keeps its sign."""
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[got.dtype.itemsize]
    nan = np.isnan(want.astype(np.float64))
    assert np.array_equal(np.isnan(got.astype(np.float64)), nan)
    bad = np.flatnonzero((got.view(bits) != want.view(bits)) & ~nan)
    assert bad.size == 0, f"{bad.size} wrong, first {values[bad[0]]!r}: {got[bad[0]]!r}, not {want[bad[0]]!r}"
    with np.errstate(invalid="ignore"):
        assert np.array_equal(np.signbit(got.astype(np.float64))[nan], np.signbit(values.astype(np.float64))[nan])


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("lanes", [1, 3, 16])
@pytest.mark.parametrize("small", SMALL, ids=str)
@pytest.mark.parametrize("wide", [FLOAT32, FLOAT64], ids=str)
def test_every_pattern_widens_exactly(name: str, lanes: int, small: DType, wide: DType) -> None:
    values = PATTERNS.view(NUMPY[small.name])
    got = converted(values, small, wide, lanes, target_named(name))
    with np.errstate(invalid="ignore"):
        assert_same(got, values.astype(NUMPY[wide.name]), values)
    quiet = 1 << (wide.precision - 2)
    bits = got.view(np.uint32 if wide is FLOAT32 else np.uint64)
    assert np.all(bits[np.isnan(got)] & bits.dtype.type(quiet))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("lanes", [1, 3, 16])
@pytest.mark.parametrize("small", SMALL, ids=str)
@pytest.mark.parametrize("wide", [FLOAT32, FLOAT64], ids=str)
def test_every_pattern_survives_the_way_there_and_back(name: str, lanes: int, small: DType, wide: DType) -> None:
    values = PATTERNS.view(NUMPY[small.name])
    target = target_named(name)
    back = converted(converted(values, small, wide, lanes, target), wide, small, lanes, target).view(np.uint16)
    quiet = 1 << (small.precision - 2)
    nan = np.isnan(values.astype(np.float32))
    assert np.array_equal(back, np.where(nan, PATTERNS | np.uint16(quiet), PATTERNS))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("lanes", [1, 3, 16])
@pytest.mark.parametrize("small", SMALL, ids=str)
def test_every_pattern_as_a_factor(name: str, lanes: int, small: DType) -> None:
    """A multiply-add makes a NaN quiet, whether the conversion before it did or not."""
    values = PATTERNS[: 65536 // lanes * lanes].view(NUMPY[small.name])
    ones, zeros = np.ones(len(values), np.float32), np.full(len(values), -0.0, np.float32)
    kernel = Compiled(
        elementwise(
            [small, FLOAT32, FLOAT32], FLOAT32, lambda x, y, z: Call("fma", (b.cast(FLOAT32, x), y, z)), lanes=lanes
        ),
        target_named(name),
    )
    got = np.empty(len(values), np.float32)
    assert kernel(values, ones, zeros, got, n=len(values) // lanes) == 0
    with np.errstate(invalid="ignore"):
        assert_same(got, values.astype(np.float32), values)
    assert np.all(got.view(np.uint32)[np.isnan(got)] & np.uint32(1 << 22))


def boundaries(small: DType, wide: DType) -> NDArray:
    """Every value of a 16-bit type, the middle between neighbours, and the neighbours of both in the wide type."""
    dtype = NUMPY[wide.name]
    with np.errstate(invalid="ignore"):
        finite = PATTERNS.view(NUMPY[small.name]).astype(np.float64)
    finite = np.unique(finite[np.isfinite(finite)])
    overflow = 2 * finite[-1] - finite[-2]
    points = np.concatenate([finite, (finite[:-1] + finite[1:]) / 2, [(finite[-1] + overflow) / 2, overflow]])
    with np.errstate(over="ignore", under="ignore"):
        points = np.concatenate([points, -points]).astype(dtype)
        near = [np.nextafter(points, dtype.type(np.inf)), np.nextafter(points, dtype.type(-np.inf))]
    extremes = np.array([np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny, 5e-324, 0.0, -0.0], dtype)
    return np.concatenate([points, *near, extremes, -extremes])


def nearest(values: NDArray, small: DType) -> NDArray:
    """Rounded to nearest even by exact arithmetic on float64: no conversion of the libraries is trusted."""
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
    lowest = -24 if small is FLOAT16 else -133
    largest = 65504.0 if small is FLOAT16 else float.fromhex("0x1.fep127")
    with np.errstate(invalid="ignore", over="ignore"):
        _, exponent = np.frexp(wide)
        unit = np.maximum(exponent - small.precision, lowest)
        rounded = np.ldexp(np.rint(np.ldexp(wide, -unit)), unit)
        rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, wide), rounded)
        rounded = np.where(np.isfinite(wide), rounded, wide)
        return rounded.astype(np.float32).astype(NUMPY[small.name])


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("lanes", [1, 5, 8, 16])
@pytest.mark.parametrize("small", SMALL, ids=str)
@pytest.mark.parametrize("wide", [FLOAT32, FLOAT64], ids=str)
def test_rounding_at_every_boundary(name: str, lanes: int, small: DType, wide: DType) -> None:
    values = boundaries(small, wide)
    assert_same(converted(values, wide, small, lanes, target_named(name)), nearest(values, small), values)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("small", SMALL, ids=str)
@pytest.mark.parametrize("wide", [FLOAT32, FLOAT64], ids=str)
def test_generic_and_host_agree_bit_for_bit_on_random_patterns(seed: int, small: DType, wide: DType) -> None:
    rng = np.random.default_rng(seed)
    values = np.frombuffer(rng.bytes(8 * 40000), NUMPY[wide.name])
    if wide is FLOAT64:  # most exponents are out of range: fold half of them into it
        near = np.exp2(rng.uniform(-30, 20, 20000)) * rng.choice([-1, 1], 20000)
        values = np.concatenate([values, near])
    generic = converted(values, wide, small, 16, Target.generic())
    host = converted(values, wide, small, 16, Target.host())
    assert np.array_equal(generic.view(np.uint16), host.view(np.uint16))
    assert_same(host, nearest(values, small), values)


NUMBERS = [0, 1, -1, 127, -128, 255, 256, 257, 2049, 65504, 65519, 65520, -65520, 2**24 + 1, 2**31 - 1, -(2**31)]
NUMBERS += [2**53 + 1, 2**62 + 2**54, 2**62 + 2**54 + 1, 2**62 + 2**54 - 1, -(2**62) - 2**54 - 1]
NUMBERS += [2**63 - 1, -(2**63), 2**40 + 2**32, 2**40 + 2**32 + 1, 2**63 + 2**55, 2**63 + 2**55 + 1, 2**64 - 1]


def nearest_of_integer(n: int, small: DType) -> float:
    """The value of a 16-bit type nearest to an integer, ties to even, by integer arithmetic."""
    drop = max(0, abs(n).bit_length() - small.precision)
    quotient, rest = divmod(abs(n), 1 << drop)
    half = (1 << drop) >> 1
    quotient += drop > 0 and (rest > half or (rest == half and quotient % 2 == 1))
    value = quotient << drop
    return float(np.copysign(np.inf if small is FLOAT16 and value > 65504 else value, n))


@pytest.mark.parametrize("name", ["generic", "host"])
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("small", SMALL, ids=str)
@pytest.mark.parametrize("integer", INTEGERS, ids=str)
def test_integers_are_rounded_once(name: str, lanes: int, small: DType, integer: DType) -> None:
    numbers = [n for n in NUMBERS if integer.least <= n <= integer.greatest]
    values = np.array(numbers, NUMPY[integer.name])
    got = converted(values, integer, small, lanes, target_named(name)).astype(np.float64)
    assert got.tolist() == [nearest_of_integer(n, small) for n in numbers]


@pytest.mark.parametrize("name", ["generic", "host"])
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("integer", INTEGERS, ids=str)
@pytest.mark.parametrize("source", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_floats_to_integers_truncate_and_saturate(name: str, lanes: int, integer: DType, source: DType) -> None:
    numbers = [0.5, -0.5, 1.75, -1.75, 100.5, np.nan, np.inf, -np.inf, 3e9, -3e9, 1e19, -1e19, 2.0**31, 2.0**63]
    numbers += [127.5, 128.0, -128.5, -129.0, 255.5, 256.0, 65535.5, 65536.0, 2.0**32, 2.0**64]
    values = np.array(numbers)
    with np.errstate(over="ignore"):
        values = values.astype(NUMPY[source.name])
    info = np.iinfo(NUMPY[integer.name])
    want = []
    for v in values.astype(np.float64).tolist():
        exact = 0 if v != v else info.max if v == np.inf else info.min if v == -np.inf else int(v)
        want.append(min(max(exact, int(info.min)), int(info.max)))
    assert converted(values, source, integer, lanes, target_named(name)).tolist() == want


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("source", [*INTEGERS, FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_to_bool_is_not_zero_and_from_bool_is_one(lanes: int, source: DType) -> None:
    values = np.array([0, 1, wrap(-1, source) if source.is_int else -1, 3, 0, 0], dtype=NUMPY[source.name])
    want = [False, True, True, True, False, False]
    if source.is_float:
        values[4:] = -0.0, np.nan
        want[5] = True
    truth = converted(values, source, BOOL, lanes, Target.host())
    assert truth.tolist() == want
    assert truth.view(np.uint8).tolist() == [int(w) for w in want]
    assert converted(truth, BOOL, source, lanes, Target.host()).astype(float).tolist() == [float(w) for w in want]


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integer_casts_wrap(source: DType, lanes: int) -> None:
    numbers = [n for n in [*NUMBERS, 2**32 + 7, -5] if source.least <= n <= source.greatest]
    values = np.array(numbers, NUMPY[source.name])
    for to in INTEGERS:
        assert converted(values, source, to, lanes, Target.host()).tolist() == [wrap(n, to) for n in numbers]


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("small", SMALL, ids=str)
@pytest.mark.parametrize("wide", [FLOAT32, FLOAT64], ids=str)
def test_no_target_calls_a_library(name: str, lanes: int, small: DType, wide: DType) -> None:
    target = Target.from_name(name)
    for source, to in ((small, wide), (wide, small)):
        kernel = elementwise([source], to, lambda x, to=to: b.cast(to, x), lanes=lanes)
        text = assembly(emit(kernel, target), target)
        calls = [line.split() for line in text.splitlines()]
        called = {
            words[1] for words in calls if words[:1] in (["callq"], ["bl"], ["jmp"], ["b"]) and words[1][0] != "."
        }
        assert called <= {"elementwise.work"}
        assert not re.findall(r"\b__\w+", text)
