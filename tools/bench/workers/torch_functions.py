"""PyTorch's functions for ops: by the op's name, with its arguments and attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def _two_products(x: Tensor, w: Tensor, h: Tensor, r: Tensor) -> Tensor:
    return torch.addmm(x @ w, h, r)


COMMON: dict[str, Callable[..., Any]] = {
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


def _pad(x: Tensor, pads: list[int], mode: str = "constant") -> Tensor:
    """ONNX has all begins, then all ends; PyTorch pairs, the last dimension first."""
    sides = [p for pair in zip(pads[: x.dim()], pads[x.dim() :], strict=True) for p in reversed(pair)]
    sides.reverse()
    while len(sides) > 2 and not sides[-1] and not sides[-2]:
        del sides[-2:]
    return F.pad(x, sides, mode)


def _strided_slice(x: Tensor, starts: list[int], ends: list[int], axes: list[int], steps: list[int]) -> Tensor:
    parts = [slice(None)] * x.dim()
    for axis, *part in zip(axes, starts, ends, steps, strict=True):
        parts[axis] = slice(*part)
    return x[tuple(parts)].contiguous()


def _gather(data: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    return F.embedding(indices, data) if axis == 0 else torch.index_select(data, axis, indices)


def _scatter_elements(data: Tensor, indices: Tensor, updates: Tensor, axis: int, reduction: str) -> Tensor:
    return data.scatter_add(axis, indices, updates)


def _pooled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(x: Tensor, kernel_shape: list[int], strides: list[int], pads: tuple[int, ...] = (0, 0)) -> Tensor:
        return function(x, kernel_shape, strides, list(pads[:2]))

    return call


def _average(x: Tensor, kernel: list[int], strides: list[int], pads: list[int]) -> Tensor:
    return F.avg_pool2d(x, kernel, strides, pads, count_include_pad=False)


_MODES = {"linear": ("linear", "bilinear", "trilinear"), "cubic": ("", "bicubic", "")}
"""Modes that PyTorch names by the number of dimensions, from one on."""


def _resize(x: Tensor, mode: str = "nearest", antialias: bool = False, **given: Any) -> Tensor:
    size = given["sizes"][2:] if "sizes" in given else None
    scales = given["scales"][2:] if "scales" in given else None
    name = _MODES[mode][x.dim() - 3] if mode in _MODES else mode
    return F.interpolate(x, size=size, scale_factor=scales, mode=name, antialias=antialias)


def _normalised(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    return F.batch_norm(x, mean, variance, scale, bias, eps=1e-5)


def _lstm(x: Tensor, hidden: tuple[Tensor, Tensor], weights: list[Tensor]) -> Tensor:
    result: Tensor = torch.lstm(x, hidden, weights, True, 1, 0.0, False, False, False)[0]
    return result.unsqueeze(1)


def _gru(x: Tensor, hidden: Tensor, weights: list[Tensor]) -> Tensor:
    result: Tensor = torch.gru(x, hidden, weights, True, 1, 0.0, False, False, False)[0]
    return result.unsqueeze(1)


def _gates(x: Tensor, tensors: tuple[Tensor, ...], order: tuple[int, ...]) -> tuple[Tensor, list[Tensor]]:
    """Return the first state, and weights whose gates have PyTorch's order rather than ONNX's."""
    w, r, bias = tensors
    halves = bias[0].chunk(2)
    parts = [torch.cat([t.chunk(len(order))[k] for k in order]) for t in (w[0], r[0], *halves)]
    return torch.zeros(1, x.shape[1], r.shape[-1]), parts


def _prepared_lstm(x: Tensor, *tensors: Tensor, **_: Any) -> tuple[list[Any], dict[str, Any]]:
    hidden, weights = _gates(x, tensors, (0, 2, 3, 1))
    return [x, (hidden, hidden), weights], {}


def _prepared_gru(x: Tensor, *tensors: Tensor, **_: Any) -> tuple[list[Any], dict[str, Any]]:
    hidden, weights = _gates(x, tensors, (1, 0, 2))
    return [x, hidden, weights], {}


PREPARED: dict[str, Callable[..., tuple[list[Any], dict[str, Any]]]] = {
    "lstm": _prepared_lstm,
    "gru": _prepared_gru,
}
"""Preparation of the arguments before calls are timed: weights that are ordered once."""

ONNX: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name) for name in ("exp", "tanh", "erf", "sigmoid", "cos", "tan", "atan", "sinh", "cosh")},
    **{name: getattr(torch, name) for name in ("asinh", "asin", "acos", "atanh", "log", "sqrt", "floor", "where")},
    "softplus": F.softplus,
    "mish": F.mish,
    "elu": F.elu,
    "hard_swish": F.hardswish,
    "swish": F.silu,
    "gelu": F.gelu,
    "add": torch.add,
    "mul": torch.mul,
    "transpose": lambda x, perm: x.permute(perm).contiguous(),
    "concat": lambda xs, axis: torch.cat(xs, axis),
    "pad": _pad,
    "strided_slice": _strided_slice,
    "tile": lambda x, repeats: x.repeat(repeats),
    "expand": lambda x, shape: x.expand(shape).contiguous(),
    "depth_to_space": lambda x, blocksize, mode: F.pixel_shuffle(x, blocksize),
    "gather": _gather,
    "gather_elements": lambda x, indices, axis: torch.gather(x, axis, indices),
    "gather_nd": lambda x, indices: x[indices[:, 0], indices[:, 1]],
    "scatter_elements": _scatter_elements,
    "scatter_nd": lambda x, indices, updates, reduction: x.index_add(0, indices[:, 0], updates),
    "max_pool": _pooled(F.max_pool2d),
    "average_pool": _pooled(_average),
    "global_average_pool": lambda x: F.adaptive_avg_pool2d(x, 1),
    "resize": _resize,
    "grid_sample": lambda x, grid, align_corners: F.grid_sample(x, grid, align_corners=align_corners),
    "batch_normalization": _normalised,
    "instance_normalization": lambda x, scale, bias: F.instance_norm(x, weight=scale, bias=bias),
    "group_normalization": lambda x, scale, bias, num_groups: F.group_norm(x, num_groups, scale, bias),
    "layer_normalization": lambda x, scale, bias: F.layer_norm(x, x.shape[-1:], scale, bias),
    "rms_normalization": lambda x, scale: F.rms_norm(x, x.shape[-1:], scale, 1e-5),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "softmax": lambda x, axis: torch.softmax(x, axis),
    "reduce_sum": lambda x, axes, keepdims: x.sum(axes),
    "reduce_max": lambda x, axes, keepdims: x.amax(axes),
    "reduce_mean": lambda x, axes, keepdims: x.mean(axes),
    "reduce_log_sum_exp": lambda x, axes, keepdims: x.logsumexp(axes),
    "arg_max": lambda x, axis, keepdims: x.argmax(axis),
    "cum_sum": lambda x, axis: x.cumsum(axis),
    "top_k": lambda x, K: x.topk(K[0]),
    "lstm": _lstm,
    "gru": _gru,
    "mat_mul": torch.matmul,
    "gemm": lambda a, b, c, transB: torch.addmm(c, a, b.t()),
    "attention": F.scaled_dot_product_attention,
    "mat_mul_integer": torch._int_mm,
}
