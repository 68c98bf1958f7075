"""The generated module as a contestant; its argument is the module's path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from opgen.runtime.threads import set_num_threads
from tools.bench.workers.protocol import Call, Given, Library

DTYPES = {"float32": np.float32, "float64": np.float64, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


class Generated(Library):
    name = "opgen"
    variants = ("generated",)

    def __init__(self, threads: int, module: str) -> None:
        path = Path(module).resolve()
        self.version = metadata.version("opgen")
        sys.path.insert(0, str(path.parent))
        self.ops = importlib.import_module(path.stem)
        set_num_threads(threads)

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        dtype, first = DTYPES[case["dtype"]], case["data_format"] == "NCHW"

        def images(x: np.ndarray) -> np.ndarray:
            return given.placed(x.transpose(TO_NCHW) if first else x, dtype)

        def read(result: np.ndarray) -> np.ndarray:
            plain = np.asarray(result, np.float64 if case["dtype"] == "float64" else np.float32)
            return plain.transpose(TO_NHWC) if first and case["direction"] != "filter" else plain

        stride = case["stride"]
        strides = [1, 1, stride, stride] if first else [1, stride, stride, 1]
        named = {"strides": strides, "padding": case["padding"], "data_format": case["data_format"]}
        return Call(self._run(case, given, images, dtype, named), read)

    def _run(
        self, case: dict[str, Any], given: Given, images: Callable[[np.ndarray], np.ndarray], dtype: Any, named: Any
    ) -> Callable[[], Any]:
        name = "conv2d" if case["kind"] == "dense" else "depthwise_conv2d_native"
        if case["direction"] == "forward":
            forward, x, w = getattr(self.ops, name), images(given.images), given.placed(given.filter, dtype)
            return lambda: forward(x, w, **named)
        function, g = getattr(self.ops, f"{name}_backprop_{case['direction']}"), images(given.gradient)
        if case["direction"] == "input":
            w, sizes = given.placed(given.filter, dtype), np.array(images_shape(case), np.int32)
            return lambda: function(sizes, w, g, **named)
        x, sizes = images(given.images), np.array(case["filter_shape"], np.int32)
        return lambda: function(x, sizes, g, **named)


def images_shape(case: dict[str, Any]) -> list[int]:
    """Return the images' shape as the case's format has it."""
    shape: list[int] = list(case["input_shape"])
    return [shape[i] for i in TO_NCHW] if case["data_format"] == "NCHW" else shape


def library(threads: int, module: str) -> Library:
    return Generated(threads, module)
