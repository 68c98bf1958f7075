"""Gradients of graphs and of compiled functions, against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import opgen
from opgen.diagnostics.calls import ArgumentValueError
from opgen.dtypes import FLOAT32, FLOAT64, INT32
from opgen.graph.build.capture import trace
from opgen.graph.build.gradient import GradientError, gradient
from opgen.graph.ir.nodes import Graph
from opgen.graph.ir.text import data_of, parse_graph, print_graph
from opgen.graph.ir.verify import verify
from opgen.graph.kernels.interpret import compiled, interpret
from opgen.runtime.call.recording import CaptureError
from tests.graph.random_graphs import OPS as ALL
from tests.graph.random_graphs import campaign, graphs

OPS = opgen.load(Path(__file__).parents[1] / "ops.op")
NN = opgen.load(Path(__file__).parents[3] / "specs" / "nn_ops.op")
SMOOTH = ("Negate1", "Halve", "Add", "Multiply", "Scale", "Product", "RowSum", "Centre", "Turn")
STEP = 1e-6
X = np.arange(6, dtype=np.float64).reshape(2, 3) / 7


def in_float64(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """A function that computes what a graph does, all floats of 64 bits."""

    def function(*inputs: Any) -> tuple[Any, ...]:
        values = dict(zip((v.name for v in graph.inputs), inputs, strict=True))
        for name, c in graph.constant.items():
            values[name] = c.data.array.astype(np.float64) if c.value.dtype.is_float else c.data.array
        for node in graph.nodes:
            spec = node.op.spec
            tensors = {t.name: values[name] for t, name in zip(spec.tensors, node.inputs, strict=True)}
            values[node.outputs[0]] = getattr(OPS, spec.function_name)(**tensors, **dict(node.attributes))
        return tuple(values[name] for name in graph.outputs)

    return function


def slope(loss: Callable[..., float], inputs: list[Any], along: list[Any]) -> float:
    """The slope of a number in a direction."""
    ahead, behind = ([x + sign * STEP * d for x, d in zip(inputs, along, strict=True)] for sign in (1, -1))
    return (loss(*ahead) - loss(*behind)) / (2 * STEP)


@campaign(50, smooth=graphs([op for op in ALL if op.spec.name in SMOOTH], 12), number=st.integers(0, 99))
def test_the_slope_in_any_direction(graph: Graph, smooth: Graph, number: int) -> None:
    """Of a graph of ops that have slopes everywhere; those of the campaign need not."""
    graph = smooth
    rng = np.random.default_rng(number)
    inputs = [
        rng.standard_normal(v.shape) if v.dtype.is_float else rng.integers(-3, 4, v.shape).astype(v.dtype.name)
        for v in graph.inputs
    ]
    function = in_float64(graph)
    kinds = {v.name: (FLOAT64 if v.dtype.is_float else v.dtype, v.shape) for v in graph.inputs}
    wrt = [v.name for v in graph.inputs if v.dtype.is_float]
    whole = trace(function, "g", kinds)
    derived = verify(gradient(whole, wrt))
    seeds = [rng.standard_normal(s.shape) for s in derived.inputs[len(inputs) :]]
    given = dict(zip((v.name for v in derived.inputs), [*inputs, *seeds], strict=True))
    for value in derived.inputs:  # outputs of integers take seeds that count for nothing
        given[value.name] = given[value.name].astype(value.dtype.name)
    found = dict(zip(wrt, interpret(derived, given, compiled), strict=True))
    along = [
        rng.standard_normal(v.shape) if v.dtype.is_float else np.zeros(v.shape, v.dtype.name) for v in whole.inputs
    ]

    def loss(*at: Any) -> float:
        known = {v.name: a.astype(v.dtype.name) for v, a in zip(whole.inputs, at, strict=True)}
        results = interpret(whole, known, compiled)
        return float(sum(np.sum(s * r) for s, r in zip(seeds, results, strict=True) if r.dtype.kind == "f"))

    slopes = [float(np.sum(found[v.name] * d)) for v, d in zip(graph.inputs, along, strict=True) if v.name in found]
    expected = slope(loss, inputs, along)
    assert abs(sum(slopes) - expected) <= 1e-4 * (1 + abs(expected))


def numeric(function: Callable[..., Any], arguments: tuple[Any, ...], place: int) -> Any:
    """The gradient of the sum of a function's result with respect to an argument, element by element."""
    found = np.zeros_like(arguments[place])
    for index in np.ndindex(found.shape):
        along = [np.zeros_like(a) for a in arguments]
        along[place][index] = 1
        found[index] = slope(lambda *at: float(np.sum(function(*at))), list(arguments), along)
    return found


def test_of_a_function_with_shared_values_and_broadcasting() -> None:
    @opgen.compile
    def loss(x: Any, w: Any, b: Any) -> Any:
        h = OPS.scale(OPS.product(x, w), b, b)
        return OPS.row_sum(h * h / (h * h + 1.0) - 0.5 * h + b)

    rng = np.random.default_rng(0)
    arguments = (rng.random((4, 5)), rng.random((5, 3)), rng.random(3))
    step = opgen.gradient(loss, wrt=("w", "b"))
    assert step.__name__ == "loss_gradient"
    for place, found in zip((1, 2), step(*arguments), strict=True):
        np.testing.assert_allclose(found, numeric(loss, arguments, place), rtol=1e-6, atol=1e-8)
    (again,) = opgen.gradient(loss, wrt=["x"])(*arguments)
    np.testing.assert_allclose(again, opgen.gradient(loss, wrt="x")(*arguments))
    np.testing.assert_allclose(again, numeric(loss, arguments, 0), rtol=1e-6, atol=1e-8)


def test_gradients_with_respect_to_results_are_given_as_grad() -> None:
    both = opgen.compile(lambda x: {"turned": OPS.turn(x), "sums": [OPS.row_sum(x * x)]})
    step = opgen.gradient(both, wrt="x")
    turned, sums = np.arange(6.0).reshape(3, 2), np.array([2.0, -1.0])
    found = step(X, grad={"turned": turned, "sums": [sums]})
    np.testing.assert_allclose(found, turned.T + 2 * X * sums[:, None])
    np.testing.assert_allclose(step(X), 1 + 2 * X)
    with pytest.raises(CaptureError, match="'grad' has to nest as the results of <lambda> do"):
        step(X, grad=turned)
    with pytest.raises(ArgumentValueError, match=r"expected float64\[3, 2\], given float64\[2, 3\]"):
        step(X, grad={"turned": X, "sums": [sums]})


def test_arguments_that_nest_have_gradients_that_do() -> None:
    def loss(weights: dict[str, Any], x: Any) -> Any:
        return OPS.row_sum(OPS.add(weights["a"][0] * x, weights["a"][1]))

    found = opgen.gradient(opgen.compile(loss), wrt="weights")({"a": [X, np.ones((1, 3)), 7]}, 2 * X)
    assert list(found) == ["a"]
    np.testing.assert_allclose(found["a"][0], 2 * X)
    np.testing.assert_allclose(found["a"][1], [[2, 2, 2]])
    assert found["a"][2] == 7


def test_second_derivatives() -> None:
    cube = opgen.compile(lambda x: x * x * x)
    slope_of = opgen.gradient(cube, wrt="x")
    second = opgen.gradient(slope_of, wrt="x")
    third = opgen.gradient(second, wrt="x")
    np.testing.assert_allclose(slope_of(X), 3 * X**2)
    np.testing.assert_allclose(second(X), 6 * X)
    np.testing.assert_allclose(third(X), np.full(X.shape, 6.0))


def test_in_a_function_that_is_compiled() -> None:
    loss = opgen.compile(lambda w, x: OPS.row_sum(w * x * x))
    by_w = opgen.gradient(loss, wrt="w")

    @opgen.compile
    def descend(w: Any, x: Any) -> Any:
        for _ in range(3):
            w = w - 0.5 * by_w(w, x)
        return w

    np.testing.assert_allclose(descend(X, 2 * X), X - 1.5 * (2 * X) ** 2)


def test_of_convolutions() -> None:
    @opgen.compile
    def loss(x: Any, w: Any) -> Any:
        return NN.conv2d(NN.conv2d(x, w, [1, 2, 2, 1], "SAME"), w, [1, 1, 1, 1], "VALID")

    rng = np.random.default_rng(0)
    arguments = (rng.random((1, 7, 6, 2)), rng.random((2, 3, 2, 2)))
    for place, found in enumerate(opgen.gradient(loss, wrt=("x", "w"))(*arguments)):
        np.testing.assert_allclose(found, numeric(loss, arguments, place), rtol=1e-6, atol=1e-7)


def test_what_nothing_depends_on_has_a_gradient_of_zeros() -> None:
    graph = trace(lambda x, y: OPS.turn(y), "g", {"x": (FLOAT32, (2, 3)), "y": (FLOAT32, (2, 3))})
    derived = verify(gradient(graph, ["x", "y"]))
    x = X.astype(np.float32)
    found = interpret(derived, {"x": x, "y": x, "grad_result": x.T.copy()})
    np.testing.assert_array_equal(found[0], np.zeros((2, 3)))
    np.testing.assert_array_equal(found[1], x)
    assert parse_graph(print_graph(derived), data_of(derived)) == derived


def test_what_has_no_gradient_is_said() -> None:
    kinds = {"x": (INT32, (2, 3)), "y": (FLOAT32, (2, 3))}
    graph = trace(lambda x, y: (OPS.turn(x), OPS.turn(y)), "g", kinds)
    with pytest.raises(GradientError, match=r"^g: input 'x' is of int32 and has no gradient"):
        gradient(graph, ["x"])
    with pytest.raises(opgen.diagnostics.UserError, match=r"has no argument 'z' to differentiate with respect to"):
        opgen.gradient(opgen.compile(lambda x: x), wrt="z")
    with pytest.raises(opgen.diagnostics.UserError, match="'z'"):
        opgen.gradient(OPS.turn, wrt=("x", "z"))
