"""Small specs whose reads and ranges are unusual, against finite differences, and the gradients of their gradients."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.grad import gradient, load_text
from tests.grad.cases import Case, assert_gradient, derivative, differentiable

SPEC = """op Small {{
  type T in {{float64}}
  {}
  y{} = {}
}}
"""
VECTORS = "input x: T[n]\n  input w: T[n]\n  output y: T[n]"
BOTH_STRETCH = "input x: T[m | 1, n | 1]\n  input w: T[m | 1, n | 1]\n  output y: T[m, n]"
RADICES = "input x: T[p * q]\n  input w: T[q * p]\n  input z: T[p]\n  output y: T[p * q]"
TABLE = "input x: T[m, n]\n  input w: T[n]\n  output y: T[n]"
FIVE = {"x": (5,), "w": (5,)}

ONCE = [
    (VECTORS, "[i]", "prod[k < 2](x[i + k] + w[i + 1])", FIVE),
    (VECTORS, "[i]", "sum[k < i + 1](x[k] * w[i - k])", FIVE),
    (VECTORS, "[i]", "prod[k < i + 1](x[k]) + w[i]", FIVE),
    (VECTORS, "[i]", "max[k < i + 1](x[k] * w[i])", FIVE),
    (VECTORS, "[i]", "sum[k < n, l < k + 1](x[k] * w[l] * x[i])", FIVE),
    (VECTORS, "[i]", "if i % 2 == 0 then x[i] * w[i] else sum[k < i](x[k])", FIVE),
    (TABLE, "[i]", "w[i] + sum[k if k % 2 == 0](x[k // 2, k] * w[k])", {"x": (3, 6), "w": (6,)}),
    (TABLE, "[i]", "w[i] * sum[k if k % 2 == 0](x[k // 2, k] * x[k // 2, i])", {"x": (3, 6), "w": (6,)}),
    (TABLE, "[i]", "w[i] * prod[k if k % 3 == 0](x[k // 3, k] + x[0, k])", {"x": (2, 6), "w": (6,)}),
    (VECTORS, "[i]", "max[k < 3](if k == 0 then x[i - 1 + k] else w[i] * x[n - 1 - i])", FIVE),
]
TWICE = [
    (VECTORS, "[i]", "sum[k < i + 1](x[k] * w[k] * x[i])", FIVE),
    (BOTH_STRETCH, "[i, j]", "x[i, j] * w[i, j] * x[i, j]", {"x": (1, 4), "w": (3, 1)}),
    (BOTH_STRETCH, "[i, j]", "x[i, j] * w[i, j] * x[i, j]", {"x": (3, 4), "w": (1, 1)}),
    (RADICES, "[i * q + j]", "x[i * q + j] * w[j * p + i] * z[i]", {"x": (6,), "w": (6,), "z": (2,)}),
]


def case_of(interface: str, subscripts: str, formula: str, shapes: Mapping[str, tuple[int, ...]]) -> Case:
    module = load_text(SPEC.format(interface, subscripts, formula))
    return Case(module, "Small", shapes)


@pytest.mark.parametrize(("interface", "subscripts", "formula", "shapes"), ONCE + TWICE)
def test_first(interface: str, subscripts: str, formula: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    case = case_of(interface, subscripts, formula, shapes)
    for wrt in differentiable(case.op):
        assert_gradient(case, wrt, seed=3)


@pytest.mark.parametrize(("interface", "subscripts", "formula", "shapes"), TWICE)
def test_second(interface: str, subscripts: str, formula: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    case = case_of(interface, subscripts, formula, shapes)
    for wrt in differentiable(case.op):
        first = derivative(case, wrt)
        for again in differentiable(first.op):
            assert_gradient(first, again, seed=4)


@pytest.mark.parametrize(
    ("formula", "wrt", "message", "column"),
    [
        (
            "max[k < n, l < k + 1](x[k] * w[l])", "x",
            "a 'max' in which the range of an index depends on another cannot be differentiated", 10,
        ),
        (
            "sum[k < i + 1](x[k] * sum[l < 2](w[k + l]))", "w",
            "a reduction inside one in which the range of 'k' depends on another index cannot be differentiated", 32,
        ),
    ],
)  # fmt: skip
def test_refused(formula: str, wrt: str, message: str, column: int) -> None:
    case = case_of(VECTORS, "[i]", formula, FIVE)
    with pytest.raises(DiagnosticError) as caught:
        gradient(case.module, case.op, wrt)
    assert str(caught.value).startswith(f"<text>:6:{column}: error[S062]: {message}\n")


def test_a_gradient_that_cannot_be_differentiated_says_where() -> None:
    case = case_of(VECTORS, "[i]", "sum[k < 3](x[n - 1 - i - k] * w[2 * i - k])", FIVE)
    first = derivative(case, "w")
    with pytest.raises(DiagnosticError) as caught:
        gradient(first.module, first.op, "x")
    message = "only subscripts that are affine in the indices can be differentiated"
    assert str(caught.value).startswith(f"<text>:6:23: error[S062]: {message}\n")
