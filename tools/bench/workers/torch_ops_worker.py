"""PyTorch's functions for the ops of `tools/bench/op_rows.py` as a contestant."""

from __future__ import annotations

from typing import Any

import torch

from tools.bench.workers.protocol import Call, Given, Library, first
from tools.bench.workers.torch_functions import COMMON, ONNX, PREPARED
from tools.bench.workers.torch_worker import inference

MODULES = {"common_ops": COMMON, "onnx_ops": ONNX}


class PyTorchOps(Library):
    name = "PyTorch"
    version = str(torch.__version__)
    variants = ("ops",)

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        op, attributes = case["op"], case["attributes"]
        inputs: list[Any] = [torch.from_numpy(x) for x in given.inputs]
        if "together" in case:
            inputs = [inputs]
        if case["module"] == "onnx_ops" and op in PREPARED:
            inputs, attributes = PREPARED[op](*inputs, **attributes)
        function = MODULES[case["module"]][op]
        return Call(inference(lambda: function(*inputs, **attributes)), first)


def library(threads: int) -> Library:
    return PyTorchOps(threads)
