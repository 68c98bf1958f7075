"""Arithmetic, comparisons and functions against Python and numpy, scalar and vector."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, DType, wrap
from opgen.loop import build as b
from opgen.loop.nodes import Binary, Broadcast, Call, Compare, Const, Expr, Ramp, Select, Type, Unary
from tests.codegen.llvm.kernels import elementwise
from tests.support.elementwise import INTEGERS, NUMPY, bits, run

LANES = [1, 4]
FLOATS = [FLOAT32, FLOAT64]
INTS = [0, 1, -1, 2, 3, -3, 7, -7, 8, -8, 100, 12345, -12345, 2**31 - 1, -(2**31)]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, 3.5, math.inf, -math.inf, math.nan, 1e-45, 1e-310, 3e38, 7.25, -2.5]


def extremes(dtype: DType) -> list[int]:
    """Integers of a type, the ends of its range among them."""
    return [n for n in dict.fromkeys([*INTS, dtype.greatest, dtype.least]) if dtype.least <= n <= dtype.greatest]


def pairs(values: list[float], dtype: DType) -> tuple[NDArray, NDArray]:
    with np.errstate(over="ignore"):
        own = np.array(values, NUMPY[dtype.name])
    left, right = np.meshgrid(own, own)
    return left.ravel().copy(), right.ravel().copy()


def assert_same_floats(got: NDArray, want: NDArray) -> None:
    nan = np.isnan(want)
    assert np.array_equal(np.isnan(got), nan)
    assert np.array_equal(bits(got)[~nan], bits(want)[~nan])


@pytest.mark.parametrize("target", ["generic", "host"])
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_float_arithmetic_is_ieee(op: str, dtype: DType, lanes: int, target: str) -> None:
    x, y = pairs(SPECIAL, dtype)
    with np.errstate(all="ignore"):
        want = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op](x, y)
    assert_same_floats(run(lambda a, c: Binary(op, a, c), [x, y], [dtype] * 2, dtype, lanes, target), want)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["min", "max"])
def test_min_and_max_take_the_first_of_equals_and_any_nan(op: str, dtype: DType, lanes: int) -> None:
    x, y = pairs(SPECIAL, dtype)
    order = np.less_equal if op == "min" else np.greater_equal
    want = np.where(order(x, y) | np.isnan(x), x, y)
    got = run(lambda a, c: Binary(op, a, c), [x, y], [dtype] * 2, dtype, lanes, "host")
    assert np.array_equal(bits(got), bits(want))


@pytest.mark.parametrize("target", ["generic", "host"])
@pytest.mark.parametrize("lanes", LANES)
def test_a_product_and_a_sum_are_not_contracted_but_fma_is(lanes: int, target: str) -> None:
    rng = np.random.default_rng(1)
    x, y, z = (rng.standard_normal(256).astype(np.float32) for _ in range(3))
    types = [FLOAT32] * 3
    apart = run(lambda a, c, d: Binary("add", Binary("mul", a, c), d), [x, y, z], types, FLOAT32, lanes, target)
    assert np.array_equal(apart, x * y + z)
    once = run(lambda a, c, d: Call("fma", (a, c, d)), [x, y, z], types, FLOAT32, lanes, target)
    # Products of float32 are exact in float64; here no sum falls on a tie of float32 after float64's own rounding.
    want = (x.astype(np.float64) * y + z).astype(np.float32)
    assert np.array_equal(once, want)
    assert not np.array_equal(once, apart)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", [*INTEGERS, FLOAT32, BOOL], ids=str)
@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons(op: str, dtype: DType, lanes: int) -> None:
    values = SPECIAL if dtype.is_float else [0, 1] if dtype is BOOL else extremes(dtype)
    x, y = pairs(values, dtype)
    compare = {
        "eq": "equal",
        "ne": "not_equal",
        "lt": "less",
        "le": "less_equal",
        "gt": "greater",
        "ge": "greater_equal",
    }
    want = getattr(np, compare[op])(x, y)
    assert np.array_equal(run(lambda a, c: Compare(op, a, c), [x, y], [dtype] * 2, BOOL, lanes, "host"), want)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "min", "max", "and", "or", "xor"])
def test_integer_arithmetic_wraps(op: str, dtype: DType, lanes: int) -> None:
    x, y = pairs(extremes(dtype), dtype)
    numpy = {"add": "add", "sub": "subtract", "mul": "multiply", "min": "minimum", "max": "maximum"}
    with np.errstate(over="ignore"):
        want = getattr(np, numpy.get(op, f"bitwise_{op}"))(x, y)
    assert np.array_equal(run(lambda a, c: Binary(op, a, c), [x, y], [dtype] * 2, dtype, lanes, "host"), want)


def floored(x: int, y: int, op: str, dtype: DType) -> int:
    return wrap(x // y if op == "floordiv" else x % y, dtype)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", ["floordiv", "mod"])
def test_division_floors_for_any_divisor(op: str, dtype: DType, lanes: int) -> None:
    cases = [(x, y) for x in extremes(dtype) for y in extremes(dtype) if y != 0]
    x, y = (np.array(side, NUMPY[dtype.name]) for side in zip(*cases, strict=True))
    want = [floored(p, q, op, dtype) for p, q in cases]
    assert run(lambda a, c: Binary(op, a, c), [x, y], [dtype] * 2, dtype, lanes, "host").tolist() == want


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", ["floordiv", "mod"])
@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 64, 1000, -1, -2, -7])
def test_division_floors_for_constant_divisors(divisor: int, op: str, dtype: DType, lanes: int) -> None:
    values, divisor = extremes(dtype), wrap(divisor, dtype)
    x = np.array(values, NUMPY[dtype.name])
    want = [floored(v, divisor, op, dtype) for v in values]
    of = Const(divisor, Type(dtype, lanes))
    assert run(lambda a: Binary(op, a, of), [x], [dtype], dtype, lanes, "host").tolist() == want


def of_elements(x: int, y: int, op: str, dtype: DType) -> int:
    """By exact numbers: towards 0, and 0 where y is; shifts as if by unlimited integers."""
    shift = y if 0 <= y < dtype.bits else None
    match op:
        case "quot":
            value = int(Fraction(x, y)) if y else 0
        case "rem":
            value = x - y * int(Fraction(x, y)) if y else 0
        case "shl":
            value = 0 if shift is None else x * 2**shift
        case "shr":
            value = x // 2 ** (dtype.bits if shift is None else shift)
        case _:
            value = x**y if y >= 0 else int(Fraction(x) ** y) if x else 0
    return wrap(value, dtype)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", ["quot", "rem", "shl", "shr", "pow"])
def test_operations_of_elements_have_a_value_for_all_operands(op: str, dtype: DType, lanes: int) -> None:
    wide = [n for n in extremes(dtype) if op != "pow" or abs(n) <= 100] + [
        n for n in (5, 6, 31, 32, 63) if op != "quot"
    ]
    x, y = (
        np.array(side, NUMPY[dtype.name]) for side in zip(*[(p, q) for p in extremes(dtype) for q in wide], strict=True)
    )
    want = [of_elements(int(p), int(q), op, dtype) for p, q in zip(x, y, strict=True)]

    def made(a: Expr, c: Expr) -> Expr:
        return Call("pow", (a, c)) if op == "pow" else Binary(op, a, c)

    assert run(made, [x, y], [dtype] * 2, dtype, lanes, "host").tolist() == want
    for known in {0, 1, wrap(-1, dtype), 3, 8, dtype.bits - 1, dtype.greatest}:
        value = known if op != "pow" or known < 9 else 2
        constant = Const(value, Type(dtype, lanes))
        want = [of_elements(int(p), value, op, dtype) for p in x]
        assert run(lambda a, c=constant: made(a, c), [x], [dtype], dtype, lanes, "host").tolist() == want


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_remainder_of_floats_is_exact(dtype: DType, lanes: int) -> None:
    x, y = pairs([*SPECIAL, 1e30, 7.0, -3.0, 0.3], dtype)
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    assert_same_floats(run(lambda a, c: Binary("rem", a, c), [x, y], [dtype] * 2, dtype, lanes, "host"), want)


@pytest.mark.parametrize("lanes", LANES)
def test_unary_and_select(lanes: int) -> None:
    x = np.array(SPECIAL, np.float32)
    got = run(lambda a: Unary("neg", a), [x], [FLOAT32], FLOAT32, lanes, "host")
    assert np.array_equal(bits(got), bits(x) ^ np.uint32(1 << 31))
    for dtype in INTEGERS:
        n = np.array(extremes(dtype), NUMPY[dtype.name])
        with np.errstate(over="ignore"):
            assert np.array_equal(run(lambda a: Unary("neg", a), [n], [dtype], dtype, lanes, "host"), -n)
            assert np.array_equal(run(lambda a: Call("abs", (a,)), [n], [dtype], dtype, lanes, "host"), np.abs(n))
        assert np.array_equal(run(lambda a: Unary("not", a), [n], [dtype], dtype, lanes, "host"), ~n)
    t = np.array([True, False, True])
    assert np.array_equal(run(lambda a: Unary("not", a), [t], [BOOL], BOOL, lanes, "host"), ~t)
    h = np.array([1, 2, 3], np.float16)
    got = run(lambda c, a, d: Select(c, a, d), [t, h, -h], [BOOL, FLOAT16, FLOAT16], FLOAT16, lanes, "host")
    assert got.tolist() == [1.0, -2.0, 3.0]


@pytest.mark.parametrize("target", ["generic", "host"])
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("function", ["sqrt", "floor", "ceil", "round", "abs"])
def test_exact_functions(function: str, dtype: DType, lanes: int, target: str) -> None:
    x = np.array([*SPECIAL, 0.5, 1.5, 2.5, -0.5, -1.5, 2.0**23 + 0.5, 1e300], NUMPY["float64"])
    with np.errstate(all="ignore"):
        x = x.astype(NUMPY[dtype.name])
        want = getattr(np, {"round": "rint"}.get(function, function))(x)
    assert_same_floats(run(lambda a: Call(function, (a,)), [x], [dtype], dtype, lanes, target), want)


@pytest.mark.parametrize("target", ["generic", "host"])
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("function", ["exp", "log", "tanh", "erf", "sin", "cos", "pow"])
def test_library_functions(function: str, dtype: DType, lanes: int, target: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0.01, 8, 64).astype(NUMPY[dtype.name])
    y = rng.uniform(-2, 2, 64).astype(NUMPY[dtype.name])
    if function == "pow":
        got = run(lambda a, c: Call("pow", (a, c)), [x, y], [dtype] * 2, dtype, lanes, target)
        want = np.array([math.pow(p, q) for p, q in zip(x.tolist(), y.tolist(), strict=True)])
    else:
        got = run(lambda a: Call(function, (a,)), [x], [dtype], dtype, lanes, target)
        want = np.array([getattr(math, function)(p) for p in x.tolist()])
    # glibc documents at most 2 units in the last place for these.
    assert np.max(np.abs(got - want) / np.spacing(np.abs(want).astype(got.dtype))) <= 2.5


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(("base", "stride"), [(0, 1), (5, -3), (-7, 2**29)])
def test_ramps_and_broadcasts_are_values_too(base: int, stride: int, dtype: DType, lanes: int) -> None:
    x = np.zeros(lanes, NUMPY[dtype.name])
    t, base, stride = Type(dtype), wrap(base, dtype), wrap(stride, dtype)
    got = run(
        lambda a: Binary("add", a, Ramp(Const(base, t), Const(stride, t), lanes)), [x], [dtype], dtype, lanes, "host"
    )
    want = [wrap(base + stride * k, dtype) for k in range(lanes)]
    assert got.tolist() == want
    got = run(lambda a: Binary("add", a, Broadcast(Const(base, t), lanes)), [x], [dtype], dtype, lanes, "host")
    assert got.tolist() == [base] * lanes


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (lambda a: Binary("add", a, a), "arithmetic on float16"),
        (lambda a: Unary("neg", a), "neg of float16"),
        (lambda a: Call("exp", (a,)), "exp of float16"),
        (lambda a: Binary("add", b.cast(FLOAT32, a), Const(1)), "add of float32 and int64"),
        (lambda a: Binary("floordiv", b.cast(FLOAT32, a), b.cast(FLOAT32, a)), "floordiv of float32"),
        (lambda a: Select(Const(1), a, a), "select by int64 between float16 and float16"),
        (lambda a: b.var("nowhere"), "variable nowhere is not in scope"),
    ],
)
def test_what_the_loop_ir_does_not_allow_is_refused(of: object, message: str) -> None:
    def made(a: Expr) -> Expr:
        return b.cast(FLOAT16, of(a))

    with pytest.raises(InternalError, match=f"^{message}$"):
        emit(elementwise([FLOAT16], FLOAT16, made), Target.generic())
