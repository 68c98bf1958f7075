"""The interpreter: the meaning of each construct, one by one, and what it refuses."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from opgen.diagnostics import InternalError
from opgen.dtypes import DTYPES, FLOAT32, INT32
from opgen.loop.arithmetic import NUMPY, Array
from opgen.loop.interpret import Counters, evaluate, interpret
from opgen.loop.nodes import INDEX, Type
from opgen.loop.parse import parse_expr, parse_kernel
from opgen.loop.verify import verify


def run(text: str, arrays: dict[str, Array] | None = None, **parameters: float) -> Array:
    """The output `y` of a kernel that is right by the verifier."""
    kernel = parse_kernel(text)
    verify(kernel)
    results = interpret(kernel, arrays or {}, parameters)
    again = interpret(kernel, arrays or {}, parameters, seed=11)
    assert results["y"].tobytes() == again["y"].tobytes()
    return results["y"]


def run_body(body: str, dtype: str = "float32", size: int = 1, **values: Array | float) -> Array:
    """The output `y: dtype[size]` of a body over arrays (inputs) and numbers (parameters float32 or int64)."""
    arrays = {k: v for k, v in values.items() if isinstance(v, np.ndarray)}
    numbers = {k: v for k, v in values.items() if not isinstance(v, np.ndarray)}
    names = {NUMPY[d]: d for d in NUMPY}
    header = [f"{k}: {names[v.dtype]}[{', '.join(map(str, v.shape))}]" for k, v in arrays.items()]
    header += [f"{k}: {'float32' if isinstance(v, float) else 'int64'}" for k, v in numbers.items()]
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return run(f"kernel f({', '.join(header)}) -> (y: {dtype}[{size}]):\n{lines}", arrays, **numbers)


EVALUATED = [
    ("7 // -2", -4),
    ("-7 % 3", 2),
    ("7 % -3", -2),
    ("9223372036854775807 + 1", -(2**63)),
    ("(9223372036854775807 * 3) // 2", (2**63 - 3) // 2),
    ("2147483647i32 + 1i32", -(2**31)),
    ("-(-2147483648i32)", -(2**31)),
    ("abs(-2147483648i32)", -(2**31)),
    ("int32(4294967297)", 1),
    ("min(3, -2) + max(3, -2)", 1),
    ("6 and 3", 2),
    ("6 or 3", 7),
    ("6 xor 3", 5),
    ("true and not false", True),
    ("true xor true", False),
    ("select(1 < 2, 10, 20)", 10),
    ("nan_f32 != nan_f32", True),
    ("nan_f32 <= 1.0f32", False),
    ("nan_f32 == nan_f32", False),
    ("1.0f32 / 0.0f32", math.inf),
    ("0.1f32 + 0.2f32", float(np.float32(0.1) + np.float32(0.2))),
    ("0.1f64 + 0.2f64", 0.1 + 0.2),
    ("sqrt(2.0f32)", float(np.sqrt(np.float32(2)))),
    ("round(2.5f32) + round(3.5f32)", 6.0),
    ("floor(-0.5f64)", -1.0),
    ("ceil(-0.5f64)", -0.0),
    ("abs(-3.0f32)", 3.0),
    ("erf(0.5f64)", math.erf(0.5)),
    ("pow(2.0f64, 0.5f64)", 2.0**0.5),
    ("fma(1.5f32, 2.0f32, 0.25f32)", 3.25),
    ("min(nan_f32, 1.0f32) == 0.0f32", False),
    ("float32(16777217)", 16777216.0),
    ("float32(9007199791611905)", float(np.array(9007199791611905).astype(np.float32))),
    ("int64(-2.9f32)", -2),
    ("int32(inf_f64)", 2**31 - 1),
    ("int64(nan_f32)", 0),
    ("int64(true)", 1),
    ("bool(nan_f32)", True),
    ("float64(float16(65519.0f32))", 65504.0),
    ("float64(float16(65520.0f32))", math.inf),
    ("float64(bfloat16(1.00390625f32))", 1.0),
    ("float32(0.1f16)", float(np.float16(0.1))),
]


@pytest.mark.parametrize(("text", "expected"), EVALUATED)
def test_scalar_expressions(text: str, expected: float) -> None:
    found = evaluate(parse_expr(text, {}), {})
    assert found == expected
    assert np.signbit(np.float64(found)) == np.signbit(np.float64(expected))


VECTORS = [
    ("ramp(3, -2, 4)", [3, 1, -1, -3]),
    ("broadcast(2, 2) * ramp(0, 1, 2) + 1i64x2", [1, 3]),
    ("ramp(-3, 1, 4) // 2i64x4", [-2, -1, -1, 0]),
    ("ramp(-3, 1, 4) % -2i64x4", [-1, 0, -1, 0]),
    ("ramp(2147483646i32, 1i32, 3) + 1i32x3", [2147483647, -2147483648, -2147483647]),
    ("select(ramp(0, 1, 3) > 0i64x3, 5i64x3, 7i64x3)", [7, 5, 5]),
    ("select(false, 5i64x3, 7i64x3)", [7, 7, 7]),
    ("not (ramp(0, 1, 3) == 1i64x3)", [True, False, True]),
    ("min(ramp(0, 1, 3), 1i64x3)", [0, 1, 1]),
    ("float32x3(ramp(16777216, 1, 3))", [16777216.0, 16777216.0, 16777218.0]),
    ("fma(2.0f64x2, 3.0f64x2, 1.0f64x2)", [7.0, 7.0]),
    ("-ramp(1, 1, 2)", [-1, -2]),
    ("erf(broadcast(0.5f64, 2))", [math.erf(0.5)] * 2),
    ("exp(0.0f32x2)", [1.0, 1.0]),
]


@pytest.mark.parametrize(("text", "expected"), VECTORS)
def test_vector_expressions(text: str, expected: list[float]) -> None:
    e = parse_expr(text, {})
    found = evaluate(e, {})
    assert isinstance(found, np.ndarray)
    assert found.tolist() == expected
    assert found.dtype == NUMPY[e.type.dtype.name]


@pytest.mark.parametrize("name", sorted(d.name for d in DTYPES.values() if not d.is_bits))
def test_every_type_is_loaded_stored_and_selected(name: str) -> None:
    x = np.arange(6).astype(NUMPY[name])
    y = run_body("for i in 0 .. 6:\n  y[5 - i] = select(i < 3, x[i], x[0])", name, 6, x=x)
    assert y.dtype == x.dtype
    assert y.tolist() == [x[0]] * 3 + x[:3].tolist()[::-1]
    lanes = run_body("y[ramp(0, 1, 6)] = x[ramp(5, -1, 6)]", name, 6, x=x)
    assert lanes.tolist() == x[::-1].tolist()


def test_masked_lanes_touch_nothing() -> None:
    x = np.array([1, 2, 3], dtype=np.float32)
    body = (
        "for i in 0 .. 4:\n  y[i] = 9.0f32\n"
        "y[ramp(2, 1, 4) if ramp(2, 1, 4) < 4i64x4] = x[ramp(1, 1, 4) if ramp(1, 1, 4) < 3i64x4]"
    )
    assert run_body(body, "float32", 4, x=x).tolist() == [9, 9, 2, 3]
    scalar = "y[0] = x[7 if 7 < 3] + 1.0f32\ny[100 if false] = 1.0f32"
    assert run_body(scalar, x=x).tolist() == [1]


def test_vector_stores_go_in_lane_order() -> None:
    assert run_body("y[ramp(0, 0, 4)] = ramp(1, 1, 4)", "int64").tolist() == [4]


def test_loop_bounds_are_evaluated_once_and_empty_loops_do_nothing() -> None:
    body = (
        "alloc n: int64[1] stack\nn[0] = 3\ny[0] = 0\nfor i in 0 .. n[0]:\n  n[0] = 100\n  y[0] = y[0] + 1\n"
        "for i in 5 .. 2:\n  y[0] = -1"
    )
    assert run_body(body, "int64").tolist() == [3]


def test_let_binds_a_value_once() -> None:
    body = "y[0] = 1\nlet v: int64 = y[0] + 1:\n  y[0] = 10\n  y[0] = y[0] + v\nlet w: int64 = y[0]\ny[0] = w * 2"
    assert run_body(body, "int64").tolist() == [24]


def test_allocations_may_depend_on_loops() -> None:
    body = (
        "y[0] = 0\nfor i in 0 .. 4:\n  alloc t: int64[i + 1, 2] heap\n  for j in 0 .. i + 1:\n    t[j, 1] = j\n"
        "  y[0] = y[0] + t[i, 1]"
    )
    assert run_body(body, "int64").tolist() == [6]


def test_deeply_nested_loops_run() -> None:
    lines = [f"{'  ' * d}for i{d} in 0 .. {2 if d < 4 else 1}:" for d in range(40)]
    body = "\n".join(["y[0] = 0", *lines, "  " * 40 + "y[0] = y[0] + 1"])
    assert run_body(body, "int64").tolist() == [16]


def test_bfloat16_sums_in_float32() -> None:
    x = np.full(1000, 1.0, dtype=ml_dtypes.bfloat16)
    body = (
        "alloc acc: float32[1] register\nacc[0] = 0.0f32\nfor i in 0 .. 1000:\n  acc[0] = acc[0] + float32(x[i])\n"
        "y[0] = bfloat16(acc[0])"
    )
    assert float(run_body(body, "bfloat16", x=x)[0]) == 1000.0


# Refusals ----------------------------------------------------------------------------------------

REFUSED = [
    ("y[3] = 1.0f32", "index [3] of buffer 'y' is outside its shape [3]"),
    ("y[-1] = 1.0f32", "index [-1] of buffer 'y' is outside its shape [3]"),
    ("y[0] = x[0, 4]", "index [0, 4] of buffer 'x' is outside its shape [2, 4]"),
    ("y[0] = y[1]", "element [1] of buffer 'y' is read before it is written"),
    ("alloc t: float32[2, 2] heap\nt[0, 0] = 1.0f32\ny[0] = t[1, 0]", "element [1, 0] of buffer 't' is read before"),
    ("y[ramp(0, 1, 2)] = x[broadcast(1, 2), ramp(3, 1, 2)]", "index [1, 4] of buffer 'x' is outside its shape [2, 4]"),
    ("y[ramp(2, 1, 2)] = 0.0f32x2", "index [3] of buffer 'y' is outside its shape [3]"),
    ("y[ramp(0, 1, 2)] = y[ramp(1, 1, 2)]", "element [1] of buffer 'y' is read before it is written"),
    ("y[0] = select(true, 1.0f32, x[2, 0])", "index [2, 0] of buffer 'x' is outside its shape [2, 4]"),
    ("if 1 // (n - 4) > 0:\n  pass", "kernel 'f' divides an integer by zero"),
    ("alloc t: float32[n - 5] heap\npass", "buffer 't' has a negative size: [-1]"),
    ("y[0] = 1.0f32", "element [1] of output 'y' is never written"),
    (
        "block.x for b in 0 .. 1:\n  thread.x for t in 0 .. 4:\n    if t < 3:\n      barrier\n",
        "only 3 of 4 threads reach a barrier",
    ),
]


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_what_a_right_kernel_never_does_is_refused(body: str, message: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    kernel = parse_kernel(f"kernel f(x: float32[2, n], n: int64) -> (y: float32[3]):\n{lines}")
    with pytest.raises(InternalError) as caught:
        interpret(kernel, {"x": np.ones((2, 4), dtype=np.float32)}, {"n": 4})
    assert message in str(caught.value)


def test_incomplete_outputs_can_be_allowed() -> None:
    kernel = parse_kernel("kernel f() -> (y: float32[3]):\n    y[1] = 2.0f32\n")
    y = interpret(kernel, {}, complete=False)["y"]
    assert np.array_equal(y, [np.nan, 2, np.nan], equal_nan=True)


def test_arguments_are_checked() -> None:
    text = "kernel f(x: float32[n], n: int64 in [0, 9], m: int64) -> (y: float32[0]):\n    assume m > n\n    pass\n"
    kernel = parse_kernel(text)
    x = np.ones(3, dtype=np.float32)
    cases: list[tuple[dict[str, Array], dict[str, float], str]] = [
        ({"x": x}, {"n": 3}, "parameter 'm' has no value"),
        ({"x": x}, {"n": 30, "m": 40}, "parameter 'n' is 30, outside [0, 9]"),
        ({"x": x}, {"n": 3, "m": 2}, "kernel 'f' assumes m > n, which does not hold"),
        ({}, {"n": 3, "m": 4}, "input 'x' is missing"),
        ({"x": x}, {"n": 4, "m": 5}, "input 'x' is float32[3], expected float32[4]"),
        ({"x": x.astype(np.float64)}, {"n": 3, "m": 4}, "input 'x' is float64[3], expected float32[3]"),
    ]
    for arrays, parameters, message in cases:
        with pytest.raises(InternalError) as caught:
            interpret(kernel, arrays, parameters)
        assert str(caught.value) == message


def test_inputs_are_not_changed_and_may_have_any_strides() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    kernel = parse_kernel(
        "kernel f(x: float32[4, 3]) -> (y: float32[4, 3]):\n"
        "    for i in 0 .. 4:\n        for j in 0 .. 3:\n            y[i, j] = x[i, j]\n"
    )
    y = interpret(kernel, {"x": x.T})["y"]
    assert (y == x.T).all()
    y[0, 0] = 77
    assert x[0, 0] == 0


# Order -------------------------------------------------------------------------------------------


def test_a_seed_reveals_dependence() -> None:
    kernel = parse_kernel(
        "kernel f() -> (y: int64[1]):\n    y[0] = 0\n    parallel for i in 0 .. 10:\n        y[0] = y[0] * 3 + i\n"
    )
    results = {int(interpret(kernel, {}, seed=seed)["y"][0]) for seed in range(5)}
    assert len(results) > 1
    assert int(interpret(kernel, {}, seed=3)["y"][0]) == int(interpret(kernel, {}, seed=3)["y"][0])


REVERSE = """\
kernel reverse(x: float32[64]) -> (y: float32[64]):
    block.x for bx in 0 .. 4:
        alloc tile: float32[16] shared
        thread.y for ty in 0 .. 4:
            thread.x for tx in 0 .. 4:
                alloc mine: float32[1] register
                tile[ty * 4 + tx] = x[bx * 16 + ty * 4 + tx]
                for turn in 0 .. 3:
                    barrier
                    mine[0] = tile[15 - ty * 4 - tx]
                    barrier
                    tile[ty * 4 + tx] = mine[0]
                y[bx * 16 + ty * 4 + tx] = mine[0]
"""


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_barriers_order_the_threads_of_a_block(seed: int | None) -> None:
    kernel = parse_kernel(REVERSE)
    verify(kernel, bounds=True)
    x = np.arange(64, dtype=np.float32)
    y = interpret(kernel, {"x": x}, seed=seed)["y"]
    assert (y == x.reshape(4, 16)[:, ::-1].reshape(64)).all()


def test_without_its_barriers_the_same_kernel_is_wrong() -> None:
    kernel = parse_kernel(REVERSE.replace("                    barrier\n", ""))
    with pytest.raises(InternalError, match="is read before it is written"):
        interpret(kernel, {"x": np.arange(64, dtype=np.float32)})


def test_work_is_counted() -> None:
    kernel = parse_kernel(
        "kernel f(x: float32[8]) -> (y: float32[8]):\n"
        "    for i in 0 .. 4:\n        y[i] = fma(x[i], x[i + 1], 0.0f32)\n"
        "    y[ramp(4, 1, 4)] = x[ramp(0, 1, 4)] + x[ramp(0, 1, 4)] * 2.0f32x4\n"
    )
    counters = Counters()
    interpret(kernel, {"x": np.ones(8, dtype=np.float32)}, counters=counters)
    assert counters == Counters(loads=16, stores=8, multiply_adds=8, iterations=4)


def test_temporary_memory_is_counted_before_it_is_taken() -> None:
    kernel = parse_kernel(
        "kernel f(x: float32[8], n: int64 in [0, inf]) -> (y: float32[8]):\n"
        "    alloc t: float32[n, 1000000000] heap:\n        for i in 0 .. 8:\n            y[i] = x[i]\n"
    )

    class Bounded(Counters):
        def __setattr__(self, name: str, value: int) -> None:
            super().__setattr__(name, value)
            if value > 100:
                raise OverflowError(name)

    with pytest.raises(OverflowError, match="allocated"):
        interpret(kernel, {"x": np.ones(8, dtype=np.float32)}, {"n": 1000}, counters=Bounded())


def test_evaluate_needs_every_variable() -> None:
    e = parse_expr("n * 2 + q", {"n": INDEX, "q": INDEX})
    assert evaluate(e, {"n": 3, "q": 1}) == 7
    with pytest.raises(InternalError, match="variable 'q' of 'n \\* 2 \\+ q' has no value"):
        evaluate(e, {"n": 3})
    assert evaluate(parse_expr("a + 1i32", {"a": Type(INT32)}), {"a": 2**31 - 1}) == -(2**31)
    assert evaluate(parse_expr("a + a", {"a": Type(FLOAT32)}), {"a": 0.1}) == np.float32(0.1) + np.float32(0.1)
