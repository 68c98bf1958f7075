"""Products of matrices, windows and normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.verification.random_models.build import BINDINGS, Builder, Dims, UnusableError, Value
from tests.verification.random_models.rules import rule
from tests.verification.random_models.rules.pointwise import FLOATS

REAL = (np.float32, np.float32, np.float64)


@rule(3)
def product(b: Builder) -> None:
    x = b.value(FLOATS, lambda v: v.rank >= 1)
    dims: tuple[Dims, ...] = (x.dims[-1], b.size())
    if x.rank > 2 and b.choose.random() < 0.3:
        dims = (*x.dims[:-2], *dims)
    b.node("MatMul", [x, b.operand(x.dtype, dims, constant=0.8)])


@rule(1.5)
def gemm(b: Builder) -> None:
    x = b.value(REAL, rank=2)
    by, across, turned = b.size(), b.choose.randrange(2), b.choose.randrange(2)
    inner, rows = (x.dims[0], x.dims[1]) if across else (x.dims[1], x.dims[0])
    y = b.operand(x.dtype, (by, inner) if turned else (inner, by), constant=0.8)
    bias = [b.operand(x.dtype, b.choose.choice(((by,), (rows, by), ((1,) * BINDINGS, by), ())))]
    b.node(
        "Gemm",
        [x, y, *(bias if b.choose.random() < 0.7 else [])],
        transA=across,
        transB=turned,
        alpha=b.choose.choice((1.0, 0.5)),
        beta=b.choose.choice((1.0, 2.0)),
    )


@rule(0.5)
def einsum(b: Builder) -> None:
    x = b.value(REAL, rank=3)
    text = b.choose.choice(("bij,bjk->bik", "bij,bkj->bik", "bij->bji", "bij->b", "bij,bij->bi"))
    first, _, rest = text.partition("->")[0].partition(",")
    sizes = dict(zip(first, x.dims, strict=True))
    others = [b.operand(x.dtype, tuple(sizes.setdefault(c, b.size()) for c in rest))] if rest else []
    b.node("Einsum", [x, *others], equation=text)


def _window(b: Builder, x: Value, largest: int = 3) -> tuple[list[int], dict[str, Any]]:
    """The shape of a window that fits, and attributes of how it moves."""
    spatial = x.rank - 2
    taps = [b.choose.randint(1, largest) for _ in range(spatial)]
    attributes: dict[str, Any] = {"strides": [b.choose.choice((1, 1, 2, 3)) for _ in taps]}
    if b.choose.random() < 0.3:
        attributes["dilations"] = [b.choose.choice((1, 2)) for _ in taps]
    if b.choose.random() < 0.15 and "dilations" not in attributes:
        attributes["auto_pad"] = b.choose.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    else:
        reach = [(t - 1) * d for t, d in zip(taps, attributes.get("dilations", [1] * spatial), strict=True)]
        attributes["pads"] = [
            b.choose.randint(0, min(r, 2, t - 1)) for _ in range(2) for r, t in zip(reach, taps, strict=True)
        ]
    extent = [(t - 1) * d + 1 for t, d in zip(taps, attributes.get("dilations", [1] * spatial), strict=True)]
    if any(n < e for dim, e in zip(x.dims[2:], extent, strict=True) for n in dim):
        raise UnusableError("the window is larger than the image")
    return taps, attributes


def _image(b: Builder, dtypes: Any = REAL) -> Value:
    x = b.value(
        dtypes, lambda v: v.rank in (3, 4) and min(min(d) for d in v.dims[1:]) > 0, rank=b.choose.choice((3, 4, 4))
    )
    if len(set(x.dims[1])) > 1:
        raise UnusableError("channels are constant")
    return x


@rule(3)
def convolution(b: Builder) -> None:
    """A convolution of finite numbers: the evaluator multiplies infinities by zeros that it adds."""
    x = _image(b)
    if not all(np.isfinite(a).all() for a in x.arrays):
        raise UnusableError("not finite")
    channels = x.dims[1][0]
    groups = b.choose.choice([g for g in (1, 1, channels, 2) if channels % g == 0])
    taps, attributes = _window(b, x)
    made = groups * b.choose.choice((1, 2, 3))
    w = b.weights(x.dtype, tuple((n,) * BINDINGS for n in (made, channels // groups, *taps)))
    bias = [b.weights(x.dtype, ((made,) * BINDINGS,))] if b.choose.random() < 0.5 else []
    b.node("Conv", [x, w, *bias], group=groups, kernel_shape=taps, **attributes)


@rule(1)
def transposed_convolution(b: Builder) -> None:
    x = _image(b)
    channels = x.dims[1][0]
    taps = [b.choose.randint(1, 3) for _ in x.dims[2:]]
    w = b.weights(x.dtype, tuple((n,) * BINDINGS for n in (channels, b.choose.choice((1, 2, 3)), *taps)))
    strides = [b.choose.choice((1, 2)) for _ in taps]
    extra = [b.choose.randrange(s) for s in strides]
    b.node("ConvTranspose", [x, w], strides=strides, output_padding=extra, kernel_shape=taps)


@rule(2)
def pool(b: Builder) -> None:
    """Pools whose sizes and values nobody doubts.

    Pools of NaN are NaN here, as in PyTorch; ONNX Runtime and the reference evaluator pass over them.  The evaluator
    gives other sizes for SAME_LOWER and for ceil_mode, and for a GlobalMaxPool over one dimension; where strides are
    larger than windows, it pads SAME by negative numbers.
    """
    x = _image(b, (np.float32, np.float64))
    if any(np.isnan(a).any() for a in x.arrays):
        raise UnusableError("NaN in a pool")
    taps, attributes = _window(b, x)
    operator = b.choose.choice(("MaxPool", "MaxPool", "AveragePool"))
    if operator == "AveragePool":
        attributes["count_include_pad"] = b.choose.randrange(2)
    if attributes.get("auto_pad") == "SAME_LOWER":
        attributes["auto_pad"] = "SAME_UPPER"
    if "auto_pad" in attributes and any(s > t for s, t in zip(attributes["strides"], taps, strict=True)):
        raise UnusableError("windows that leave rows out")
    b.node(operator, [x], kernel_shape=taps, **attributes)


@rule(0.5)
def global_pool(b: Builder) -> None:
    x = _image(b)
    b.node("GlobalMaxPool" if x.rank == 4 and b.choose.random() < 0.5 else "GlobalAveragePool", [x])


@rule(1.5)
def batch_normalisation(b: Builder) -> None:
    x = _image(b)
    parts = [b.operand(x.dtype, (x.dims[1],), constant=1.0) for _ in range(4)]
    b.constants[parts[3].name] = np.abs(b.constants[parts[3].name]) + x.dtype.type(0.5)
    parts[3] = Value(parts[3].name, (b.constants[parts[3].name],) * BINDINGS)
    b.node("BatchNormalization", [x, *parts])


@rule(1)
def layer_normalisation(b: Builder) -> None:
    x = b.value(REAL, lambda v: v.rank > 0)
    axis = b.axis(x)
    dims = x.dims[axis % x.rank :]
    bias = [b.operand(x.dtype, dims)] if b.choose.random() < 0.6 else []
    b.node("LayerNormalization", [x, b.operand(x.dtype, dims), *bias], axis=axis)


@rule(0.7)
def instance_normalisation(b: Builder) -> None:
    x = _image(b)
    b.node("InstanceNormalization", [x, *(b.operand(x.dtype, (x.dims[1],), constant=0.9) for _ in range(2))])


@rule(0.4)
def group_normalisation(b: Builder) -> None:
    """In float32: others compute the statistics of float64 in float32, too."""
    x = _image(b, (np.float32,))
    channels = x.dims[1][0]
    groups = b.choose.choice([g for g in (1, 2, channels) if channels % g == 0])
    parts = [b.operand(x.dtype, (x.dims[1],), constant=0.9) for _ in range(2)]
    b.node("GroupNormalization", [x, *parts], num_groups=groups)


@rule(0.4)
def local_response(b: Builder) -> None:
    """Over several channels of finite numbers: for one channel the reference evaluator leaves the value out."""
    x = _image(b, (np.float32,))
    if not all(np.isfinite(a).all() for a in x.arrays):
        raise UnusableError("not finite")
    b.node("LRN", [x], size=b.choose.choice((3, 5)))


@rule(0.7)
def resize(b: Builder) -> None:
    x = _image(b, (np.float32,))
    scales = [1.0, 1.0, *(b.choose.choice((2.0, 1.0, 3.0, 0.5)) for _ in x.dims[2:])]
    mode = b.choose.choice(("nearest", "linear"))
    rounded: dict[str, Any] = {"nearest_mode": "floor"} if mode == "nearest" else {}
    b.node(
        "Resize",
        [x, None, b.constant(scales, np.float32)],
        mode=mode,
        coordinate_transformation_mode=b.choose.choice(("asymmetric", "half_pixel", "align_corners")),
        **rounded,
    )
