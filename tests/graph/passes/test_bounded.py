"""What is folded into constants keeps the bound on the error that it has node by node."""

from __future__ import annotations

import os

import numpy as np
import pytest

from opgen.graph.ir.nodes import Array, Graph
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes.base import Report, run_passes
from opgen.graph.passes.standard import STANDARD
from tests.graph.random_graphs import SEED
from tests.graph.steps import Steps

UNIT = 2.0**-24
CHAINS = int(os.environ.get("OPGEN_GRAPHS", 60))
LEAST, MOST = 2.0 ** (-126 + 32), 2.0 ** (127 - 32)
"""The magnitudes for which the bound is said: those that a fold keeps in range."""


def exact(graph: Graph, x: Array) -> tuple[Array, Array] | None:
    """The result by float64, node by node, and a bound on the error of float32; None if some number has another range.

    A product, quotient or sum adds a rounding to the errors of its operands; a sum of n terms n of its magnitudes.
    """
    known = {c.value.name: (c.data.array.astype(np.float64), 0.0) for c in graph.constants}
    known[graph.inputs[0].name] = x.astype(np.float64), np.zeros(x.shape)
    for node in graph.nodes:
        (a, e), (b, _) = (known[name] for name in node.inputs)
        match node.op.spec.name:
            case "Mul":
                y, error = a * b, e * np.abs(b)
            case "Div":
                y, error = a / b, e / np.abs(b)
            case "Add":
                y, error = a + b, e
            case "Sub":
                y, error = a - b, e
            case "MatMul":
                y, error = a @ b, e @ np.abs(b) + len(b) * UNIT * (np.abs(a) @ np.abs(b))
        known[node.outputs[0]] = y, error + UNIT * np.abs(y)
        if not np.all((y == 0) | (np.abs(y) >= LEAST) & (np.abs(y) <= MOST)):
            return None
    return known[graph.outputs[0]]


def chain(rng: np.random.Generator, most: float) -> tuple[Graph, Array]:
    """Steps by constants up to 10**most before and after a product, and elements that cancel the first."""
    steps = Steps()
    rows, depth, columns = (int(n) for n in rng.integers(1, 4, 3))

    def constant(*shape: int) -> str:
        drawn = rng.choice((-1, 1)) * rng.uniform(1, 2, shape) * 10 ** rng.uniform(-most, most)
        return steps.constant(drawn.astype(np.float32))

    x = value = steps.input(rows, depth)
    for _ in range(rng.integers(0, 3)):
        value = steps(str(rng.choice(("Mul", "Div", "Add", "Sub"))), value, constant(1, depth))
    value = steps("MatMul", value, constant(depth, columns))
    for _ in range(rng.integers(0, 4)):
        value = steps(str(rng.choice(("Mul", "Div", "Add", "Sub"))), value, constant(1, columns))
    graph = steps.graph(value)
    first = graph.constants[0].data.array
    near = first if first.shape == (1, depth) else np.ones((1, depth), np.float32)
    return graph, (near * (1 + rng.normal(0, 1e-4, (rows, depth)))).astype(np.float32) if x else near


@pytest.mark.parametrize("most", [1, 6, 15])
def test_random_chains(most: float) -> None:
    print(f"OPGEN_SEED={SEED}")
    folded = seen = 0
    for number in range(CHAINS):
        graph, x = chain(np.random.default_rng([SEED, number]), most)
        found = exact(graph, x)
        if found is None:
            continue
        report = Report()
        made = run_passes(graph, STANDARD, report)
        folded += any(n.work in ("affine", "ahead") and "has what" in n.text for n in report.notes)
        seen += 1
        wanted, bound = found
        (y,) = interpret(made, {graph.inputs[0].name: x})
        # A fold adds a rounding for each of at most 6 steps to those that the sum has, and a term is at most the sum of
        # what it was added to and what came of that: twice the bound of single steps, and 6 roundings more.
        wrong = np.abs(y - wanted) > 8 * bound
        assert not wrong.any(), f"chain {number} of seed {SEED}: {y} for {wanted}, off by more than {8 * bound}"
    assert seen
    assert folded or most > 6


def product_by(w: float, *steps_after: tuple[str, float]) -> Graph:
    steps = Steps()
    y = steps("MatMul", steps.input(2, 2), steps.constant(np.eye(2, dtype=np.float32) * np.float32(w)))
    for op, number in steps_after:
        y = steps(op, y, steps.constant(np.full((1, 2), number, np.float32)))
    return steps.graph(y)


@pytest.mark.parametrize(
    ("x", "w", "after", "wanted"),
    [
        (1e-20, 1e30, [("Mul", 1e10)], 1e20),
        (1e30, 1e-30, [("Mul", 1e-30)], 1e-30),
        (3e38, 2.0, [("Mul", 0.0)], np.nan),
        (1e20, 1.0, [("Mul", 1e-30), ("Mul", 1e-15), ("Mul", 1e25), ("Mul", 1e20)], 1e20),
        (2.0, 1e-38, [("Mul", 0.25), ("Mul", 4.0)], 2e-38),
    ],
)
def test_what_leaves_the_range_stays(x: float, w: float, after: list[tuple[str, float]], wanted: float) -> None:
    graph, report = product_by(w, *after), Report()
    with np.errstate(all="ignore"):
        made = run_passes(graph, STANDARD, report)
        (y,) = interpret(made, {graph.inputs[0].name: np.full((2, 2), x, np.float32)})
    np.testing.assert_allclose(y[0, 0], wanted, rtol=1e-6)
    assert "stays: its constants would leave the range of their type" in {n.text for n in report.notes}


def test_a_normalisation_after_windows_is_folded() -> None:
    """Statistics as of trained models: variances near 0 and factors of many sizes."""
    rng = np.random.default_rng(SEED)
    steps = Steps()
    y = steps("MatMul", steps.input(2, 8), steps.constant(rng.normal(0, 0.05, (8, 16)).astype(np.float32)))
    deviation = np.sqrt(10 ** rng.uniform(-9, 1, (1, 16)) + 1e-5).astype(np.float32)
    for op, numbers in (
        ("Sub", rng.normal(0, 1, (1, 16))),
        ("Div", deviation),
        ("Mul", rng.uniform(-2, 2, (1, 16))),
        ("Add", rng.normal(0, 1, (1, 16))),
    ):
        y = steps(op, y, steps.constant(numbers.astype(np.float32)))
    assert [n.op.spec.name for n in run_passes(steps.graph(y), STANDARD).nodes] == ["MatMulScaleAndMove"]
