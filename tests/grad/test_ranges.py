"""Small specs whose reads and ranges are unusual, against finite differences, and the gradients of their gradients."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.grad import gradient, load_text
from opgen.spec.model.model import Read
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
SHAPED = """input x: T[m, n]
  input w: T[m, n]
  attr high: int >= 1 = 3
  let columns = m * n // high
  require high * columns == m * n : x "a multiple of {high} elements"
  output y: T[high, columns]"""
BLOCKS = """input x: T[n]
  input w: T[n]
  attr block: int >= 1 = 2
  let square = block{0}
  let many = n // square
  require many * square == n : x "a multiple of {{square}} elements"
  output y: T[many * block{0}]"""
ONE_BLOCK, TWO_BLOCKS = BLOCKS.format(""), BLOCKS.format(" * block")
TWELVE = {"x": (12,), "w": (12,)}
SHAPES = {"x": (2, 6), "w": (2, 6)}
PLACES = [  # subscripts that count through several dimensions, by quotient and remainder, or are one of several
    (SHAPED, "[i, j]", "(x[(i * columns + j) // n, (i * columns + j) % n] else 0) * (w[0, i] else 0)", SHAPES),
    (SHAPED, "[i, j]", "(x[(j * high + i) % m, (j * high + i) // m] else 0) * (w[j % m, i] else 0)", SHAPES),
    (SHAPED, "[i, j]", "(x[(i + j) // n, (i + j) % n] else 0) * (w[(i * columns + j) // n, 1] else 0)", SHAPES),
    (ONE_BLOCK, "[i]", "(x[i // block] else 0) * (w[i % block] else 0)", TWELVE),
    (ONE_BLOCK, "[i]", "(x[i // many] else 0) * (w[i % many] else 0)", TWELVE),
    (ONE_BLOCK, "[b * block + a]", "(x[a * many + b] else 0) * (w[b * block + a] else 0)", TWELVE),
    (TWO_BLOCKS, "[(c * block + a) * block + b]", "(x[(a * block + b) * many + c] else 0) * (w[c] else 0)", TWELVE),
    (TWO_BLOCKS, "[(c * block + b) * block + a]", "(x[(b * block + a) * many + c] else 0) * (w[c] else 0)", TWELVE),
    (VECTORS, "[i]", "(x[min(i, 2)] else 0) * (w[max(i - 2, 1)] else 0)", FIVE),
    (VECTORS, "[i]", "(x[min(max(2 * i - 1, 0), n - 1)] else 0) * (w[if i > 2 then n - i else i - 1] else 5)", FIVE),
    (VECTORS, "[i]", "(x[(2 * i + 1) // 3] else 0) * (w[(i + 3) % n] else 0)", FIVE),
    (VECTORS, "[i]", "sum[k < 3](x[(i + k) // 2] * w[(3 * i - k) // 4])", FIVE),
    (VECTORS, "[i]", "sum[k < 3](x[n - 1 - i - k] * w[2 * i - k])", FIVE),
]
ONCE += PLACES
TWICE += PLACES[:1] + PLACES[4:6] + PLACES[8:9] + PLACES[-1:]


def case_of(interface: str, subscripts: str, formula: str, shapes: Mapping[str, tuple[int, ...]]) -> Case:
    module = load_text(SPEC.format(interface, subscripts, formula))
    return Case(module, "Small", shapes)


@pytest.mark.parametrize(("interface", "subscripts", "formula", "shapes"), ONCE + TWICE)
def test_first(interface: str, subscripts: str, formula: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    case = case_of(interface, subscripts, formula, shapes)
    for wrt in differentiable(case.op):
        assert_gradient(case, wrt, seed=3)


@pytest.mark.parametrize(
    ("interface", "subscripts", "formula"),
    [
        (SHAPED, "[i, j]", "x[(i * columns + j) // n, (i * columns + j) % n] else 0"),
        (TWO_BLOCKS, "[(c * block + a) * block + b]", "x[(a * block + b) * many + c] else 0"),
    ],
)
def test_what_moves_elements_moves_them_back(interface: str, subscripts: str, formula: str) -> None:
    module = load_text(SPEC.format(re.sub(r"input w.*", r"\g<0> shape_only", interface), subscripts, formula))
    (definition,) = gradient(module, module.op("Small"), "x").definitions
    assert isinstance(definition.value, Read)


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
    case = case_of(VECTORS, "[i]", "sum[k < 3](x[i * k] * w[i + k])", FIVE)
    first = derivative(case, "w")
    with pytest.raises(DiagnosticError) as caught:
        gradient(first.module, first.op, "x")
    message = "only subscripts that are affine in the indices can be differentiated"
    assert str(caught.value).startswith(f"<text>:6:23: error[S062]: {message}\n")
