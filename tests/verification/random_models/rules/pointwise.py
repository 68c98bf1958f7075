"""Operators that work element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.verification.random_models.build import Builder, UnusableError, Value
from tests.verification.random_models.rules import rule

FLOATS = (np.float32, np.float32, np.float32, np.float64, np.float16)
INTEGERS = (np.int64, np.int32, np.int8, np.uint8)
NUMBERS = (*FLOATS, np.int64, np.int32)
ALL = (*NUMBERS, np.int8, np.uint8, np.bool_)
PLAIN = (
    "Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Erf", "Sin",
    "Cos", "Softplus", "Softsign", "HardSigmoid", "LeakyRelu", "Elu", "Selu", "Celu", "Mish", "HardSwish",
    "ThresholdedRelu", "Reciprocal", "Gelu", "Identity", "Atan", "Tan", "Sinh", "Cosh", "Asinh", "Acos", "Atanh",
)  # fmt: skip
SINGLE = ("Erf", "Gelu", "HardSwish")
"""The reference evaluator computes these in float32, or with constants in float32, whatever the type."""
SLOPED = {"LeakyRelu": "alpha", "Elu": "alpha", "Celu": "alpha", "ThresholdedRelu": "alpha"}


@rule(4)
def unary(b: Builder) -> None:
    operator = b.choose.choice(PLAIN)
    attributes: dict[str, Any] = {SLOPED[operator]: b.choose.choice((0.1, 0.5, 2.0))} if operator in SLOPED else {}
    b.node(operator, [b.value((np.float32,) if operator in SINGLE else FLOATS)], **attributes)


@rule(1)
def integers(b: Builder) -> None:
    b.node(b.choose.choice(("Neg", "Abs", "Sign", "Identity")), [b.value((np.int64, np.int32, np.int8))])


@rule(4)
def binary(b: Builder) -> None:
    operator = b.choose.choice(("Add", "Sub", "Mul", "Div", "Add", "Mul", "Min", "Max"))
    x = b.value(FLOATS if operator == "Div" else (*NUMBERS, np.int32))
    y = b.beside(x)
    b.node(operator, [x, y] if b.choose.random() < 0.7 else [y, x])


@rule(0.5)
def power(b: Builder) -> None:
    x = b.node("Abs", [b.value((np.float32, np.float64))])[0]
    exponent = (
        b.constant(b.choose.choice((0.5, 2.0, 3.0, -1.0, 0.0)), x.dtype) if b.choose.random() < 0.6 else b.beside(x)
    )
    b.node("Pow", [x, exponent])


@rule(0.7)
def remainder(b: Builder) -> None:
    x = b.value((np.int64, np.int32, np.float32))
    y = b.constant(b.choose.choice((1, 2, 3, -3)), x.dtype)
    b.node("Mod", [x, y], fmod=1 if x.dtype.kind == "f" else b.choose.choice((0, 1)))


@rule(0.5)
def variadic(b: Builder) -> None:
    x = b.value(FLOATS)
    others = [b.beside(x) for _ in range(b.choose.randrange(4))]
    b.node(b.choose.choice(("Sum", "Mean", "Min", "Max")), [x, *others])


@rule(1.5)
def comparison(b: Builder) -> None:
    x = b.value(NUMBERS)
    operator = b.choose.choice(("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"))
    b.node(operator, [x, b.beside(x)])


@rule(0.5)
def classified(b: Builder) -> None:
    b.node(b.choose.choice(("IsNaN", "IsInf")), [b.value((np.float32, np.float64))])


@rule(0.7)
def logic(b: Builder) -> None:
    x = b.value((np.bool_,))
    if b.choose.random() < 0.3:
        b.node("Not", [x])
    else:
        b.node(b.choose.choice(("And", "Or", "Xor", "Equal")), [x, b.beside(x)])


@rule(0.5)
def bits(b: Builder) -> None:
    x = b.value(INTEGERS)
    if b.choose.random() < 0.3:
        b.node("BitwiseNot", [x])
    else:
        b.node(b.choose.choice(("BitwiseAnd", "BitwiseOr", "BitwiseXor")), [x, b.beside(x)])


@rule(1)
def where(b: Builder) -> None:
    x = b.value(ALL)
    condition = b.operand(np.bool_, x.dims[b.choose.randrange(x.rank + 1) :])
    b.node("Where", [condition, x, b.beside(x)])


@rule(1)
def clip(b: Builder) -> None:
    x = b.value(NUMBERS)
    bounds: list[Value | None] = [b.constant(v, x.dtype) if b.choose.random() < 0.8 else None for v in (-2, 3)]
    b.node("Clip", [x, *bounds])


@rule(1)
def prelu(b: Builder) -> None:
    """With slopes that are finite: the evaluator multiplies a zero by its slope."""
    x = b.value((np.float32, np.float64))
    slope = b.operand(x.dtype, x.dims[b.choose.randrange(x.rank + 1) :])
    if not all(np.isfinite(a).all() for a in slope.arrays):
        raise UnusableError("not finite")
    b.node("PRelu", [x, slope])


@rule(1.5)
def cast(b: Builder) -> None:
    """A cast; numbers that the target cannot hold are not cast to integers, which each library does in its way."""
    x = b.value(ALL)
    kinds = [np.float32, np.float64, np.float16, np.bool_]
    if x.dtype.kind != "f" or all((abs(a) < 100).all() for a in x.arrays):
        kinds += [np.int64, np.int32] if x.dtype.kind != "f" else [np.int64, np.int32, np.int8]
    to = np.dtype(b.choose.choice(kinds))
    b.node("Cast", [x], to=helper.np_dtype_to_tensor_dtype(to))


@rule(0.3)
def dropout(b: Builder) -> None:
    b.node("Dropout", [b.value(FLOATS)])
