"""Models written as users write them, of ONNX's operators and others: compiled, differentiated, compared with numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import opgen
from generated import nn_ops, onnx_ops

Array = np.ndarray[Any, Any]
SEED = 11


# A block of a transformer -----------------------------------------------------------------------


def attention(x: Any, p: Mapping[str, Any], heads: int, mask: Any = None) -> Any:
    """Attention with the heads side by side in the last dimension, as everybody writes it."""
    n, t, d = x.shape
    parts = onnx_ops.split(onnx_ops.add(onnx_ops.mat_mul(x, p["qkv"]), p["qkv_bias"]), axis=2, results=3)
    q, k, v = (onnx_ops.transpose(onnx_ops.reshape(z, [n, t, heads, -1]), perm=[0, 2, 1, 3]) for z in parts)
    scores = onnx_ops.mat_mul(q, onnx_ops.transpose(k, perm=[0, 1, 3, 2])) * (d // heads) ** -0.5
    if mask is not None:
        scores = onnx_ops.where(mask, scores, np.asarray(-1e4, x.dtype))
    mixed = onnx_ops.mat_mul(onnx_ops.softmax(scores, axis=-1), v)
    joined = onnx_ops.reshape(onnx_ops.transpose(mixed, perm=[0, 2, 1, 3]), [n, t, d])
    return onnx_ops.mat_mul(joined, p["out"])


def transformer(x: Any, p: Mapping[str, Any], heads: int = 2, mask: Any = None) -> Any:
    h = x + attention(onnx_ops.layer_normalization(x, p["scale"], p["bias"]), p, heads, mask)
    inner = onnx_ops.gelu(onnx_ops.mat_mul(onnx_ops.layer_normalization(h, p["scale"], None), p["up"]))
    return h + onnx_ops.mat_mul(inner, p["down"])


def transformer_in_numpy(x: Array, p: Mapping[str, Array], heads: int = 2, mask: Array | None = None) -> Any:
    def normalised(z: Array) -> Any:
        centred = z - z.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p["scale"]

    def gelu(z: Array) -> Any:  # its error function by a series, good to 1e-15 where |z| < 4
        u, term, total = z / np.sqrt(2), z / np.sqrt(2), np.zeros_like(z)
        for number in range(60):
            total = total + term / (2 * number + 1)
            term = term * -u * u / (number + 1)
        return z / 2 * (1 + total * 2 / np.sqrt(np.pi))

    n, t, d = x.shape
    parts = np.split((normalised(x) + p["bias"]) @ p["qkv"] + p["qkv_bias"], 3, 2)
    q, k, v = (z.reshape(n, t, heads, -1).transpose(0, 2, 1, 3) for z in parts)
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(d // heads)
    if mask is not None:
        scores = np.where(mask, scores, -1e4)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = weights / weights.sum(-1, keepdims=True) @ v
    h = x + mixed.transpose(0, 2, 1, 3).reshape(n, t, d) @ p["out"]
    return h + gelu(normalised(h) @ p["up"]) @ p["down"]


def weights_of_transformer() -> dict[str, Array]:
    d, rng = 8, np.random.default_rng(SEED)
    shapes = {
        "qkv": (d, 3 * d),
        "out": (d, d),
        "up": (d, 4 * d),
        "down": (4 * d, d),
        "qkv_bias": (3 * d,),
        "bias": (d,),
    }
    found = {name: rng.standard_normal(s) / np.sqrt(s[0]) for name, s in shapes.items()}
    return found | {"scale": rng.uniform(0.5, 1.5, d)}


def test_a_block_of_a_transformer() -> None:
    compiled = opgen.compile(transformer)
    p = weights_of_transformer()
    for shape in ((1, 3, 8), (2, 5, 8), (2, 1, 8)):
        x = np.random.default_rng(SEED).standard_normal(shape)
        found = compiled(x, p)
        np.testing.assert_allclose(found, transformer(x, p), rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(found, transformer_in_numpy(x, p), rtol=1e-12, atol=1e-12)


def test_choices_by_arguments_and_shapes_are_made_when_it_is_captured() -> None:
    compiled = opgen.compile(transformer)
    p = weights_of_transformer()
    x = np.random.default_rng(SEED).standard_normal((2, 4, 8))
    mask = np.tril(np.ones((4, 4), bool))
    for heads in (1, 4):
        found = compiled(x, p, heads=heads, mask=mask)
        np.testing.assert_allclose(found, transformer_in_numpy(x, p, heads, mask), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(compiled(x, p), transformer_in_numpy(x, p), rtol=1e-12, atol=1e-12)


# A small network of convolutions ----------------------------------------------------------------


def network(x: Any, p: Mapping[str, Any]) -> Any:
    """Convolutions of ONNX, and one of this project's own, with pooling, groups and a classifier."""
    y = onnx_ops.relu(onnx_ops.conv(x, p["first"], p["bias"], strides=[2, 2], pads=[1, 1, 1, 1]))
    y = onnx_ops.group_normalization(y, p["scale"], p["shift"], num_groups=2)
    y = onnx_ops.concat([y, onnx_ops.average_pool(y, kernel_shape=[3, 3], pads=[1, 1, 1, 1])], axis=1)
    turned = nn_ops.conv2d(onnx_ops.transpose(y, perm=[0, 2, 3, 1]), p["second"], [1, 1, 1, 1], "SAME")
    pooled = onnx_ops.global_average_pool(onnx_ops.transpose(turned, perm=[0, 3, 1, 2]))
    return onnx_ops.gemm(onnx_ops.flatten(pooled), p["last"], p["last_bias"])


def convolved(x: Array, w: Array, stride: int = 1, pad: int = 1) -> Any:
    """x of NCHW, w of OIHW."""
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwrs,ocrs->nohw", windows, w)


def network_in_numpy(x: Array, p: Mapping[str, Array]) -> Any:
    y = np.maximum(convolved(x, p["first"], 2) + p["bias"][:, None, None], 0)
    n, c, h, w = y.shape
    groups = y.reshape(n, 2, -1)
    groups = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    y = groups.reshape(n, c, h, w) * p["scale"][:, None, None] + p["shift"][:, None, None]
    box = np.ones((c, 1, 3, 3)) * np.eye(c)[:, :, None, None]
    pooled = convolved(y, box) / convolved(np.ones_like(y), box)
    turned = convolved(np.concatenate([y, pooled], 1), p["second"].transpose(3, 2, 0, 1))
    return turned.mean((2, 3)) @ p["last"] + p["last_bias"]


def weights_of_network(dtype: Any) -> dict[str, Array]:
    rng = np.random.default_rng(SEED)
    shapes = {"first": (4, 3, 3, 3), "bias": (4,), "scale": (4,), "shift": (4,), "second": (3, 3, 8, 5), "last": (5, 2),
              "last_bias": (2,)}  # fmt: skip
    return {name: (rng.standard_normal(s) / 2).astype(dtype) for name, s in shapes.items()}


def test_a_network_of_convolutions() -> None:
    compiled = opgen.compile(network)
    p = weights_of_network(np.float32)
    for shape in ((1, 3, 8, 8), (2, 3, 5, 7)):
        x = np.random.default_rng(SEED).standard_normal(shape).astype(np.float32)
        found = compiled(x, p)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, network(x, p), rtol=5e-5, atol=5e-5)
        np.testing.assert_allclose(found, network_in_numpy(x, p), rtol=5e-5, atol=5e-5)


# What users do with them ------------------------------------------------------------------------


def test_models_within_models_and_results_that_are_named() -> None:
    inner = opgen.compile(network)
    p = weights_of_network(np.float32)

    @opgen.compile
    def both(x: Any, p: Any, scale: float = 1.0) -> dict[str, Any]:
        left, right = onnx_ops.split(x, axis=0, results=2)
        joined = onnx_ops.concat([inner(left, p), inner(right, p)], axis=0)
        return {"logits": joined * scale, "best": [onnx_ops.arg_max(joined, axis=1, keepdims=False)]}

    x = np.random.default_rng(SEED).standard_normal((2, 3, 5, 7)).astype(np.float32)
    found = both(x, p, scale=2.0)
    expected = network_in_numpy(x, p)
    np.testing.assert_allclose(found["logits"], 2 * expected, rtol=5e-5, atol=5e-5)
    np.testing.assert_array_equal(found["best"][0], expected.argmax(1))
    text = both.model(x, p, scale=2.0).explain()
    assert "fuse" in text
    assert "conv" in text


def test_results_go_where_the_caller_says_and_tensors_come_from_elsewhere() -> None:
    class Lent:
        """An array as another library lends it."""

        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **_: Any) -> Any:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    compiled = opgen.compile(lambda x, w: onnx_ops.softmax(onnx_ops.mat_mul(x, w)))
    rng = np.random.default_rng(SEED)
    for rows in (2, 5):
        x, w = rng.random((rows, 3)), rng.random((3, 4))
        out = np.empty((rows, 4))
        assert compiled(x, w, out=out) is out
        e = np.exp(x @ w)
        np.testing.assert_allclose(out, e / e.sum(-1, keepdims=True), rtol=1e-12)
        np.testing.assert_array_equal(compiled(Lent(x), w=Lent(w)), out)


# Gradients --------------------------------------------------------------------------------------


def assert_slopes(function: Callable[..., Any], x: Array, p: Mapping[str, Array], **given: Any) -> None:
    """The gradients of a weighted sum of the results, by all arguments, against differences along random directions."""
    rng = np.random.default_rng(SEED)
    grad = rng.standard_normal(function(x, p, **given).shape)
    by_x, by_p = opgen.gradient(opgen.compile(function), wrt=("x", "p"))(x, p, **given, grad=grad)
    for name in ("x", *p):
        along = rng.standard_normal((x if name == "x" else p[name]).shape)
        sums = []
        for step in (1e-6, -1e-6):
            moved = x + step * along if name == "x" else x
            weights = {n: w + step * along if n == name else w for n, w in p.items()}
            sums.append(float(np.sum(function(moved, weights, **given) * grad)))
        expected = (sums[0] - sums[1]) / 2e-6
        found = float(np.sum((by_x if name == "x" else by_p[name]) * along))
        assert abs(found - expected) <= 1e-6 * (1 + abs(expected)), f"seed {SEED}, by {name}: {found}, not {expected}"


def test_gradients_of_a_transformer() -> None:
    x = np.random.default_rng(SEED).standard_normal((2, 3, 8))
    p = weights_of_transformer()
    assert_slopes(transformer, x, p)
    assert_slopes(transformer, x, p, heads=4, mask=np.tril(np.ones((3, 3), bool)))


def test_gradients_of_a_network() -> None:
    assert_slopes(network, np.random.default_rng(SEED).standard_normal((2, 3, 6, 5)), weights_of_network(np.float64))
