"""JAX as a contestant: compiled functions; gradients are the transposes that `jax.vjp` gives, compiled too."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tools.bench.workers.protocol import Call, Given, Library, grouped, same_padding

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


class Jax(Library):
    name = "JAX"
    variants = ("compiled",)

    def __init__(self, threads: int) -> None:
        flags = "" if threads > 1 else " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + flags
        os.environ.update({"JAX_PLATFORMS": "cpu", "NPROC": str(threads), "JAX_ENABLE_X64": "true"})
        import jax

        self.jax = jax
        self.version = str(jax.__version__)

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        jax, first = self.jax, case["data_format"] == "NCHW"
        dtype = case["dtype"]

        def put(x: np.ndarray) -> Any:
            return jax.device_put(jax.numpy.asarray(x, dtype=dtype))

        def images(x: np.ndarray) -> Any:
            return put(x.transpose(TO_NCHW) if first else x)

        weights, groups = grouped(case, given.filter)
        padding, stride = same_padding(case), case["stride"]

        def forward(x: Any, w: Any) -> Any:
            layout = (case["data_format"], "HWIO", case["data_format"])
            return jax.lax.conv_general_dilated(
                x, w, (stride, stride), padding, dimension_numbers=layout, feature_group_count=groups
            )

        def read(result: Any) -> np.ndarray:
            plain: np.ndarray = np.asarray(result).astype(np.float64 if case["dtype"] == "float64" else np.float32)
            if case["direction"] == "filter":
                return plain.reshape(tuple(case["filter_shape"]))
            return plain.transpose(TO_NHWC) if first else plain

        function, arguments = self._function(case["direction"], forward, images, put(weights), given)
        compiled = jax.jit(function).lower(*arguments).compile()
        return Call(lambda: compiled(*arguments).block_until_ready(), read)

    def _function(self, direction: str, forward: Any, images: Any, weights: Any, given: Given) -> tuple[Any, Any]:
        vjp, x = self.jax.vjp, images(given.images)
        if direction == "forward":
            return forward, (x, weights)
        g = images(given.gradient)
        if direction == "input":
            return (lambda w, g: vjp(lambda y: forward(y, w), self.jax.numpy.zeros_like(x))[1](g)[0]), (weights, g)
        return (lambda y, g: vjp(lambda w: forward(y, w), self.jax.numpy.zeros_like(weights))[1](g)[0]), (x, g)


def library(threads: int) -> Library:
    return Jax(threads)
