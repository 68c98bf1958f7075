"""What tells programs apart in the cache: the mathematics of ops, not their names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import opgen
from opgen.graph.compiled.compiled import CompiledModel
from opgen.graph.ir.nodes import Graph, op_of
from opgen.graph.program.program import key_of
from opgen.spec.loading import load_text
from opgen.spec.unparse import write_op
from tests.graph.random_graphs import MODULE
from tests.graph.steps import Steps


def other_mathematics(graph: Graph) -> Graph:
    """The graph with an op of the same name and interface that adds where this one multiplies."""
    (node,) = graph.nodes
    text = write_op(MODULE, node.op.spec).replace("T(factor) * x", "T(factor) + x")
    module = load_text(text)
    return replace(graph, nodes=(replace(node, op=op_of(module, module.ops[0])),))


def test_ops_of_one_name_are_not_one_program() -> None:
    steps = Steps()
    scaled = steps("Halve", steps.input(2, 3), module=MODULE, factor=2.0)
    graph = steps.graph(scaled)
    other = other_mathematics(graph)
    assert key_of(graph, "all") != key_of(other, "all")
    x = np.full((2, 3), 5, np.float32)
    assert CompiledModel.of_graph(graph)(x).tolist() == (2 * x).tolist()
    assert CompiledModel.of_graph(other)(x).tolist() == (2 + x).tolist()


def test_programs_that_may_be_computed_otherwise_are_others() -> None:
    steps = Steps()
    graph = steps.graph(steps("Halve", steps.input(2, 3), module=MODULE, factor=2.0))
    keys = []
    for mode in ("default", "off", "all"):
        with opgen.algorithms(mode):
            keys.append(key_of(graph, "all"))
    assert len(set(keys)) == 3
