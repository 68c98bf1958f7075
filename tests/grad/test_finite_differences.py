"""Every op and every input against finite differences in float64, once and twice differentiated."""

from __future__ import annotations

import numpy as np
import pytest

from tests.grad.cases import (
    CASES,
    IDS,
    NN,
    OTHERS,
    PAIRS,
    SAMPLES,
    WINDOWS,
    Case,
    assert_gradient,
    cotangent,
    derivative,
    differentiable,
    finite_differences,
    run,
    values,
)


def test_every_op_is_here() -> None:
    assert {c.name for c in WINDOWS} == {op.name for op in NN.ops}
    assert {c.name for c in OTHERS} == {op.name for op in SAMPLES.ops}


@pytest.mark.parametrize(("case", "wrt"), PAIRS, ids=IDS)
def test_first(case: Case, wrt: str) -> None:
    assert_gradient(case, wrt, seed=3)


TWICE_TOO = ("Conv2D", "DepthwiseConv2dNative", "Softmax", "LayerNorm", "ScaledAdd", "Clamp")
FORWARD = [c for c in CASES if c.name in TWICE_TOO]
TWICE = [
    (case, first, second)
    for case in FORWARD
    for first in differentiable(case.op)
    for second in differentiable(derivative(case, first).op)
]


@pytest.mark.parametrize(("case", "first", "second"), TWICE, ids=[f"{c}-{a}-{b}" for c, a, b in TWICE])
def test_second(case: Case, first: str, second: str) -> None:
    assert_gradient(derivative(case, first), second, seed=4)


@pytest.mark.parametrize("case", [c for c in WINDOWS if c.name in ("Conv2D", "DepthwiseConv2dNative")], ids=str)
@pytest.mark.parametrize("wrt", ["input", "filter"])
def test_the_gradient_of_a_gradient_by_the_output_is_the_op_again(case: Case, wrt: str) -> None:
    """The op is linear in each input, so the adjoint of its adjoint is the op itself."""
    arrays = values(case, 5)
    backward = derivative(case, wrt)
    seed = cotangent(backward)
    again = derivative(backward, seed)
    g = {seed: np.full(case.output_shape, np.nan), cotangent(again): arrays[wrt]}
    assert next(t for t in again.op.tensors if t.name == seed).shape_only
    np.testing.assert_allclose(run(again, {**arrays, **g}), run(case, arrays), rtol=1e-12, atol=1e-12)


def test_the_comparison_can_fail() -> None:
    """Finite differences tell a gradient from one that is a little off."""
    case = next(c for c in OTHERS if c.name == "Softmax")
    arrays = values(case, 3)
    g = np.array([[2.0, 1, 1, 1]] * 3)
    derived = derivative(case, "logits")
    result = run(derived, {**arrays, cotangent(derived): g * 1.001})
    found = finite_differences(case, arrays, "logits", g, 3)
    assert max(abs(result.flat[p] - v) for p, v in found.items()) > 1e-5
