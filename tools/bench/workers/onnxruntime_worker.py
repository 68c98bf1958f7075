"""ONNX Runtime as a contestant: a model of one node, its filter a constant (so that it may be reordered beforehand).

Images lie channels first, and stay where they are between calls.  The input gradient is ONNX's ConvTranspose, which is
the same sum; there is no node for the filter gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from tools.bench.workers.protocol import Call, Given, Library, RefusalError, grouped, same_padding

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
TYPES = {"float32": (TensorProto.FLOAT, np.float32), "float64": (TensorProto.DOUBLE, np.float64)}


class OnnxRuntime(Library):
    name = "ONNX Runtime"
    version = str(onnxruntime.__version__)
    variants = ("session",)

    def __init__(self, threads: int) -> None:
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 3

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        if case["direction"] == "filter":
            raise RefusalError("ONNX has no node for the filter gradient")
        if case["dtype"] not in TYPES:
            raise RefusalError(f"ONNX Runtime does not do this in {case['dtype']} on CPUs")
        source = given.images if case["direction"] == "forward" else given.gradient
        kind, dtype = TYPES[case["dtype"]]
        data = np.ascontiguousarray(source.transpose(TO_NCHW), dtype)
        session = onnxruntime.InferenceSession(
            model(case, given, data.shape, kind, dtype).SerializeToString(),
            self.options,
            providers=["CPUExecutionProvider"],
        )
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(data))
        binding.bind_output("y")

        def read(_: Any) -> np.ndarray:
            return np.ascontiguousarray(binding.copy_outputs_to_cpu()[0].transpose(TO_NHWC))

        return Call(lambda: session.run_with_iobinding(binding), read)


def model(case: dict[str, Any], given: Given, shape: tuple[int, ...], kind: int, dtype: Any) -> onnx.ModelProto:
    """Return a graph of one node from `x` to `y`."""
    weights, groups = grouped(case, given.filter)
    kernel = numpy_helper.from_array(np.ascontiguousarray(weights.transpose(3, 2, 0, 1), dtype), "w")
    (top, bottom), (left, right) = same_padding(case)
    stride = case["stride"]
    named: dict[str, Any] = {"strides": [stride, stride], "pads": [top, left, bottom, right], "group": groups}
    if case["direction"] == "input":
        named["output_padding"] = output_padding(case)
    name = "Conv" if case["direction"] == "forward" else "ConvTranspose"
    node = helper.make_node(name, ["x", "w"], ["y"], **named)
    x = helper.make_tensor_value_info("x", kind, list(shape))
    y = helper.make_tensor_value_info("y", kind, [None] * 4)
    graph = helper.make_graph([node], "one", [x], [y], [kernel])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def output_padding(case: dict[str, Any]) -> list[int]:
    """Return the sizes that strides leave open: rows and columns at the end."""
    found = []
    for axis, (before, after) in zip(("height", "width"), same_padding(case), strict=True):
        windows = case["output_shape"][1 if axis == "height" else 2]
        reached = (windows - 1) * case["stride"] + case[f"filter_{axis}"] - before - after
        found.append(case[f"in_{axis}"] - reached)
    return found


def library(threads: int) -> Library:
    return OnnxRuntime(threads)
