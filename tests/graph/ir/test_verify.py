"""Every invariant of graphs: the verifier finds a graph that breaks it, and says which node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opgen.diagnostics import InternalError
from opgen.dtypes import FLOAT32, FLOAT64
from opgen.graph.ir.bound import make_node
from opgen.graph.ir.nodes import Constant, Data, Graph, Node, Value, op_of
from opgen.graph.ir.verify import verify
from opgen.spec.model.model import Number, Operation, ShapeLet, Symbol
from tests.graph.random_graphs import MODULE, campaign

X = Value("x", FLOAT32, (2, 3))
W = Constant(Value("w", FLOAT32, (3, 4)), Data(np.ones((3, 4), np.float32)))
PRODUCT, MADE = make_node("product", op_of(MODULE, MODULE.op("Product")), [X, W.value], ["h"])
SCALED, LAST = make_node("scaled", op_of(MODULE, MODULE.op("Halve")), MADE, ["y"])
GRAPH = Graph("g", (X,), (W,), (*MADE, *LAST), (PRODUCT, SCALED), ("y", "h"), ("result", "sums"))


@campaign(100)
def test_random_graphs_are_graphs(graph: Graph) -> None:
    assert verify(graph) is graph


def with_node(**changes: object) -> Graph:
    """The graph with its first node changed."""
    return replace(GRAPH, nodes=(replace(PRODUCT, **changes), SCALED))


BROKEN: list[tuple[Graph, str]] = [
    (replace(GRAPH, inputs=(X, X)), "value 'x' is there more than once"),
    (replace(GRAPH, inputs=(X, replace(X, name="h"))), "value 'h' is there more than once"),
    (replace(GRAPH, nodes=(PRODUCT, replace(SCALED, name="product"))), "node 'product' is there more than once"),
    (with_node(name=""), "a name is empty"),
    (replace(GRAPH, values=(*LAST, *MADE)), "the values are not the nodes' results in order"),
    (replace(GRAPH, outputs=("y", "z")), "nothing makes value 'z'"),
    (with_node(inputs=("x", "v")), "nothing makes value 'v'"),
    (replace(GRAPH, output_names=("one", "one")), "output 'one' is there more than once"),
    (replace(GRAPH, output_names=("one",)), "2 outputs have 1 names"),
    (replace(GRAPH, inputs=(X, Value("n", FLOAT32, (-1,)))), "value 'n: float32[-1]' has a negative size"),
    (
        replace(GRAPH, nodes=(SCALED, PRODUCT), values=(*LAST, *MADE)),
        "node 'scaled' takes 'h' before it is made",
    ),
    (
        replace(GRAPH, constants=(replace(W, data=Data(np.ones((4, 3), np.float32))),)),
        "constant 'w: float32[3, 4]' holds float32[4, 3]",
    ),
    (
        replace(GRAPH, constants=(replace(W, data=Data(np.ones((3, 4)))),)),
        "constant 'w: float32[3, 4]' holds float64[3, 4]",
    ),
    (with_node(types=()), "node 'product': types () are not those of 'Product'"),
    (with_node(types=(("T", "bool"),)), "node 'product': 'Product' does not take bool for T"),
    (
        with_node(types=(("T", "float64"),)),
        "node 'product': Product: argument 'x': expected a tensor of float64, given float32",
    ),
    (with_node(inputs=("x",)), "node 'product': Product: argument 'Product': expected 2 tensors, given 1"),
    (
        with_node(inputs=("x", "x")),
        "node 'product': Product: argument 'y': expected dimension 0 to be 3 (depth), given shape [2, 3]",
    ),
    (
        with_node(attributes=(("factor", 1.0),)),
        "node 'product': Product: argument 'factor': expected no such argument, given 1.0",
    ),
    (
        replace(GRAPH, nodes=(PRODUCT, replace(SCALED, attributes=()))),
        "node 'scaled': attributes () are not those of 'Halve', all and in order",
    ),
    (
        replace(GRAPH, nodes=(PRODUCT, replace(SCALED, attributes=(("factor", 1),)))),
        "node 'scaled': attributes (('factor', 1),) are not those of 'Halve', all and in order",
    ),
    (
        replace(GRAPH, values=(replace(MADE[0], shape=(2, 5)), *LAST)),
        "node 'product': its result is float32[2, 4], not 'h: float32[2, 5]'; "
        "node 'scaled': its result is float32[2, 5], not 'y: float32[2, 4]'",
    ),
    (
        replace(GRAPH, values=(*MADE, replace(LAST[0], dtype=FLOAT64))),
        "node 'scaled': its result is float32[2, 4], not 'y: float64[2, 4]'",
    ),
    (
        replace(
            GRAPH, nodes=(PRODUCT, replace(SCALED, outputs=("y", "z"))), values=(*MADE, *LAST, Value("z", FLOAT32, ()))
        ),
        "node 'scaled': it makes 1 results, not 2",
    ),
]


def test_an_op_that_speaks_of_what_it_does_not_have() -> None:
    op = PRODUCT.op.spec
    looped = replace(op, checks=(ShapeLet(("size",), Operation("+", Symbol("size"), Number(1))),))
    with pytest.raises(InternalError, match=r"^graph 'g': node 'product': 'Product' speaks of 'size' where that is"):
        verify(with_node(op=op_of(MODULE, looped)))


@pytest.mark.parametrize(("graph", "message"), BROKEN, ids=[m[:40] for _, m in BROKEN])
def test_broken_graphs_are_found(graph: Graph, message: str) -> None:
    with pytest.raises(InternalError) as caught:
        verify(graph, after="a pass")
    assert str(caught.value) == f"graph 'g' after 'a pass': {message}"


def test_the_graph_that_the_broken_ones_are_made_of_is_right() -> None:
    assert verify(GRAPH) is GRAPH
    assert isinstance(GRAPH.producer["y"], Node)
