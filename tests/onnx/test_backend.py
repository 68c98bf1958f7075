"""The interface of ONNX's backends."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.backend import base

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
