"""What scales and moves what is summed goes into the constants; what it computes differs by roundings alone."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from opgen.graph.ir.nodes import Graph
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes import fold_pre_scale as ahead
from opgen.graph.passes.base import Report, run_passes
from opgen.graph.passes.dead import DEAD
from opgen.graph.passes.fold import FOLD
from opgen.graph.passes.fold_pre_scale import AHEAD
from opgen.graph.passes.fuse import FUSE
from tests.graph.random_graphs import SEED, campaign
from tests.graph.steps import NN, Steps, uniform
from tests.support.graphs import assert_folds, assert_reads_back

MADE = ("ScaleAndMove",)


def folded(graph: Graph) -> list[str]:
    """The ops that are left; asserts that results are the same but for roundings."""
    report = Report()
    found = run_passes(graph, (AHEAD,), report)
    for node in found.nodes:
        if node.op.spec.name in MADE:
            assert_reads_back(node)
    assert bool(report.notes) == (found is not graph)
    found = run_passes(found, (FOLD, DEAD, FUSE))
    inputs = uniform(graph.inputs)
    for a, b in zip(interpret(graph, inputs), interpret(found, inputs), strict=True):
        # Sums of at most 100 products, each of at most 1 * 1.5 * 1.5 * 1.5 and a term of 1.5 * 1.5: below 6 in all.  A
        # sum of n terms is off by n roundings of its magnitudes, a product by 3, on both sides.
        np.testing.assert_allclose(b, a, rtol=0, atol=2 * (100 + 3) * 100 * 6 * 2.0**-24)
    return [n.op.spec.name for n in found.nodes]


def test_rows_are_scaled_before_a_product() -> None:
    steps = Steps()
    x = steps("Mul", steps.input(4, 5), steps.random(1, 5))
    assert folded(steps.graph(steps("MatMul", x, steps.random(5, 6)))) == ["MatMul"]


def test_one_number_for_all() -> None:
    steps = Steps()
    x = steps("Mul", steps.input(4, 5), steps.random(1, 1))
    assert folded(steps.graph(steps("Relu", steps("MatMul", x, steps.random(5, 6))))) == ["MatMulRelu"]


def test_a_sum_with_a_term_of_its_own_is_scaled() -> None:
    steps = Steps()
    x = steps("Mul", steps.input(4, 5), steps.random(1, 5))
    assert folded(steps.graph(steps("Affine", x, steps.random(5, 6), steps.random(6)))) == ["Affine"]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("groups", [1, 4])
def test_channels_are_scaled_before_windows(padding: str, groups: int) -> None:
    steps = Steps()
    x = steps("Times", steps.input(2, 5, 6, 4), steps.random(1, 1, 1, 4))
    y = steps("Conv2D", x, steps.random(3, 3, 4 // groups, 4), module=NN, strides=(1, 2, 2, 1), padding=padding)
    assert folded(steps.graph(y)) == ["Conv2D"]


@pytest.mark.parametrize("case", ["rows", "moved", "added", "groups", "input", "twice", "output", "other"])
def test_what_stays(case: str) -> None:
    """Scaled by rows; moved ahead of windows or a product; more channels than a group's; by an input; read twice."""
    steps = Steps()
    windows = {"strides": (1, 1, 1, 1), "padding": "SAME"}
    if case in ("moved", "groups"):
        x = steps.input(2, 5, 6, 4)
        moved = case == "moved"
        y = steps("Plus" if moved else "Times", x, steps.random(1, 1, 1, 4))
        y = steps("Conv2D", y, steps.random(3, 3, 4 if moved else 2, 6), module=NN, **windows)
        graph = steps.graph(y)
    else:
        x = steps.input(4, 5)
        by = (
            steps.input(1, 5)
            if case == "input"
            else steps.random(4 if case == "rows" else 1, 1 if case == "rows" else 5)
        )
        h = steps("Gelu", x) if case == "other" else steps("Sub" if case == "added" else "Mul", x, by)
        y = steps("MatMul", h, steps.random(5, 6))
        more = [steps("MatMul", h, steps.random(5, 6))] if case == "twice" else [h] if case == "output" else []
        graph = steps.graph(y, *more)
    assert AHEAD.run(graph) is graph


def test_sixteen_bits_stay() -> None:
    steps = Steps()
    x = steps("Mul", steps.input(4, 5, dtype="float16"), steps.random(1, 5, dtype="float16"))
    graph = steps.graph(steps("MatMul", x, steps.random(5, 6, dtype="float16")))
    assert AHEAD.run(graph) is graph


def test_rows_and_columns_of_which_there_is_one() -> None:
    """Both run with the only axis of the weights that has one place: only one of them can be it, and it stays."""
    steps = Steps()
    x = steps("Mul", steps.input(1, 1), steps.random(1, 1))
    assert folded(steps.graph(steps("MatMul", x, steps.random(1, 4)))) == ["MulMatMul"]
    steps = Steps()
    x = steps("Times", steps.input(1, 1, 1, 1), steps.random(1, 1, 1, 1))
    y = steps("Conv2D", x, steps.random(1, 1, 1, 3), module=NN, strides=(1, 1, 1, 1), padding="SAME")
    folded(steps.graph(y))


CHAINS = int(os.environ.get("OPGEN_GRAPHS", 12))


@pytest.mark.parametrize("number", range(CHAINS))
def test_random_chains(number: int) -> None:
    """Steps by constants before products, some of which can be folded."""
    print(f"OPGEN_SEED={SEED}")
    rng = random.Random(SEED * 100 + number)
    steps = Steps()
    rows, depth = rng.randint(1, 5), rng.choice((1, 3, 8))
    x = steps.input(rows, depth)
    for _ in range(rng.randint(1, 3)):
        shape = (rng.choice((1, 1, 1, rows)), rng.choice((1, depth)))
        x = steps(rng.choice(("Mul", "Add", "Sub", "Div")), x, steps.random(*shape, seed=rng.randint(0, 9)))
    if rng.random() < 0.2:
        x = steps("Relu", x)
    folded(steps.graph(steps("MatMul", x, steps.random(depth, 4))))


def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were terms left out, the chains above would say so."""
    monkeypatch.setattr(ahead, "is_number", lambda *_: True)
    steps = Steps()
    x = steps("Sub", steps("Mul", steps.input(4, 5), steps.random(1, 5)), steps.random(1, 5))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        folded(steps.graph(steps("MatMul", x, steps.random(5, 6))))


@campaign(40)
def test_random_graphs(graph: Graph) -> None:
    assert_folds(AHEAD, graph)
