"""The rows of `python -m tools.bench_ops`: ops, the tensors they are given, and their attributes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
SPEC = ROOT / "tools" / "common_ops.op"
"""The ops of `CASES`."""
MODULE = ROOT / "generated" / "onnx_ops.py"
"""Module of the rows `ONNX`."""

CASES: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = (
    ("mat_mul", ((512, 512), (512, 512))),
    ("mat_mul", ((1000, 1000), (1000, 1000))),
    ("mat_mul", ((784, 240), (240, 144))),
    ("mat_mul", ((64, 2048), (2048, 512))),
    ("mat_mul", ((7, 33), (33, 129))),
    ("mat_mul_transposed", ((128, 768), (3072, 768))),
    ("weight_gradient", ((784, 240), (784, 300))),
    ("weight_gradient", ((1024, 512), (1024, 512))),
    ("mat_vec", ((1024, 1024), (1024,))),
    ("vec_mat", ((1024,), (1024, 1024))),
    ("dense", ((128, 768), (768, 768), (768,))),
    ("dense", ((32, 2048), (2048, 1000), (1000,))),
    ("softmax", ((128, 1024),)),
    ("softmax", ((4096, 64),)),
    ("softmax", ((1000, 1000),)),
    ("layer_norm", ((128, 768), (768,), (768,))),
    ("layer_norm", ((4096, 768), (768,), (768,))),
    ("gelu", ((128, 3072),)),
    ("transpose", ((1024, 1024),)),
    ("transpose", ((1000, 300),)),
    ("column_sums", ((1024, 1024),)),
    ("column_sums", ((784, 300),)),
    ("attention", ((12, 128, 64), (12, 128, 64), (12, 128, 64))),
    ("two_products", ((256, 256), (256, 256), (256, 256), (256, 256))),
    ("two_products", ((100, 300), (300, 500), (100, 500), (500, 500))),
    ("let_and_sum", ((256, 256), (256, 256), (256, 256), (256, 256))),
    ("gated", ((128, 768), (768, 768), (768, 768))),
    ("gated_gradient", ((128, 768), (768, 768), (768, 768), (128, 768))),
    ("gemm", ((256, 512), (384, 512))),
    ("gates", ((64, 256), (1024, 256), (1024,))),
    ("mat_mul_int32", ((256, 256), (256, 256))),
    ("mat_mul_int32", ((512, 512), (512, 512))),
    ("powers", ((128, 3072), (128, 3072))),
    ("sine", ((128, 3072),)),
)


@dataclass(frozen=True)
class OpRow:
    """An op of a module at some sizes.

    A tensor is a shape and how its elements are drawn: `128x768` float32, normal; `128x768:positive` their absolute
    values; `:small` a 32nd of them; `:unit` between -0.99 and 0.99; `:int64<10` integers from 0 on below 10; `:int8`
    normal with a standard deviation of `protocol.SPREAD`, as far as the type goes; `:bool` either.
    """

    module: str
    op: str
    tensors: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    together: bool = False
    """The tensors are one argument, a list."""

    @property
    def name(self) -> str:
        """Return the printed name of the row."""
        return " ".join((self.op, *self.tensors, *(f"{n}={_plain(v)}" for n, v in self.attributes)))

    @property
    def case(self) -> dict[str, Any]:
        """Return the request form of the row for workers."""
        attributes = dict(self.attributes)
        return {"module": self.module, "op": self.op, "tensors": self.tensors, "attributes": attributes} | (
            {"together": True} if self.together else {}
        )


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _common(op: str, shapes: tuple[tuple[int, ...], ...]) -> OpRow:
    kind = ":int32" if op.endswith("int32") else ""
    return OpRow("common_ops", op, tuple("x".join(map(str, s)) + kind for s in shapes))


def _onnx(op: str, *tensors: str, together: bool = False, **attributes: Any) -> OpRow:
    return OpRow("onnx_ops", op, tensors, tuple(attributes.items()), together)


_POINTWISE = (
    *(_onnx(op, "128x3072") for op in ("exp", "tanh", "erf", "sigmoid", "cos", "tan", "atan", "sinh", "cosh", "asinh")),
    *(_onnx(op, "128x3072:positive") for op in ("log", "sqrt")),
    *(_onnx(op, "128x3072:unit") for op in ("asin", "acos", "atanh")),
    *(_onnx(op, "128x3072") for op in ("softplus", "mish", "elu", "hard_swish", "swish", "floor")),
    _onnx("gelu", "128x3072", approximate="tanh"),
    _onnx("sigmoid", "1x32x113x113"),
    _onnx("add", "32x128x768", "128x768"),
    _onnx("mul", "8x64x56x56", "8x64x1x1"),
    _onnx("where", "12x128x128:bool", "12x128x128", "1"),
)

_MOVEMENT = (
    _onnx("transpose", "8x128x12x64", perm=[0, 2, 1, 3]),
    _onnx("transpose", "8x56x56x64", perm=[0, 3, 1, 2]),
    _onnx("concat", "1x64x56x56", "1x128x56x56", "1x32x56x56", together=True, axis=1),
    _onnx("concat", "512x100", "512x33", together=True, axis=1),
    _onnx("pad", "1x64x56x56", pads=[0, 0, 1, 1, 0, 0, 1, 1]),
    _onnx("pad", "1x3x224x224", pads=[0, 0, 3, 3, 0, 0, 3, 3], mode="reflect"),
    _onnx("strided_slice", "1x512x768", starts=[0], ends=[512], axes=[1], steps=[2]),
    _onnx("tile", "1x128x768", repeats=[4, 1, 1]),
    _onnx("expand", "1x8x1x128x64", shape=[1, 8, 4, 128, 64]),
    _onnx("depth_to_space", "1x256x56x56", blocksize=2, mode="CRD"),
)

_PLACES = (
    _onnx("gather", "30522x768", "1x512:int64<30522"),
    _onnx("gather", "64x1000", "64:int64<1000", axis=1),
    _onnx("gather_elements", "512x1000", "512x1000:int64<1000", axis=1),
    _onnx("gather_nd", "64x64x128", "4096x2:int64<64"),
    _onnx("scatter_elements", "512x1000", "512x300:int64<1000", "512x300", axis=1, reduction="add"),
    _onnx("scatter_elements", "1000x256", "3000x256:int64<1000", "3000x256", axis=0, reduction="add"),
    _onnx("scatter_nd", "10000x128", "4096x1:int64<10000", "4096x128", reduction="add"),
)

_IMAGES = (
    _onnx("max_pool", "1x64x112x112", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    _onnx("max_pool", "8x256x13x13", kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]),
    _onnx("average_pool", "1x128x56x56", kernel_shape=[2, 2], strides=[2, 2]),
    _onnx("average_pool", "1x192x35x35", kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]),
    _onnx("global_average_pool", "8x2048x7x7"),
    _onnx("resize", "1x64x56x56", scales=[1.0, 1.0, 2.0, 2.0], coordinate_transformation_mode="asymmetric"),
    _onnx("resize", "1x64x56x56", scales=[1.0, 1.0, 2.0, 2.0], mode="linear"),
    _onnx("resize", "1x3x480x640", sizes=[1, 3, 224, 224], mode="linear"),
    _onnx("resize", "1x3x100x100", sizes=[1, 3, 224, 224], mode="cubic"),
    _onnx("resize", "1x64x1000", scales=[1.0, 1.0, 1.5], mode="linear"),
    _onnx("resize", "1x16x32x32x32", scales=[1.0, 1.0, 2.0, 2.0, 2.0], mode="linear"),
    _onnx("resize", "1x3x480x640", sizes=[1, 3, 178, 237], mode="linear", antialias=True, exclude_outside=True),
    _onnx("grid_sample", "1x32x56x56", "1x56x56x2:unit", align_corners=True),
)

_NORMS = (
    _onnx("batch_normalization", "8x64x56x56", "64", "64", "64", "64:positive"),
    _onnx("instance_normalization", "8x64x56x56", "64", "64"),
    _onnx("group_normalization", "2x320x64x64", "320", "320", num_groups=32),
    _onnx("layer_normalization", "512x768", "768", "768"),
    _onnx("rms_normalization", "512x4096", "4096"),
    _onnx("log_softmax", "64x30522"),
    _onnx("softmax", "4x21x128x128", axis=1),
)

_REDUCTIONS = (
    _onnx("reduce_sum", "8x64x56x56", axes=[0, 2, 3], keepdims=False),
    _onnx("reduce_max", "64x1000x33", axes=[1], keepdims=False),
    _onnx("reduce_mean", "32x197x768", axes=[1], keepdims=False),
    _onnx("reduce_log_sum_exp", "512x1000", axes=[1], keepdims=False),
    _onnx("arg_max", "64x30522", axis=1, keepdims=False),
    _onnx("arg_max", "8x21x65x65", axis=1, keepdims=False),
)

_GRU = ("1x768x128:small", "1x768x256:small", "1x1536:small")
_IN_ORDER = (
    _onnx("cum_sum", "512x1000", axis=1),
    _onnx("cum_sum", "1000x512", axis=0),
    _onnx("cum_sum", "1x1000000", axis=1),
    _onnx("top_k", "64x1000", K=[5]),
    _onnx("top_k", "1x50257", K=[50]),
    _onnx("top_k", "100x8400", K=[300]),
    _onnx("lstm", "35x20x200", "1x800x200:small", "1x800x200:small", "1x1600:small", hidden_size=200),
    _onnx("lstm", "100x1x128", "1x1024x128:small", "1x1024x256:small", "1x2048:small", hidden_size=256),
    _onnx("gru", "50x16x128", *_GRU, hidden_size=256, linear_before_reset=True),
)

_PRODUCTS = (
    _onnx("mat_mul", "32x197x64", "32x64x197"),
    _onnx("gemm", "1x2048", "1000x2048", "1000", transB=True),
    _onnx("attention", "2x4x512x64", "2x4x512x64", "2x4x512x64"),
    _onnx("attention", "1x12x197x64", "1x12x197x64", "1x12x197x64", is_causal=True),
    _onnx("mat_mul_integer", "128x768:int8", "768x768:int8"),
    _onnx("mat_mul_integer", "256x512:int8", "512x1000:int8"),
)

ONNX = (*_POINTWISE, *_MOVEMENT, *_PLACES, *_IMAGES, *_NORMS, *_REDUCTIONS, *_IN_ORDER, *_PRODUCTS)
ROWS = (*(_common(op, shapes) for op, shapes in CASES), *ONNX)
