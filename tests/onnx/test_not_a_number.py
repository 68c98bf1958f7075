"""NaN as ONNX Runtime and numpy have it, and integers without a sign where ONNX takes them."""

from __future__ import annotations

import numpy as np
import pytest

import opgen

pytest.importorskip("onnx")
import onnx

from tests.onnx.one_node import found_by, model_of

NAN = np.nan


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_sign_of_nan_is_nan(dtype: type) -> None:
    x = np.array([NAN, -3, 0, 2, np.inf], dtype)
    np.testing.assert_array_equal(found_by(model_of("Sign", {"x": x}, 13), {"x": x}), np.sign(x))


@pytest.mark.parametrize("dtype", np.typecodes["AllInteger"].replace("q", "").replace("Q", ""))
@pytest.mark.parametrize("operator", ["Abs", "Sign"])
def test_integers_of_every_type(operator: str, dtype: str) -> None:
    x = np.array([0, 1, 100, np.iinfo(dtype).max], dtype)
    x = np.concatenate([x, -x[:3]]) if np.iinfo(dtype).min else x
    right = np.abs(x) if operator == "Abs" else np.sign(x)
    np.testing.assert_array_equal(found_by(model_of(operator, {"x": x}, 13), {"x": x}), right)


@pytest.mark.parametrize("opset", [11, 13])
def test_hardmax_marks_the_first_nan(opset: int) -> None:
    x = np.array([[NAN, 1, NAN], [1, NAN, 5], [3, 5, 5], [-np.inf] * 3], np.float32)
    marks = np.eye(3, dtype=np.float32)[[0, 1, 1, 0]]
    np.testing.assert_array_equal(found_by(model_of("Hardmax", {"x": x}, opset, axis=1), {"x": x}), marks)


@pytest.mark.parametrize("pads", [[0, 0], [1, 1]])
def test_the_largest_of_a_window_is_its_first_nan(pads: list[int]) -> None:
    x = np.array([[[NAN, NAN, NAN, 1, 2, NAN, -3, 0]]], np.float32)
    helper = onnx.helper
    node = helper.make_node("MaxPool", ["x"], ["y", "at"], kernel_shape=[2], strides=[2], pads=pads)
    outputs = [helper.make_tensor_value_info(n, k, None) for n, k in (("y", 1), ("at", 7))]
    graph = helper.make_graph([node], "pool", [helper.make_tensor_value_info("x", 1, x.shape)], outputs)
    y, at = opgen.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)]))(x)
    places = [0, 2, 5, 7] if pads == [0, 0] else [0, 1, 4, 5, 7]
    np.testing.assert_array_equal(at, [[places]])
    np.testing.assert_array_equal(y, x[:, :, places])
