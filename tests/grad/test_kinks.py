"""Where a function has a kink: the side that the forward pass takes; NaN; terms that are left out."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.grad import load_text
from tests.grad.cases import SAMPLES, Array, Case, cotangent, derivative, run


def pulled(case: Case, wrt: str, arrays: dict[str, Array], g: Array) -> Array:
    backward = derivative(case, wrt)
    return run(backward, {**arrays, cotangent(backward): g})


POOL = {"ksize": [1, 1, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}


def test_of_equal_values_the_first_wins() -> None:
    x = np.array([1.0, 3, 3, 3, 2]).reshape(1, 1, 5, 1)
    g = np.array([1.0, 10, 100, 1000]).reshape(1, 1, 4, 1)
    case = Case(SAMPLES, "MaxPool", {"input": x.shape}, POOL)
    assert pulled(case, "input", {"input": x}, g).ravel().tolist() == [0, 11, 100, 1000, 0]


def test_a_nan_wins_over_all_and_the_first_over_others() -> None:
    x = np.array([1.0, np.nan, np.nan, 5, 2]).reshape(1, 1, 5, 1)
    g = np.array([1.0, 10, 100, 1000]).reshape(1, 1, 4, 1)
    case = Case(SAMPLES, "MaxPool", {"input": x.shape}, POOL)
    assert pulled(case, "input", {"input": x}, g).ravel().tolist() == [0, 11, 100, 1000, 0]


def test_windows_that_hold_minus_infinity_alone() -> None:
    x = np.full((1, 1, 3, 1), -np.inf)
    case = Case(SAMPLES, "MaxPool", {"input": x.shape}, POOL)
    assert pulled(case, "input", {"input": x}, np.ones((1, 1, 2, 1))).ravel().tolist() == [1, 1, 0]


@pytest.mark.parametrize(("mode", "expected"), [("LARGEST", [0, 1, 0]), ("SMALLEST", [0, 0, 0])])
def test_values_that_are_clamped(mode: str, expected: list[float]) -> None:
    """Below the floor the value is the floor, which depends on nothing; of two that are largest the first counts."""
    x = np.array([[-1.0, 2, 2]])
    case = Case(SAMPLES, "Clamp", {"x": x.shape}, {"mode": mode})
    assert pulled(case, "x", {"x": x}, np.ones(1)).ravel().tolist() == expected


@pytest.mark.parametrize(
    ("x", "expected"), [([2.0, 3, 4], [12, 8, 6]), ([2.0, 0, 4], [0, 8, 0]), ([0.0, 0, 4], [0, 0, 0])]
)
def test_a_product_with_zeros(x: list[float], expected: list[float]) -> None:
    """The derivative by a factor is the product of the others, not the product divided by it."""
    case = Case(SAMPLES, "Clamp", {"x": (1, 3)}, {"mode": "PRODUCT"})
    assert pulled(case, "x", {"x": np.array([x])}, np.ones(1)).ravel().tolist() == expected


KINKS = """
op Kinks {
  type T in {float64}
  input a: T[n]
  input b: T[n]
  output y: T[n]
  y[i] = %s
}
"""


@pytest.mark.parametrize(
    ("formula", "wrt", "expected"),
    [
        ("max(a[i], b[i])", "a", [0, 1, 1]),
        ("max(a[i], b[i])", "b", [1, 0, 0]),
        ("min(a[i], b[i])", "a", [1, 1, 0]),
        ("min(a[i], b[i])", "b", [0, 0, 1]),
        ("abs(a[i] - b[i])", "a", [-1, 0, 1]),
        ("abs(a[i] - b[i])", "b", [1, 0, -1]),
        ("floor(a[i]) + ceil(b[i]) + round(a[i])", "a", [0, 0, 0]),
        ("if a[i] < b[i] then a[i] * 2 else b[i] * 3", "a", [2, 0, 0]),
        ("if a[i] < b[i] then a[i] * 2 else b[i] * 3", "b", [0, 3, 3]),
        ("pow(a[i] + 2, 3) + b[i]", "a", [27, 48, 75]),
        ("exp(a[i]) * 0 + b[i]", "b", [1, 1, 1]),
    ],
)
def test_by_the_side_that_forward_takes(formula: str, wrt: str, expected: list[float]) -> None:
    module = load_text(KINKS % formula)
    case = Case(module, "Kinks", {"a": (3,), "b": (3,)})
    arrays = {"a": np.array([1.0, 2, 3]), "b": np.array([2.0, 2, 2])}
    np.testing.assert_allclose(pulled(case, wrt, arrays, np.ones(3)), expected, rtol=1e-14)


INFINITE = np.array([0.0, 0, 1]), np.array([2.0, 0, np.inf])


@pytest.mark.parametrize(
    ("formula", "wrt", "expected"),
    [
        ("if a[i] > 0 then sqrt(a[i]) else b[i]", "a", [0, 0, 0.5]),
        ("max(log(a[i]), -5) + b[i]", "a", [0, 0, 1]),
        ("max[k < 2](if k == 0 then b[k] else log(a[k])) + b[i]", "a", [0, 0, 0]),
        ("if a[i] == 0 then a[i] else a[i] * b[i]", "a", [1, 1, np.inf]),
    ],
)
def test_a_side_that_is_not_taken_does_not_spoil_the_other(formula: str, wrt: str, expected: list[float]) -> None:
    """Its derivative is infinite: 0 times that would be NaN."""
    a, b = INFINITE
    case = Case(load_text(KINKS % formula), "Kinks", {"a": (3,), "b": (3,)})
    np.testing.assert_array_equal(pulled(case, wrt, {"a": a, "b": b}, np.ones(3)), expected)


@pytest.mark.parametrize(
    ("formula", "wrt", "expected"),
    [
        ("pow(a[i], b[i])", "a", [0, 0, 3]),
        ("pow(a[i], b[i])", "b", [0, 0, 0]),
        ("pow(a[i], 0) + b[i]", "a", [0, 0, 0]),
        ("pow(a[i], 2) + b[i]", "a", [0, 0, 2]),
    ],
)
def test_powers_of_zero(formula: str, wrt: str, expected: list[float]) -> None:
    case = Case(load_text(KINKS % formula), "Kinks", {"a": (3,), "b": (3,)})
    arrays = {"a": np.array([0.0, 0, 1]), "b": np.array([2.0, 0, 3])}
    assert pulled(case, wrt, arrays, np.ones(3)).tolist() == expected


SMOOTH = ["exp(a[i])", "log(a[i] + 4)", "sqrt(a[i] + 4)", "tanh(a[i])", "erf(a[i])", "sin(a[i])", "cos(a[i])",
          "pow(a[i] + 4, b[i])", "a[i] / (b[i] + 4)", "-(a[i] - 2 * b[i]) * a[i]", "exp2(a[i])", "expm1(a[i])",
          "log1p(abs(a[i]) + 1)", "log2(a[i] + 4)", "fma(a[i], b[i], a[i] * 2)",
          "rsqrt(a[i] + 4)", "sigmoid(a[i])", "tan(a[i] / 4)",
          "asin(tanh(a[i]) / 2)", "acos(tanh(a[i]) / 2)", "atan(a[i])", "sinh(a[i])", "cosh(a[i])", "asinh(a[i])",
          "acosh(a[i] + 5)", "atanh(tanh(a[i]) / 2)", "rem(a[i] + 4.3, b[i] + 5)", "(a[i] - 4.3) % (b[i] + 5)",
          "lgamma(a[i] / 8 - 1.5)", "lgamma(a[i] + 4)", "erfc(a[i])",
          "atan2(a[i], b[i] + 4)", "atan2(b[i] - 4, a[i])", "trunc(a[i] + 7.2) * a[i]",
          "sign(a[i] + 9) * a[i]",
          "if isnan(a[i]) or isinf(b[i]) then b[i] else a[i] + float(isinf(a[i]))"]  # fmt: skip


@pytest.mark.parametrize("formula", SMOOTH)
def test_every_function_against_finite_differences(formula: str) -> None:
    from tests.grad.cases import assert_gradient

    module = load_text(KINKS % (formula if "b[i]" in formula else f"{formula} + b[i]"))
    case = Case(module, "Kinks", {"a": (4,), "b": (4,)})
    for wrt in ("a", "b"):
        assert_gradient(case, wrt, seed=2)


SHIFTED = """
op Weighted {
  type T in {float64}
  input x: T[n]
  input w: T[n]
  output y: T[n]
  y[i] = sum[k < 2](x[i + k] * w[i + 1])
}
"""


def test_a_term_that_is_left_out_has_no_gradient() -> None:
    """The last sum reads w outside: all its terms are left out, so x's last element is in one sum only."""
    module = load_text(SHIFTED)
    case = Case(module, "Weighted", {"x": (3,), "w": (3,)})
    arrays = {"x": np.array([1.0, 2, 3]), "w": np.array([10.0, 20, 30])}
    assert pulled(case, "x", arrays, np.ones(3)).tolist() == [20, 50, 30]
    assert pulled(case, "w", arrays, np.ones(3)).tolist() == [0, 3, 5]


def test_non_finite_factors_of_taps_that_are_left_out_do_not_spread() -> None:
    module = load_text(SHIFTED)
    case = Case(module, "Weighted", {"x": (3,), "w": (3,)})
    arrays = {"x": np.array([1.0, 2, 3]), "w": np.array([10.0, 20, 30])}
    g = np.array([1.0, 1, np.nan])
    assert pulled(case, "x", arrays, g).tolist() == [20, 50, 30]


STEPS = """
op Steps {
  type T in {float64}
  input x: T[n]
  attr step: int
  attr begin: int = 0
  output y: T[n]
  y[i] = sum[k < 2](x[begin + i * step + k])
}
"""


@pytest.mark.parametrize("step", [-2, -1, 0, 1, 2])
def test_a_step_that_may_be_anything(step: int) -> None:
    """Nothing says that the step is not 0, so nothing is divided by it."""
    from tests.grad.cases import assert_gradient

    module = load_text(STEPS)
    assert_gradient(Case(module, "Steps", {"x": (5,)}, {"step": step, "begin": 2}), "x", seed=step + 9)


@pytest.mark.parametrize("step", [-3, -2, -1])
def test_steps_backwards(step: int) -> None:
    from tests.grad.cases import assert_gradient

    module = load_text(STEPS.replace("attr step: int", "attr step: int <= -1"))
    assert_gradient(Case(module, "Steps", {"x": (6,)}, {"step": step, "begin": 5}), "x", seed=step + 9)
