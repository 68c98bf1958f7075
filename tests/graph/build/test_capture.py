"""Functions that call generated functions become graphs of these calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opgen
from generated import onnx_ops
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.dtypes import FLOAT32, FLOAT64, INT32
from opgen.graph.build.capture import trace
from opgen.graph.ir.bound import Kind
from opgen.graph.ir.nodes import Graph
from opgen.graph.ir.verify import verify
from opgen.graph.kernels.interpret import interpret
from opgen.runtime.call.recording import CaptureError, Symbol
from opgen.spec.call.arguments import CallError
from tests.graph.random_graphs import campaign, random_inputs, same_bits
from tests.support.graphs import OPS, replayed

NN = opgen.load(Path(__file__).parents[3] / "specs" / "nn_ops.op")
X: dict[str, Kind] = {"x": (FLOAT32, (2, 3))}




@campaign(60)
def test_a_function_that_does_what_a_graph_says_is_captured_as_that_graph(graph: Graph) -> None:
    found = trace(replayed(graph), "replayed", {v.name: (v.dtype, v.shape) for v in graph.inputs})
    verify(found)
    inputs = random_inputs(graph)
    for one, other in zip(interpret(graph, inputs), interpret(found, inputs), strict=True):
        assert same_bits(one, other)
    fed = {v.name for v in graph.inputs}
    nodes = []
    for node in graph.nodes:  # what depends on no element of an input is worked out at once
        tensors = zip(node.op.spec.tensors, node.inputs, strict=True)
        if fed & {name for t, name in tensors if not t.shape_only}:
            fed |= set(node.outputs)
            nodes.append(node)
    assert [(n.op, n.types, repr(n.attributes)) for n in found.nodes] == [
        (n.op, n.types, repr(n.attributes)) for n in nodes
    ]


def test_names_constants_and_places() -> None:
    factor = np.full((2, 3), 2, np.float32)

    def double(x: Any) -> Any:
        return OPS.add(OPS.add(x, factor), factor)

    graph = trace(double, "double", X)
    factor[:] = 5  # a constant is what it was
    assert [n.name for n in graph.nodes] == ["add", "add.2"]
    assert [n.inputs for n in graph.nodes] == [("x", "constant"), ("add", "constant")]
    assert all(re.fullmatch(r"test_capture\.py:\d+", n.origin) for n in graph.nodes)
    (y,) = interpret(graph, {"x": np.ones((2, 3), np.float32)})
    np.testing.assert_array_equal(y, np.full((2, 3), 5, np.float32))


def test_results_that_are_inputs_and_constants() -> None:
    graph = trace(lambda x: (x, np.float64(3), OPS.turn(x), x), "several", X)
    assert graph.outputs == ("x", "constant", "turn", "x")
    assert graph.output_names == ("result.0", "result.1", "result.2", "result.3")
    assert graph.value["constant"].dtype == FLOAT64


def test_symbols_have_types_and_shapes() -> None:
    def by_shape(x: Any) -> Any:
        assert (x.shape, x.ndim, x.size, len(x), x.dtype) == ((2, 3), 2, 6, 2, np.float32)
        for _ in range(x.shape[0]):
            x = OPS.turn(x)
        return x

    assert len(trace(by_shape, "by_shape", X).nodes) == 2


def test_sizes_and_attributes_are_as_the_call_has_them() -> None:
    def back(g: Any) -> Any:
        weights = np.ones((3, 3, 4, 8), np.float32)
        return NN.conv2d_backprop_input(np.array([1, 6, 6, 4], np.int32), weights, g, (1, 1, 1, 1), b"SAME")

    (node,) = trace(back, "back", {"g": (FLOAT32, (1, 6, 6, 8))}).nodes
    given = dict(node.attributes)
    assert given["input_sizes"] == (1, 6, 6, 4)
    assert (given["strides"], given["padding"], given["data_format"]) == ((1, 1, 1, 1), "SAME", "NHWC")


def test_a_call_that_does_not_fit_is_refused_as_always() -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        trace(lambda x: OPS.add(x, np.ones((2, 3))), "f", X)
    with pytest.raises(ArgumentTypeError) as direct:
        OPS.add(np.ones((2, 3), np.float32), np.ones((2, 3)))
    assert str(caught.value) == str(direct.value)
    with pytest.raises(ArgumentValueError, match=r"Turn: argument 'x': expected a tensor of rank 2"):
        trace(lambda x: OPS.turn(OPS.row_sum(x)), "f", X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x else None,
        lambda x: np.asarray(x),
        lambda x: float(x),
        lambda x: list(x),
        lambda x: x[0],
        lambda x: OPS.turn(np.abs(np.asarray(x))),
    ],
)
def test_values_are_not_there(function: Callable[[Any], Any]) -> None:
    with pytest.raises(CaptureError, match=r"asks for the values of a tensor \(float32\[2, 3\]\)"):
        trace(function, "f", X)


def test_what_cannot_be_captured_is_said() -> None:
    with pytest.raises(CaptureError, match=r"^Turn: 'out' cannot be given"):
        trace(lambda x: OPS.turn(x, out=np.empty((3, 2), np.float32)), "f", X)
    with pytest.raises(CaptureError, match=r"^f returns a str \(result\.1\), which is no tensor"):
        trace(lambda x: (x, "y"), "f", X)
    kept: list[Symbol] = []
    trace(lambda x: kept.append(x) or x, "f", X)
    with pytest.raises(CaptureError, match="a symbol outlives the function"):
        OPS.turn(kept[0])
    with pytest.raises(CaptureError, match="a symbol is used outside the function"):
        trace(lambda x: OPS.add(x, kept[0]), "g", X)
    with pytest.raises(CaptureError, match="a symbol outlives the function"):
        kept[0] + np.ones((2, 3), np.float32)
    with pytest.raises(TypeError):
        kept[0] + "text"


def test_arithmetic_takes_numbers_and_arrays_on_either_side() -> None:
    def function(x: Any) -> Any:
        return np.float32(2) * x / (3 - x) + np.full((2, 1), 4, np.float32) - 1 + -x

    graph = trace(function, "f", X)
    x = np.arange(6, dtype=np.float32).reshape(2, 3) / 8
    (found,) = interpret(graph, {"x": x})
    np.testing.assert_allclose(found, 2 * x / (3 - x) + 3 - x, rtol=1e-6)
    with pytest.raises(CaptureError, match=r"^0\.5 is no int32"):
        trace(lambda x: x * 0.5, "f", {"x": (INT32, (2, 3))})
    with pytest.raises(CallError, match="Over: argument 'x'"):
        trace(lambda x: x / 2, "f", {"x": (INT32, (2, 3))})


def test_products_of_matrices_and_powers() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.random((2, 3, 4)), rng.random((4, 5))
    kinds = {"x": (FLOAT64, (2, 3, 4)), "w": (FLOAT64, (4, 5))}
    graph = trace(lambda x, w: (x @ w) ** 2, "f", kinds)
    np.testing.assert_allclose(interpret(graph, {"x": x, "w": w})[0], (x @ w) ** 2, rtol=1e-12)
    graph = trace(lambda x, w: 2 ** (np.ones((3, 3)) @ x @ w), "f", kinds)
    np.testing.assert_allclose(interpret(graph, {"x": x, "w": w})[0], 2 ** (np.ones((3, 3)) @ x @ w), rtol=1e-12)
    for vectors in (lambda x, w: x @ np.ones(4), lambda x, w: np.ones(4) @ w):
        found = interpret(trace(vectors, "f", kinds), {"x": x, "w": w})[0]
        np.testing.assert_allclose(found, vectors(x, w), rtol=1e-12)
    with pytest.raises(CallError, match="Matrices: argument 'y': expected"):
        trace(lambda x, w: x @ x, "f", kinds)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: np.exp(x), "numpy.exp is called with"),
        (lambda x: np.sum(x), "numpy.sum is called with"),
        (lambda x: np.concatenate([x, x]), "numpy.concatenate is called with"),
        (lambda x: np.add.reduce(x), "numpy.add is called with"),
        (lambda x: np.add(x, x, out=np.empty((2, 3), np.float32)), "numpy.add is called with"),
        (lambda x: x.sum(), "'sum' is asked of"),
        (lambda x: x.T, "'T' is asked of"),
        (lambda x: x > 0, "a comparison is asked of"),
        (lambda x: x == 0, "a comparison is asked of"),
        (lambda x: np.ones(3, np.float32) < x, "numpy.less is called with"),
    ],
)
def test_what_is_called_with_a_tensor_is_named(function: Callable[[Any], Any], said: str) -> None:
    rest = "a tensor of a function that is compiled (float32[2, 3]); it takes generated functions, and + - * / ** @"
    with pytest.raises(CaptureError, match=f"^{re.escape(f'{said} {rest}')}$"):
        trace(function, "f", X)


def test_a_tensor_is_asked_for_what_it_may_have() -> None:
    def function(x: Any) -> Any:
        assert not hasattr(x, "cuda")
        assert not hasattr(x, "__dlpack__")
        assert x is not None
        assert x in [None, x]
        assert len({x, x}) == 1
        return x + np.ones(3, np.float32)

    assert [n.name for n in trace(function, "f", X).nodes] == ["plus"]


def test_what_depends_on_shapes_alone_is_known() -> None:
    def function(x: Any) -> Any:
        shape = onnx_ops.shape_of(x)
        assert isinstance(shape, np.ndarray)
        turned = onnx_ops.gather(shape, [1, 0], axis=0)
        return onnx_ops.reshape(x, turned), onnx_ops.eye_like(x)

    graph = trace(function, "f", X)
    assert [n.op.spec.name for n in graph.nodes] == ["Reshape"]
    assert [graph.value[o].shape for o in graph.outputs] == [(3, 2), (2, 3)]
    with pytest.raises(ArgumentValueError, match="'shape': expected numbers that are known before the call runs"):
        trace(lambda x: onnx_ops.reshape(x, onnx_ops.cast(x, to="int64")), "f", X)
