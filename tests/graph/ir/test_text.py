"""A graph printed and parsed is the same graph."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from opgen.diagnostics import DiagnosticError
from opgen.dtypes import FLOAT32
from opgen.grad import gradient
from opgen.graph.ir.bound import make_node
from opgen.graph.ir.nodes import Constant, Data, Graph, Value, op_of
from opgen.graph.ir.text import data_of, parse_graph, print_graph
from tests.graph.random_graphs import MODULE, campaign

SCALE = op_of(MODULE, MODULE.op("Halve"))


@campaign(80)
def test_parse_undoes_print(graph: Graph) -> None:
    assert parse_graph(print_graph(graph), data_of(graph)) == graph


def odd_graph() -> Graph:
    """Names that are no words, numbers of every kind, two ops of one name, a gradient, a constant."""
    x = Value('/a.0/b:1 "q" #\n', FLOAT32, (2, 0))
    y = Value("inf", FLOAT32, (2, 2))
    other = op_of(MODULE, replace(MODULE.op("Halve"), doc='Ends\nin "quotes".'))
    adjoint = op_of(MODULE, gradient(MODULE, MODULE.op("Centre"), "x"))
    first, made = make_node("n 1", SCALE, [x], ["op"], {"factor": -0.0}, origin='file "m", node #3')
    second, more = make_node("n2", other, made, ["graph"], {"factor": math.inf})
    third, most = make_node("n3", SCALE, more, ["]"], {"factor": math.nan})
    fourth, last = make_node("n4", adjoint, [y, y][: len(adjoint.spec.tensors)], ["d"])
    values = (*made, *more, *most, *last)
    elements = Data(np.array([[1, 2], [3, 4]], np.float32))
    return Graph(
        "g", (x,), (Constant(y, elements),), values, (first, second, third, fourth), ("]", "]", "inf"), ("1", "}", "")
    )


def test_names_numbers_and_ops_of_one_name() -> None:
    graph = odd_graph()
    text = print_graph(graph)
    again = parse_graph(text, data_of(graph))
    assert again == graph
    assert [n.origin for n in again.nodes] == [n.origin for n in graph.nodes]
    assert "op Halve.2:" in text
    assert math.copysign(1, float(str(again.nodes[0].attributes[0][1]))) == -1


def test_the_text_of_a_small_graph() -> None:
    x = Value("x", FLOAT32, (2, 3))
    node, made = make_node("scaled", SCALE, [x], ["y"], {"factor": 2}, origin="a file, node 7")
    text = print_graph(Graph("small", (x,), (), made, (node,), ("y",), ("result",)))
    assert (
        text
        == '''\
graph small {
  input x: float32[2, 3]
  scaled: y: float32[2, 3] = Halve<T = float32>(x) {factor = 2.0} at "a file, node 7"
  output y as result
}

op Halve:
  op Halve {
    """Elementwise, of two dimensions, with an attribute."""

    type T in {float32, float64}

    input x: T[a, b] """Values."""
    attr factor: float = 0.5 """What each is multiplied by."""
    output y: T[a, b] """The products."""

    y[i, j] = T(factor) * x[i, j]
  }
'''
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("graph {", "1:7: error[graph-syntax]: expected the name of a graph"),
        ("graph g {\n  input x float32[2]\n}", "2:11: error[graph-syntax]: expected ':'"),
        ("graph g {\n  input x: float31[2]\n}", "2:12: error[graph-syntax]: expected a scalar type"),
        ("graph g {\n  input x: float32[2.5]\n}", "2:20: error[graph-syntax]: expected an integer"),
        (
            "graph g {\n  constant x: int32[] = 12ab\n}",
            "2:25: error[graph-syntax]: no constant of that digest is given",
        ),
        ("graph g {\n  n: y: int32[] = Op(x)\n}", "2:19: error[graph-syntax]: no op of that name follows the graph"),
        ("graph g {\n  output y as\n}", "2:14: error[graph-syntax]: expected the name of an output"),
        ("graph g {\n  output y", "2:3: error[graph-syntax]: expected '}'"),
        ("graph g {\n  output y z\n}", "2:12: error[graph-syntax]: expected the end of the line"),
        ("graph g {\n}\nops", "3:1: error[graph-syntax]: expected 'op'"),
        ("graph g {\n}\nop X:\n", "error[graph-syntax]: <graph>, op X: 0 ops, expected 1"),
        (
            'graph g {\n  "\\q: int32[]\n}',
            "2:3: error[graph-syntax]: expected a text in double quotes",
        ),
    ],
)
def test_mistakes(line: str, expected: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse_graph(line, {})
    assert str(caught.value).splitlines()[0].removeprefix("<graph>:") == expected
