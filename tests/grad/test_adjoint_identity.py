"""<g, J v> = <J^T g, v> to rounding, on random shapes.

For an op that is linear in an input, J v is the op itself with v in its place.  For any other it is taken from the
gradient of the gradient, which is linear in the seed: J v = d/dg <J^T g, v>.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opgen.spec import CallError
from tests.grad.cases import NN, OTHERS, Array, Case, cotangent, derivative, differentiable, run, values

UNIT = 2.0**-53


def dot(a: Array, b: Array) -> float:
    return math.fsum((a.astype(np.float64) * b).ravel().tolist())


@st.composite
def windows(draw: st.DrawFn, name: str) -> Case:
    """A call of one of the windowed ops with small random sizes."""
    at = st.integers
    layout = draw(st.sampled_from(["NHWC", "NCHW"]))
    padding = draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"]))
    batch, height, width = draw(at(1, 2)), draw(at(1, 6)), draw(at(1, 6))
    rows, columns, depth = draw(at(1, 3)), draw(at(1, 3)), draw(at(1, 2))
    groups, outputs = draw(at(1, 2)), draw(at(1, 2))
    dense = name == "Conv2D"
    sizes = {"N": batch, "H": height, "W": width, "C": groups * depth if dense else depth}
    spatial: dict[str, Any] = {}
    for attr, most in (("strides", 3), ("dilations", 2)):
        by_letter = {"H": draw(at(1, most)), "W": draw(at(1, most))}
        spatial[attr] = [by_letter.get(letter, 1) for letter in layout]
    if padding == "EXPLICIT":
        pads = {letter: [draw(at(0, 3)), draw(at(0, 3))] for letter in "HW"}
        spatial["explicit_paddings"] = [p for letter in layout for p in pads.get(letter, [0, 0])]
    shapes = {
        "input": tuple(sizes[letter] for letter in layout),
        "filter": (rows, columns, depth, groups * outputs if dense else outputs),
    }
    case = Case(NN, name, shapes, {"padding": padding, "data_format": layout, **spatial})
    try:
        assume(case.output_shape is not None)
    except CallError:
        assume(False)
    return case


@pytest.mark.parametrize("wrt", ["input", "filter"])
@pytest.mark.parametrize("name", ["Conv2D", "DepthwiseConv2dNative"])
def test_linear(name: str, wrt: str) -> None:
    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(windows(name), st.integers(0, 2**32 - 1))
    def identity(case: Case, seed: int) -> None:
        arrays = values(case, seed)
        backward = derivative(case, wrt)
        g = np.random.default_rng(seed + 1).standard_normal(case.output_shape)
        forward = dot(g, run(case, arrays))
        adjoint = dot(run(backward, {**arrays, cotangent(backward): g}), arrays[wrt])
        # Each side adds products of three factors; S is the sum of their absolute values, and no element adds more
        # than as many as the largest tensor has. An element is off by (n + 1) units of its own share of S.
        absolute = {n: np.abs(a) for n, a in arrays.items()}
        total = dot(np.abs(g), run(case, absolute))
        terms = max(a.size for a in (*arrays.values(), g))
        assert abs(forward - adjoint) <= 2 * (terms + 2) * UNIT * total

    identity()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", [c for c in OTHERS if c.name in ("Softmax", "LayerNorm", "ConvBiasRelu")], ids=str)
def test_not_linear(case: Case, seed: int) -> None:
    for wrt in differentiable(case.op):
        arrays = values(case, seed)
        rng = np.random.default_rng(seed + 10)
        g, v = rng.standard_normal(case.output_shape), rng.standard_normal(arrays[wrt].shape)
        backward = derivative(case, wrt)
        forward = derivative(backward, cotangent(backward))
        adjoint = run(backward, {**arrays, cotangent(backward): g})
        pushed = run(forward, {**arrays, cotangent(backward): g, cotangent(forward): v})
        scale = float((np.abs(g) * np.abs(pushed)).sum() + (np.abs(adjoint) * np.abs(v)).sum())
        assert abs(dot(g, pushed) - dot(adjoint, v)) <= 1e-12 * max(scale, 1.0), f"seed {seed}, by {wrt}"
