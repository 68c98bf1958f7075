"""The interface of ONNX's backends."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.backend import base

import opgen
from opgen.diagnostics import UserError
from opgen.onnx import backend
from tests.onnx.models import constant, float_input, model, node

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def summed() -> object:
    return model(
        [node("Add", ["x", "w"], ["y"]), node("ReduceSum", ["y", "axes"], ["z"], keepdims=0)],
        inputs=[float_input("x", ("n", 3)), helper.make_tensor_value_info("axes", TensorProto.INT64, (1,))],
        outputs=["y", "z"],
        initialisers=[constant("w", np.float32([1, 2, 3]))],
    )


def test_results_have_places_and_names() -> None:
    prepared = backend.prepare(summed())
    assert isinstance(prepared, base.BackendRep)
    for axis in (0, 1, 0, -1):
        for inputs in ([X, np.int64([axis])], {"axes": np.int64([axis]), "x": X}):
            found = prepared.run(inputs)
            assert np.array_equal(found[0], X + np.float32([1, 2, 3]))
            assert np.array_equal(found["z"], found[0].sum(axis))


def test_other_sizes_and_a_model_run_once() -> None:
    prepared = backend.prepare(model([node("Relu", ["x"], ["y"])]))
    for size in (0, 1, 5):
        x = np.linspace(-1, 1, size, dtype=np.float32)
        assert np.array_equal(prepared.run(x)[0], np.maximum(x, 0))
    assert np.array_equal(backend.run_model(model([node("Relu", ["x"], ["y"])]), [X[0]])["y"], X[0])


def test_a_node_alone() -> None:
    assert np.array_equal(backend.run_node(node("Add", ["a", "b"], ["c"]), [X, X])[0], X + X)
    found = backend.run_node(node("ReduceSum", ["a"], ["b"], axes=[1], keepdims=0), [X], opset_version=11)
    assert np.array_equal(found[0], X.sum(1))


def test_devices() -> None:
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA:0")
    assert backend.Backend.is_compatible(summed())
    assert not backend.Backend.is_compatible(model([node("Nothing", ["x"], ["y"])]))
    with pytest.raises(UserError, match="on the device 'CPU', not on 'CUDA'"):
        backend.prepare(summed(), "CUDA")


def test_inputs_that_do_not_fit() -> None:
    prepared = backend.prepare(summed())
    axes = np.int64([0])
    for inputs, said in (
        ([X], "it takes 2 inputs"),
        ({"x": X}, "the input 'axes' is missing"),
        ([X.astype(np.float64), axes], "argument 'x': expected float32"),
        ([X.T, axes], "argument 'x': expected float32"),
        ([X.astype(str), axes], "argument 'x': expected float32, given str"),
        ([X, np.int64([2])], r"node 'ReduceSum' \(ReduceSum\): .*argument 'axes'"),
    ):
        with pytest.raises(UserError, match=said):
            prepared.run(inputs)


def test_numbers_alone_tell_the_type_of_the_results() -> None:
    numbers = [constant(name, np.int32(value)) for name, value in (("a", 1), ("b", 9), ("c", 2))]
    ranged = model([node("Range", ["a", "b", "c"], ["y"])], initialisers=numbers)
    (found,) = backend.run_model(ranged, [X[0]])
    np.testing.assert_array_equal(found, np.arange(1, 9, 2, np.int32), strict=True)


def test_an_input_that_has_a_default_takes_a_value_by_name() -> None:
    """As its default and any other value, also where the default shapes the result."""
    inputs = [
        float_input("x", (3,)),
        float_input("k", (3,)),
        helper.make_tensor_value_info("s", TensorProto.INT64, (2,)),
    ]
    defaults = [constant("k", np.ones(3, np.float32)), constant("s", np.int64([3, 1]))]
    nodes = [node("Add", ["x", "k"], ["a"]), node("Reshape", ["a", "s"], ["y"])]
    made = model(nodes, inputs, initialisers=defaults)
    x, k, s = np.float32([1, 2, 3]), np.float32([5, 6, 7]), np.int64([1, 3])
    prepared, compiled = backend.prepare(made), opgen.compile(made.SerializeToString())
    for given in ({}, {"k": k}, {"s": s}, {"s": s, "k": k}, {"k": x}, {}):
        wanted = (x + given.get("k", np.float32(1))).reshape(given.get("s", [3, 1]))
        np.testing.assert_array_equal(prepared.run({"x": x, **given})["y"], wanted, strict=True)
        np.testing.assert_array_equal(compiled.run({"x": x, **given})["y"], wanted, strict=True)
    np.testing.assert_array_equal(prepared.run([x])[0], (x + 1).reshape(3, 1))
    for wrong, said in (
        ({"k": k[:2]}, r"argument 'k': expected float32\[3\]"),
        ({"K": k}, "unknown input 'K'; did you"),
    ):
        with pytest.raises(UserError, match=said):
            prepared.run({"x": x, **wrong})
