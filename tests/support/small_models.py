"""Small ONNX models that are built as libraries, and the command that builds them."""

from __future__ import annotations

import numpy as np
import onnx
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper

from opgen.cli import main


def images() -> onnx.ModelProto:
    """A small network of images: two convolutions, pooling, a product; an output that is a constant, and a view."""
    rng = np.random.default_rng(0)
    weights = {
        "first": rng.standard_normal((8, 3, 3, 3), np.float32),
        "bias": rng.standard_normal(8, np.float32),
        "second": rng.standard_normal((16, 8, 3, 3), np.float32),
        "last": rng.standard_normal((10, 16), np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x.1", "first", "bias"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second"], ["c"], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("Gemm", ["e", "last"], ["f"], transB=1),
        helper.make_node("Softmax", ["f"], ["/out/0"]),
    ]
    graph = helper.make_graph(
        nodes,
        "images",
        [helper.make_tensor_value_info("x.1", TensorProto.FLOAT, ["batch", 3, 18, 18])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("/out/0", "e")],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def words() -> onnx.ModelProto:
    """Inputs of other types: double, int64 and float8; an output of int4."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["squares"]),
        helper.make_node("ReduceSum", ["squares"], ["sums"], keepdims=0),
        helper.make_node("Add", ["counts", "one"], ["more"]),
        helper.make_node("Cast", ["codes"], ["small"], to=TensorProto.INT4),
    ]
    graph = helper.make_graph(
        nodes,
        "words",
        [
            helper.make_tensor_value_info("x", TensorProto.DOUBLE, [5, 7]),
            helper.make_tensor_value_info("counts", TensorProto.INT64, [4]),
            helper.make_tensor_value_info("codes", TensorProto.FLOAT8E5M2, [3]),
        ],
        [
            helper.make_tensor_value_info("sums", TensorProto.DOUBLE, None),
            helper.make_tensor_value_info("more", TensorProto.INT64, None),
            helper.make_tensor_value_info("small", TensorProto.INT4, None),
        ],
        [numpy_helper.from_array(np.array([1, 2, 3, 4], np.int64), "one")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def table() -> onnx.ModelProto:
    """Rows of a table at places that an input tells."""
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"]),
        helper.make_node("Gather", ["positive", "places"], ["rows"]),
    ]
    graph = helper.make_graph(
        nodes,
        "table",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 3]),
            helper.make_tensor_value_info("places", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def command(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["build", *arguments])
