"""Small graphs, graphs as functions, and what must hold of composed ops and folded graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import opgen
from opgen.graph.ir.nodes import Graph, Node
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes.base import Pass, Report
from opgen.spec.loading import load_text
from opgen.spec.unparse import write_op
from tests.graph.random_graphs import assert_same, random_inputs
from tests.graph.steps import Steps

OPS = opgen.load(Path(__file__).parents[1] / "graph" / "ops.op")


def replayed(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """A function of the graph's inputs that calls its nodes' ops."""

    def function(*inputs: Any) -> tuple[Any, ...]:
        values = dict(zip((v.name for v in graph.inputs), inputs, strict=True))
        values |= {name: constant.data.array for name, constant in graph.constant.items()}
        for node in graph.nodes:
            spec = node.op.spec
            tensors = {t.name: values[name] for t, name in zip(spec.tensors, node.inputs, strict=True)}
            given = {name: list(v) if isinstance(v, tuple) else v for name, v in node.attributes}
            results = getattr(OPS, spec.function_name)(**tensors, **given)
            values |= zip(node.outputs, results if isinstance(results, tuple) else (results,), strict=True)
        return tuple(values[name] for name in graph.outputs)

    return function


def assert_reads_back(node: Node) -> None:
    """Asserts that an op prints as a spec that is fine, and is that op."""
    text = write_op(node.op.module, node.op.spec)
    module = load_text(text, "composed.op")
    assert module.ops == (node.op.spec,), text
    assert set(module.functions) == set(node.op.functions)


def assert_folds(each: Pass, graph: Graph) -> None:
    """Where nothing is folded nothing changes; sums of small integers and halves are exact."""
    report = Report()
    found = each.run(graph, report)
    inputs = random_inputs(graph)
    if report.notes:
        for a, b in zip(interpret(found, inputs), interpret(graph, inputs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    else:
        assert_same(interpret(found, inputs), interpret(graph, inputs))


def chain(length: int, rows: int = 5, columns: int = 7) -> Graph:
    """Additions one after the other."""
    steps = Steps()
    x = steps.input(rows, columns)
    y = steps.input(1, columns)
    for _ in range(length):
        x = steps("Add", x, y)
    return steps.graph(x)
