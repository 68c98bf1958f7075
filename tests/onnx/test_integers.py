"""Operators that are of floating-point numbers mostly, on integers: what lies behind the point is dropped."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import opgen

MATRIX = [[1, 2, 4], [-7, 2, -3], [5, 5, -8]]
CASES = {
    "ReduceMean": (1, {"axes": [1]}, 13),
    "ReduceL2": (1, {"axes": [1], "keepdims": 0}, 13),
    "Shrink": (1, {"lambd": 1.5, "bias": 0.5}, 9),
    "Gemm": (3, {"alpha": 0.5, "beta": 2.5, "transA": 1}, 13),
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("operator", CASES)
def test_integers(operator: str, dtype: type[np.generic]) -> None:
    count, attributes, opset = CASES[operator]
    given = {f"x{k}": np.array(MATRIX, dtype) for k in range(count)}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node(operator, list(given), ["y"], **attributes)
    inputs = [helper.make_tensor_value_info(name, kind, [3, 3]) for name in given]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", kind, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    (wanted,) = ReferenceEvaluator(model).run(None, given)
    found = opgen.compile(model).run(given)["y"]
    assert found.dtype == dtype
    assert found.tolist() == wanted.tolist()
