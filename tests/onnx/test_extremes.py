"""Integers at the ends of 64 bits, as models have them for "as far as there is"."""

from __future__ import annotations

import numpy as np
import pytest

import opgen
from opgen.spec.generic.values import integer, known_integer
from opgen.spec.unparse_expression import NOWHERE

onnx = pytest.importorskip("onnx")

LEAST, LARGEST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("value", [0, -1, LEAST, LEAST + 1, LARGEST, 2**32, -(2**31) - 1])
def test_a_known_integer_is_that_integer(value: int) -> None:
    assert known_integer(integer(value, NOWHERE)) == value


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        (0, LARGEST, 1),
        (LEAST, 6, 1),
        (-1, LEAST, -1),
        (-2, LEAST + 1, -2),
        (2**40, LEAST, -3),
        (0, LEAST, 1),
        (LARGEST, LEAST, -1),
    ],
)
def test_as_far_as_there_is(start: int, end: int, step: int) -> None:
    x = np.arange(7, dtype=np.float32)
    numbers = [np.array([v], np.int64) for v in (start, end, 0, step)]
    constants = [onnx.numpy_helper.from_array(a, f"c{k}") for k, a in enumerate(numbers)]
    node = onnx.helper.make_node("Slice", ["x", "c0", "c1", "c2", "c3"], ["y"])
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size])
        for name, size in (("x", 7), ("y", None))
    ]
    graph = onnx.helper.make_graph([node], "slice", values[:1], values[1:], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    np.testing.assert_array_equal(opgen.compile(model)(x), x[start:end:step])
