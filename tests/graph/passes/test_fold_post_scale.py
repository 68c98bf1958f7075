"""What scales and moves the results of sums goes into their constants; what it computes differs by roundings alone."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.graph.ir.nodes import Graph
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes.base import run_passes
from opgen.graph.passes.dead import DEAD
from opgen.graph.passes.fold import FOLD
from opgen.graph.passes.fold_post_scale import AFFINE
from opgen.graph.passes.fuse import FUSE
from tests.graph.random_graphs import campaign
from tests.graph.steps import NN, Steps, uniform
from tests.support.graphs import assert_folds, assert_reads_back

WINDOWS = {"strides": (1, 2, 2, 1), "padding": "SAME", "dilations": (1, 1, 1, 1)}


def folded(graph: Graph) -> list[str]:
    """The ops that are left; asserts that results are the same but for roundings."""
    found = AFFINE.run(graph)
    for node in found.nodes:
        if node.op.spec.name == "ScaleAndMove":
            assert_reads_back(node)
    found = run_passes(found, (FOLD, DEAD, FUSE))
    inputs = uniform(graph.inputs)
    for a, b in zip(interpret(graph, inputs), interpret(found, inputs), strict=True):
        # Sums of at most 100 products of numbers whose sums stay below 8: each rounds by 2^-24 of that.
        np.testing.assert_allclose(b, a, rtol=0, atol=100 * 8 * 2.0**-24)
    return [n.op.spec.name for n in found.nodes]


def norm(steps: Steps, x: str, channels: int) -> str:
    return steps("Norm", x, *(steps.random(channels, seed=k) for k in range(4)))


@pytest.mark.parametrize("groups", [1, 2])
def test_a_normalisation_after_windows(groups: int) -> None:
    steps = Steps()
    y = steps("Conv2D", steps.input(2, 5, 6, 4), steps.random(3, 3, 4 // groups, 6), module=NN, **WINDOWS)
    assert folded(steps.graph(steps("Ramp", norm(steps, y, 6)))) == ["Conv2DScaleAndMoveRamp"]


def test_several_steps_after_a_product() -> None:
    steps = Steps()
    y = steps("MatMul", steps.input(4, 5), steps.random(5, 6))
    y = steps("Add", steps("Mul", y, steps.random(1, 6)), steps.random(1, 6))
    y = steps("Div", steps("Sub", y, steps.random(1, 1)), steps.random(1, 6))
    assert folded(steps.graph(steps("Relu", y))) == ["MatMulScaleAndMoveRelu"]


def test_a_sum_with_a_term_of_its_own_takes_all() -> None:
    steps = Steps()
    y = steps("Affine", steps.input(4, 5), steps.random(5, 6), steps.random(6))
    y = steps("Mul", steps("Add", y, steps.random(1, 6)), steps.random(1, 6))
    assert folded(steps.graph(y)) == ["Affine"]


@pytest.mark.parametrize("case", ["rows", "input", "twice", "given", "bent"])
def test_what_stays(case: str) -> None:
    steps = Steps()
    y = steps("MatMul", steps.input(4, 5), steps.input(5, 6) if case == "given" else steps.random(5, 6))
    if case == "rows":
        y = steps("Mul", y, steps.random(4, 1))
    elif case == "input":
        y = steps("Mul", y, steps.input(1, 6))
    elif case == "twice":
        y = steps("Mul", y, y)
    elif case == "bent":
        y = steps("Relu", y)
    else:
        y = steps("Mul", y, steps.random(1, 6))
    graph = steps.graph(y)
    assert AFFINE.run(graph) is graph


def test_sixteen_bits_stay() -> None:
    steps = Steps()
    y = steps("MatMul", steps.input(4, 5, dtype="float16"), steps.random(5, 6, dtype="float16"))
    graph = steps.graph(steps("Mul", y, steps.random(1, 6, dtype="float16")))
    assert AFFINE.run(graph) is graph


@campaign(40)
def test_random_graphs(graph: Graph) -> None:
    assert_folds(AFFINE, graph)
