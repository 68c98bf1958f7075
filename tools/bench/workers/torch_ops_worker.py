"""PyTorch's functions for the ops of `tools/common_ops.op` as a contestant."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tools.bench.workers.protocol import Call, Given, Library
from tools.bench.workers.torch_worker import inference


def _two_products(x: torch.Tensor, w: torch.Tensor, h: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    return torch.addmm(x @ w, h, r)


FUNCTIONS = {
    "mat_mul": torch.matmul,
    "mat_mul_transposed": lambda a, b: a @ b.t(),
    "weight_gradient": lambda a, b: a.t() @ b,
    "mat_vec": torch.mv,
    "vec_mat": lambda a, b: torch.mv(b.t(), a),
    "dense": lambda x, w, bias: torch.relu(torch.addmm(bias, x, w)),
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": lambda x, gamma, beta: F.layer_norm(x, x.shape[-1:], gamma, beta),
    "gelu": F.gelu,
    "transpose": lambda x: x.t().contiguous(),
    "column_sums": lambda x: x.sum(0),
    "attention": lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None])[0],
    "two_products": _two_products,
    "let_and_sum": _two_products,
    "gated": lambda x, w, v: (x @ w) * (x @ v),
    "gated_gradient": lambda x, w, v, dy: (dy * (x @ v)) @ w.t() + (dy * (x @ w)) @ v.t(),
    "gemm": lambda a, b: a @ b.t(),
    "gates": lambda x, w, bias: torch.addmm(bias, x, w.t()).reshape(len(x), 4, -1),
    "mat_mul_int32": torch.matmul,
    "powers": lambda x, y: torch.pow(x.abs(), y),
    "sine": torch.sin,
}


class PyTorchOps(Library):
    name = "PyTorch"
    version = str(torch.__version__)
    variants = ("ops",)

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        function, inputs = FUNCTIONS[case["op"]], [torch.from_numpy(x) for x in given.inputs]
        return Call(inference(lambda: function(*inputs)), lambda result: result.numpy())


def library(threads: int) -> Library:
    return PyTorchOps(threads)
