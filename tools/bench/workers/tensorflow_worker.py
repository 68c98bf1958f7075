"""TensorFlow as a contestant: its raw ops, called eagerly as we are."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

from tools.bench.workers.protocol import Call, Given, Library

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
OPS = {
    ("dense", "forward"): "Conv2D",
    ("dense", "input"): "Conv2DBackpropInput",
    ("dense", "filter"): "Conv2DBackpropFilter",
    ("depthwise", "forward"): "DepthwiseConv2dNative",
    ("depthwise", "input"): "DepthwiseConv2dNativeBackpropInput",
    ("depthwise", "filter"): "DepthwiseConv2dNativeBackpropFilter",
}


class TensorFlow(Library):
    name = "TensorFlow"
    version = str(tf.__version__)
    variants = ("eager",)

    def __init__(self, threads: int) -> None:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        first, dtype = case["data_format"] == "NCHW", tf.dtypes.as_dtype(case["dtype"])

        def images(x: np.ndarray) -> Any:
            return tf.cast(tf.constant(x.transpose(TO_NCHW) if first else x), dtype)

        stride = case["stride"]
        named: dict[str, Any] = {
            "strides": [1, 1, stride, stride] if first else [1, stride, stride, 1],
            "padding": case["padding"],
            "data_format": case["data_format"],
        }
        shape = list(case["input_shape"])
        sizes = [shape[i] for i in TO_NCHW] if first else shape
        direction = case["direction"]
        if direction != "filter":
            named["filter"] = tf.cast(tf.constant(given.filter), dtype)
        if direction != "input":
            named["input"] = images(given.images)
        if direction != "forward":
            named["out_backprop"] = images(given.gradient)
        if direction == "input":
            named["input_sizes"] = tf.constant(sizes, tf.int32)
        if direction == "filter":
            named["filter_sizes"] = tf.constant(case["filter_shape"], tf.int32)
        op = getattr(tf.raw_ops, OPS[case["kind"], direction])

        def read(result: Any) -> np.ndarray:
            plain: np.ndarray = tf.cast(result, tf.float64 if case["dtype"] == "float64" else tf.float32).numpy()
            return plain.transpose(TO_NHWC) if first and direction != "filter" else plain

        return Call(lambda: op(**named), read)


def library(threads: int) -> Library:
    return TensorFlow(threads)
