"""Results with composed subscripts, put together with all that reads them: random chains, bit for bit."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from opgen.grad.load import load
from opgen.graph.fusion.compose import compose
from opgen.graph.fusion.unify import CannotComposeError
from opgen.graph.ir.bound import CallError
from opgen.graph.ir.nodes import Graph, Node
from opgen.graph.ir.replace import outside, with_nodes
from opgen.graph.ir.verify import verify
from opgen.graph.kernels.interpret import interpret
from tests.graph.random_graphs import SEED, assert_same
from tests.graph.steps import Steps

OPS = load(Path(__file__).parents[1] / "composed.op")
MAKERS = ("MoreRows", "MoreColumns", "Tiles", "Plain")
READERS = ("Window", "Turned", "Running", "InOrder", "Moved", "Fetched")
CHAINS = int(os.environ.get("OPGEN_GRAPHS", 72))


def _chain(rng: np.random.Generator, dtype: str, reader: str) -> Graph:
    """One to three ops that make more of a matrix, and one that reads what they make."""
    steps = Steps()
    x = steps.input(*(int(n) for n in rng.integers(1, 5, 2)), dtype=dtype)
    for maker in rng.choice(MAKERS, rng.integers(1, 4)):
        x = steps(maker, x, module=OPS, **({} if maker == "Plain" else {"times": int(rng.integers(1, 4))}))
    given = {"step": int(rng.integers(1, 4)), "before": int(rng.integers(0, 4))}
    more = []
    if reader == "Window":
        more.append(steps.input(int(rng.integers(1, 5)), dtype=dtype))
    elif reader == "Fetched":
        more.append(steps.input(int(rng.integers(1, 5)), dtype="int64"))
    attributes = given if reader in ("Window", "Turned") else {}
    return steps.graph(*steps.several(reader, x, *more, module=OPS, **attributes))


def _whole(graph: Graph) -> Node | None:
    try:
        return compose(graph, graph.nodes, outside(graph, graph.nodes))
    except CannotComposeError:
        return None


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("reader", READERS)
def test_random_chains(reader: str, dtype: str) -> None:
    """All numbers are below 0, and some weights infinite: a 0 for what is left out shows in each reduction."""
    print(f"OPGEN_SEED={SEED}")
    composed = 0
    for number in range(max(1, CHAINS // len(READERS))):
        rng = np.random.default_rng([SEED, number])
        try:
            graph = _chain(rng, dtype, reader)
        except CallError:
            continue
        if (whole := _whole(graph)) is None:
            continue
        composed += 1
        inputs = {v.name: -rng.integers(1, 4, v.shape).astype(v.dtype.name) for v in graph.inputs}
        if reader == "Fetched":
            inputs["x1"] = np.zeros_like(inputs["x1"])
        if reader == "Window" and dtype == "float32":
            inputs["x1"][rng.random(inputs["x1"].shape) < 0.3] = np.inf
        changed = verify(with_nodes(graph, {n.name: whole for n in graph.nodes}), "compose")
        try:
            assert_same(interpret(changed, inputs), interpret(graph, inputs))
        except AssertionError as error:
            raise AssertionError(f"chain {number} of seed {SEED}: {[n.op.spec.name for n in graph.nodes]}") from error
    assert composed or reader == "Fetched"
