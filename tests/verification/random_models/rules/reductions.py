"""Operators that reduce, order or accumulate along axes."""

from __future__ import annotations

import numpy as np

from tests.verification.random_models.build import Builder, UnusableError, Value
from tests.verification.random_models.rules import rule
from tests.verification.random_models.rules.pointwise import FLOATS, NUMBERS

REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip


@rule(3)
def reduction(b: Builder) -> None:
    operator = b.choose.choice(REDUCTIONS)
    kinds = (np.float32, np.float64, np.int64, np.int32) if operator in REDUCTIONS[:5] else (np.float32, np.float64)
    x = b.value(kinds)
    axes = sorted(b.choose.sample(range(x.rank), b.choose.randrange(x.rank + 1)))
    turned = [a - x.rank if b.choose.random() < 0.3 else a for a in axes]
    given: list[Value | None] = [b.numbers(*turned)] if b.choose.random() < 0.8 else []
    if x.dtype.kind == "i" and operator == "ReduceMean":
        raise UnusableError("the mean of integers is rounded by each in its way")
    b.node(operator, [x, *given], keepdims=b.choose.randrange(2), noop_with_empty_axes=b.choose.randrange(2))


@rule(1)
def winner(b: Builder) -> None:
    x = b.value((np.float32, np.float64, np.int32, np.int64))
    b.node(
        b.choose.choice(("ArgMax", "ArgMin")),
        [x],
        axis=b.axis(x),
        keepdims=b.choose.randrange(2),
        select_last_index=b.choose.randrange(2),
    )


@rule(2)
def softmax(b: Builder) -> None:
    """The reference evaluator takes the logarithm of a softmax, which is -inf where numbers are far apart."""
    x = b.value(FLOATS)
    near = all((np.abs(a) < 20).all() for a in x.arrays)
    b.node(b.choose.choice(("Softmax", "Softmax", "Hardmax", "LogSoftmax" if near else "Softmax")), [x], axis=b.axis(x))


@rule(1)
def running_sum(b: Builder) -> None:
    x = b.value((np.float32, np.float64, np.int32, np.int64))
    axis = b.constant(b.axis(x), np.int64)
    b.node("CumSum", [x, axis], exclusive=b.choose.randrange(2), reverse=b.choose.randrange(2))


@rule(1)
def largest(b: Builder) -> None:
    x = b.value((np.float32, np.float64, np.int64))
    axis = b.axis(x)
    least = min(x.dims[axis])
    count = b.choose.randint(0 if b.empty else 1, max(1, least))
    b.node("TopK", [x, b.numbers(count)], 2, axis=axis, largest=b.choose.randrange(2), sorted=1)


@rule(0.7)
def lp(b: Builder) -> None:
    """Of order 2: for order 1 the reference evaluator divides by the sum, not by that of magnitudes."""
    x = b.value((np.float32, np.float64))
    b.node("LpNormalization", [x], axis=b.axis(x), p=2)


@rule(0.3)
def size_of(b: Builder) -> None:
    b.node("Size", [b.value(NUMBERS)])
