"""Quantised operators."""

from __future__ import annotations

import numpy as np

from tests.verification.random_models.build import BINDINGS, Builder, Value
from tests.verification.random_models.rules import rule

BYTES = (np.uint8, np.int8)


def _scale(b: Builder) -> Value:
    return b.constant(b.choose.choice((0.5, 0.1, 0.03)), np.float32)


def _zero(b: Builder, dtype: np.dtype[np.generic]) -> Value:
    return b.constant(b.choose.choice((0, 3, 5)), dtype)


@rule(1)
def quantise(b: Builder) -> None:
    x = b.value((np.float32,), lambda v: all(np.isfinite(a).all() and (abs(a) < 1e6).all() for a in v.arrays))
    b.node("QuantizeLinear", [x, _scale(b), _zero(b, np.dtype(b.choose.choice(BYTES)))])


@rule(1)
def dequantise(b: Builder) -> None:
    x = b.value(BYTES)
    b.node("DequantizeLinear", [x, _scale(b), _zero(b, x.dtype)])


@rule(0.4)
def dynamic(b: Builder) -> None:
    x = b.value((np.float32,), lambda v: all(a.size and np.isfinite(a).all() for a in v.arrays))
    b.node("DynamicQuantizeLinear", [x], 3)


@rule(0.6)
def integer_product(b: Builder) -> None:
    x = b.value(BYTES, lambda v: v.rank >= 1)
    w = b.operand(np.dtype(b.choose.choice(BYTES)), (x.dims[-1], b.size()), constant=0.9)
    b.node("MatMulInteger", [x, w, _zero(b, x.dtype), _zero(b, w.dtype)])


@rule(0.6)
def quantised_product(b: Builder) -> None:
    x = b.value(BYTES, lambda v: v.rank >= 1)
    w = b.operand(x.dtype, (x.dims[-1], (b.choose.choice((1, 3, 8)),) * BINDINGS), constant=0.9)
    b.node(
        "QLinearMatMul",
        [x, _scale(b), _zero(b, x.dtype), w, _scale(b), _zero(b, w.dtype), _scale(b), _zero(b, x.dtype)],
    )
