"""Casts and quantisation of ONNX's operators against numpy and ml_dtypes: types of at most 8 bits, scales, messages."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import opgen
from opgen.diagnostics.calls import ArgumentError

SEED = 26
SPECS = Path(__file__).parents[2] / "specs" / "onnx"
FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
SHAPE = (3, 6, 5)
GRANULARITIES: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "all": ((), {}),
    "one": ((1,), {}),
    "axis": ((6,), {"axis": 1}),
    "last": ((5,), {"axis": -1}),
    "blocks": ((3, 2, 5), {"axis": 1, "block_size": 3}),
    "uneven blocks": ((3, 6, 3), {"axis": 2, "block_size": 2}),
}


@functools.cache
def ops(family: str) -> Any:
    return opgen.load(SPECS / f"{family}.op")


def dtype(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def spread(scale: Any, axis: int = 1, block_size: int = 0) -> Any:
    """A scale for each element."""
    if scale.size == 1:
        return scale.reshape(())
    if block_size:
        return np.repeat(scale, block_size, axis).take(range(SHAPE[axis]), axis)
    return scale.reshape([-1 if d == axis % 3 else 1 for d in range(3)])


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("kind", ["uint8", "int16", "int4", "uint2"])
def test_there_and_back(kind: str, granularity: str) -> None:
    rng = np.random.default_rng(SEED)
    shape, attributes = GRANULARITIES[granularity]
    limits = ml_dtypes.iinfo(dtype(kind))
    x = (rng.standard_normal(SHAPE) * limits.max).astype(np.float32)
    scale = rng.uniform(0.5, 2, shape).astype(np.float32)
    zero = rng.integers(0, 2, shape).astype(dtype(kind))
    each, moved = (spread(a, **attributes) for a in (scale, zero.astype(np.float32)))
    wanted = np.clip(np.rint(x / each) + moved, int(limits.min), int(limits.max))
    y = ops("quantised").quantize_linear(x, scale, zero, **attributes)
    assert y.dtype == dtype(kind)
    np.testing.assert_array_equal(y.astype(np.float32), wanted, f"seed {SEED}")
    back = ops("quantised").dequantize_linear(y, scale, zero, **attributes)
    np.testing.assert_array_equal(back, (wanted.astype(np.float32) - moved) * each, f"seed {SEED}")


@pytest.mark.parametrize("kind", FLOAT8)
@pytest.mark.parametrize("source", ["float32", "float16", "int32"])
def test_a_cast_to_8_bits_saturates_or_not(kind: str, source: str) -> None:
    special = [0, 1, -3, 239, 240, 241, 447, 449, 465, 60000, -60000]
    x = np.array(special, source)
    if source != "int32":
        x = np.concatenate([x, np.array([math.inf, -math.inf, math.nan, 0.3, -1e-4], source)])
    plain = ops("pointwise").cast(x, to=kind, saturate=False)
    held = ops("pointwise").cast(x, to=kind)
    most = ml_dtypes.finfo(dtype(kind)).max
    wide = x.astype(np.float32)
    assert plain.dtype == held.dtype == dtype(kind)
    np.testing.assert_array_equal(plain.astype(np.float32), wide.astype(dtype(kind)).astype(np.float32))
    clipped = np.clip(wide, -np.float32(most), np.float32(most)).astype(dtype(kind))
    np.testing.assert_array_equal(held.astype(np.float32), clipped.astype(np.float32))


@pytest.mark.parametrize("kind", ["int4", "uint4", "int2"])
def test_a_cast_of_infinity_to_a_few_bits_is_as_in_the_reference(kind: str) -> None:
    """Cast-25 says "floating point to fixed point: undefined if OOR"; its reference keeps the low bits of 8."""
    x = np.array([math.inf, -math.inf, math.nan, 40, 3.5], dtype("float8_e5m2"))
    node = helper.make_node("Cast", ["x"], ["y"], to=getattr(TensorProto, kind.upper()))
    kinds = [TensorProto.FLOAT8E5M2, getattr(TensorProto, kind.upper())]
    ports = [helper.make_tensor_value_info(n, k, [5]) for n, k in zip("xy", kinds, strict=True)]
    model = helper.make_model(
        helper.make_graph([node], "g", ports[:1], ports[1:]), opset_imports=[helper.make_opsetid("", 25)]
    )
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    assert isinstance(expected, np.ndarray)
    found = ops("pointwise").cast(x, to=kind)
    np.testing.assert_array_equal(found.astype(np.int32), expected.astype(np.int32))


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [("up", [1, 2, 4, 2.0**-127]), ("down", [1, 1, 2, 2.0**-127]), ("nearest", [1, 2, 2, 2.0**-127])],
)
def test_powers_of_two(mode: str, wanted: list[float]) -> None:
    x = np.array([1, 1.5, 2.5, 0, np.inf, np.nan, -1], np.float32)
    found = ops("pointwise").cast(x, to="float8_e8m0fnu", round_mode=mode).astype(np.float32)
    np.testing.assert_array_equal(found, [*wanted, 2.0**127, np.nan, np.nan])
    beyond = ops("pointwise").cast(x, to="float8_e8m0fnu", round_mode=mode, saturate=False).astype(np.float32)
    np.testing.assert_array_equal(beyond, [*wanted[:3], np.nan, np.nan, np.nan, np.nan])


def test_elements_of_8_bits_are_moved_as_they_are() -> None:
    codes = np.arange(256, dtype=np.uint8)
    for name in (*FLOAT8, "float8_e8m0fnu"):
        x = codes.view(dtype(name)).reshape(16, 16)
        found = opgen.load(SPECS / "movement.op").transpose(x)
        np.testing.assert_array_equal(found.view(np.uint8), codes.reshape(16, 16).T)


def test_powers_of_mixed_types() -> None:
    base, exponent = np.array([2, 3, -2], np.int32), np.array([0.5, 2, 3], np.float32)
    assert ops("pointwise").power(base, exponent).tolist() == [1, 9, -8]
    wrapped = np.array(3**31, np.uint64).astype(np.uint32).astype(np.int32)
    assert ops("pointwise").power(base, np.array([2, 31, 3], np.uint64)).tolist() == [4, wrapped, -8]
    assert ops("pointwise").power(base.astype(np.float32), np.array([-1, 2, 3], np.int64)).tolist() == [0.5, 9, -8]


def test_what_does_not_fit_is_told() -> None:
    x, q = np.zeros(SHAPE, np.float32), ops("quantised")
    with pytest.raises(ArgumentError, match=r"QuantizeLinear: argument '.*': expected .*"):
        q.quantize_linear(x, np.ones(4, np.float32), axis=1)
    with pytest.raises(ArgumentError, match="QuantizeLinear: argument 'y_zero_point': expected one for each scale"):
        q.quantize_linear(x, np.ones(6, np.float32), np.zeros(5, np.uint8), axis=1)
    with pytest.raises(ArgumentError, match="expected a block_size, for scales of blocks"):
        q.quantize_linear(x, np.ones((3, 2, 5), np.float32), axis=1)
    with pytest.raises(
        ArgumentError, match="DequantizeLinear: argument 'x_zero_point': expected a tensor of type uint8"
    ):
        q.dequantize_linear(np.zeros(3, np.uint8), np.ones((), np.float32), np.zeros((), np.int8))


@pytest.mark.parametrize("zero", [0, 4, 5, 127])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_ties_are_rounded_before_the_zero_point_is_added(kind: str, zero: int) -> None:
    """Products by halves: as QuantizeLinear makes of the exact ones, whether the zero point is odd or not."""
    limits = np.iinfo(kind)
    x = np.arange(limits.min, limits.max + 1, dtype=kind).reshape(-1, 1)
    one, half, none, moved = np.float32(1), np.float32(0.5), np.zeros((), kind), np.array(zero, kind)
    wanted = ops("quantised").quantize_linear(x.astype(np.float32) * half, one, moved)
    np.testing.assert_array_equal(wanted, np.clip(np.rint(x * half) + zero, limits.min, limits.max).astype(kind))
    w = np.ones((1, 1), kind)
    product = ops("quantised").q_linear_mat_mul(x, half, none, w, one, none, one, moved)
    np.testing.assert_array_equal(product, wanted)
    images = ops("quantised").q_linear_conv(
        x.reshape(1, 1, 16, 16), half, none, w.reshape(1, 1, 1, 1), one, none, one, moved
    )
    np.testing.assert_array_equal(images.reshape(-1, 1), wanted)


def test_zeros_alone_have_a_scale_of_1() -> None:
    """As ONNX Runtime has it, so that nothing is divided by 0."""
    y, scale, zero = ops("quantised").dynamic_quantize_linear(np.zeros(3, np.float32))
    assert (y.tolist(), float(scale), int(zero)) == ([0, 0, 0], 1.0, 0)
