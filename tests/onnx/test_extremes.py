"""Values at the ends of what models have: integers of 64 bits, for "as far as there is"; none where one is usual."""

from __future__ import annotations

import numpy as np
import pytest

import opgen
from opgen.diagnostics.calls import ArgumentValueError
from opgen.spec.generic.values import integer, known_integer
from opgen.spec.model.unparse_expression import NOWHERE

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
@pytest.mark.parametrize("size", [7, 1, 0])
def test_as_far_as_there_is(start: int, end: int, step: int, size: int) -> None:
    x = np.arange(size, dtype=np.float32)
    numbers = [np.array([v], np.int64) for v in (start, end, 0, step)]
    constants = [onnx.numpy_helper.from_array(a, f"c{k}") for k, a in enumerate(numbers)]
    node = onnx.helper.make_node("Slice", ["x", "c0", "c1", "c2", "c3"], ["y"])
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [n]) for name, n in (("x", size), ("y", None))
    ]
    graph = onnx.helper.make_graph([node], "slice", values[:1], values[1:], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    np.testing.assert_array_equal(
        opgen.compile(model)(x), x[max(start, -size) : end : step]
    )  # ONNX begins at the nearest place


def test_a_filled_tensor_of_no_value_is_zeros_of_float32() -> None:
    nodes = [
        onnx.helper.make_node("ConstantOfShape", ["s"], ["y"]),
        onnx.helper.make_node("ConstantOfShape", ["s"], ["z"], value=onnx.numpy_helper.from_array(np.int32([7]))),
    ]
    given = onnx.helper.make_tensor_value_info("s", onnx.TensorProto.INT64, [2])
    kinds = (("y", onnx.TensorProto.FLOAT), ("z", onnx.TensorProto.INT32))
    results = [onnx.helper.make_tensor_value_info(name, kind, [None, None]) for name, kind in kinds]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "filled", [given], results), opset_imports=[onnx.helper.make_opsetid("", 18)]
    )
    for size in (0, 1, 3):
        found = opgen.compile(model).run({"s": np.int64([2, size])})
        assert (found["y"].dtype, found["z"].dtype) == (np.float32, np.int32)
        assert found["y"].tolist() == [[0.0] * size] * 2
        assert found["z"].tolist() == [[7] * size] * 2


def test_an_index_outside_is_refused_though_the_result_is_empty() -> None:
    node = onnx.helper.make_node("GatherND", ["x", "i"], ["y"])
    values = [
        onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 0]),
        onnx.helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [1, 1]),
        onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 0]),
    ]
    graph = onnx.helper.make_graph([node], "empty", values[:2], values[2:])
    model = opgen.compile(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)]))
    x = np.zeros((2, 0), np.float32)
    assert model(x, np.int64([[1]])).shape == (1, 0)
    with pytest.raises(ArgumentValueError, match=r"'indices': expected integers from -2 to 1 .* given 2"):
        model(x, np.int64([[2]]))


def test_an_element_of_no_place_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    taken (float[3] x, int64[n] i) => (float[n] y) { y = GatherElements(x, i) }"""
    model = opgen.compile(onnx.parser.parse_model(text))
    x = np.float32([3, 1, 7])
    assert model(x, np.int64([-1, 0])).tolist() == [7, 3]
    with pytest.raises(ArgumentValueError, match=r"'indices': expected integers from -3 to 2 .* given 6"):
        model(x, np.int64([6]))
    with pytest.raises(opgen.diagnostics.UserError, match="no more along the other dimensions"):
        opgen.compile(onnx.parser.parse_model(text.replace("[3] x", "[3, 1] x").replace("[n]", "[1, 2]")))(
            np.ones((3, 1), np.float32), np.int64([[0, 0]])
        )


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_the_place_of_a_nan_is_one_of_the_row(operator: str) -> None:
    x = np.array([[1, np.nan, 3, np.nan], [2, 2, 2, 2]], np.float32)
    for last, wanted in ((0, [1, 0]), (1, [3, 3])):
        node = onnx.helper.make_node(operator, ["x"], ["y"], axis=1, keepdims=0, select_last_index=last)
        values = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 4])]
        graph = onnx.helper.make_graph([node], "places", values, [onnx.helper.make_empty_tensor_value_info("y")])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
        np.testing.assert_array_equal(opgen.compile(model)(x), wanted)
