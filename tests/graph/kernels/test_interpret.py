"""What a graph means, told by numpy; compiled kernels compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.diagnostics import InternalError
from opgen.dtypes import FLOAT32, INT32
from opgen.graph.ir.bound import CallError, make_node
from opgen.graph.ir.nodes import Constant, Data, Graph, Value, op_of
from opgen.graph.kernels.interpret import compiled, interpret, interpret_all
from tests.graph.random_graphs import MODULE, campaign, random_inputs

X = Value("x", FLOAT32, (2, 3))
W = Constant(Value("w", FLOAT32, (3, 4)), Data(np.arange(12, dtype=np.float32).reshape(3, 4)))
PRODUCT, MADE = make_node("product", op_of(MODULE, MODULE.op("Product")), [X, W.value], ["h"])
PARTS, LAST = make_node("parts", op_of(MODULE, MODULE.op("Parts")), MADE, ["left", "right"])
GRAPH = Graph("g", (X,), (W,), (*MADE, *LAST), (PRODUCT, PARTS), ("right", "x", "left", "right"))


def test_nodes_run_in_order() -> None:
    x = np.array([[1, 2, 3], [0, -1, 1]], np.float32)
    right, again, left, same = interpret(GRAPH, {"x": x})
    product = x @ W.data.array
    np.testing.assert_array_equal(left, product[:, :2])
    np.testing.assert_array_equal(right, product[:, 2:])
    assert again is x
    assert same is right


def test_values_of_a_sizes_input_and_layouts() -> None:
    refill, made = make_node(
        "refill", op_of(MODULE, MODULE.op("Refill")), [Value("n", INT32, (1,))], ["y"], {"shape": [2, 3]}
    )
    graph = Graph("g", (Value("n", INT32, (1,)),), (), made, (refill,), ("y",))
    (y,) = interpret(graph, {"n": np.array([7], np.int32)})
    np.testing.assert_array_equal(y, np.full((2, 3), 7, np.int32))
    x = Value("x", FLOAT32, (4, 2, 3))
    twice, made = make_node("twice", op_of(MODULE, MODULE.op("Images")), [x], ["y"], {"order": "CHW", "kind": "DOUBLE"})
    graph = Graph("g", (x,), (), made, (twice,), ("y",))
    given = random_inputs(graph)
    np.testing.assert_array_equal(interpret(graph, given)[0], 2 * given["x"])


@campaign(12)
def test_compiled_kernels_compute_the_same(graph: Graph) -> None:
    """The arrays are small integers and halves: sums are exact, so that their order does not count."""
    inputs = random_inputs(graph)
    expected, found = interpret_all(graph, inputs), interpret_all(graph, inputs, compiled)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def test_inputs_that_do_not_fit() -> None:
    with pytest.raises(InternalError, match=r"^input 'x' is missing$"):
        interpret(GRAPH, {})
    with pytest.raises(InternalError, match=r"^input 'x' is float64\[2, 3\], expected x: float32\[2, 3\]$"):
        interpret(GRAPH, {"x": np.zeros((2, 3))})


def test_what_an_op_does_not_take_is_said_in_its_words() -> None:
    op = op_of(MODULE, MODULE.op("Cut"))
    with pytest.raises(CallError, match=r"^Cut: argument 'x': expected a multiple of 4 elements, given shape \[6\]$"):
        make_node("cut", op, [Value("x", FLOAT32, (6,))], ["y"], {"width": 4})
    with pytest.raises(CallError, match=r"^Cut: argument 'width': expected a 32-bit integer >= 1"):
        make_node("cut", op, [Value("x", FLOAT32, (6,))], ["y"], {"width": 0})
    with pytest.raises(CallError, match=r"^Refill: argument 'shape': expected a list of integers, given nothing$"):
        make_node("refill", op_of(MODULE, MODULE.op("Refill")), [Value("n", INT32, (1,))], ["y"])
