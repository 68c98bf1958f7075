"""Calls of every op of the specs, and of the gradients of each with respect to each of its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from opgen.grad import gradient, load
from opgen.loop.interpret import interpret
from opgen.spec.model.model import Module, OpSpec, Tensor
from tests.harness import Call, random_arrays

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
ROOT = Path(__file__).parents[2]
NN = load(ROOT / "specs" / "nn_ops.op")
SAMPLES = load(ROOT / "tests" / "specs" / "samples.op")


@dataclass(frozen=True)
class Case:
    """A call: `attrs` and `sizes` as a caller gives them."""

    module: Module
    name: str
    shapes: Mapping[str, tuple[int, ...]]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def op(self) -> OpSpec:
        return self.module.op(self.name)

    def call(self, dtype: str = "float64") -> Call:
        return Call(self.module, self.op, self.shapes, self.attrs, self.sizes, dtype)

    @property
    def output(self) -> str:
        return self.op.outputs[0].name

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.call().environment.output_shapes[self.output]

    def __str__(self) -> str:
        return f"{self.name}-{self.attrs.get('data_format', self.attrs.get('mode', ''))}".rstrip("-")


def derivative(case: Case, wrt: str) -> Case:
    """The gradient of a case's op, called on the same shapes."""
    op = gradient(case.module, case.op, wrt)
    module = Module(case.module.name, (op,), case.module.functions)
    given = {i.name for i in op.inputs} - set(case.shapes) - set(case.sizes)
    (cotangent,) = given
    shapes = {**case.shapes, cotangent: case.output_shape}
    return Case(module, op.name, shapes, case.attrs, case.sizes)


def cotangent(gradient_case: Case) -> str:
    """The input of a gradient that holds the gradient with respect to the output."""
    found = gradient_case.op.gradient
    assert found is not None
    return found.cotangents[0]


def differentiable(op: OpSpec) -> list[str]:
    """The inputs on whose values an op depends."""
    return [t.name for t in op.inputs if isinstance(t, Tensor) and not t.shape_only]


def values(case: Case, seed: int) -> Arrays:
    return random_arrays(case.shapes, "float64", seed)


def run(case: Case, arrays: Mapping[str, Array]) -> Array:
    return case.call().run(arrays)[case.output]


GROUPED = {"input": (2, 5, 6, 4), "filter": (3, 2, 2, 6)}
GROUPED_FIRST = {"input": (2, 4, 5, 6), "filter": (3, 2, 2, 6)}
CHANNELS = {"input": (2, 5, 6, 3), "filter": (3, 2, 3, 2)}
CHANNELS_FIRST = {"input": (2, 3, 5, 6), "filter": (3, 2, 3, 2)}
STRIDED = {"strides": [1, 2, 1, 1], "padding": "SAME", "dilations": [1, 1, 2, 1]}
PADDED = {
    "strides": [1, 1, 2, 3], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 0, 0, 1, 2, 0, 1],
    "data_format": "NCHW", "dilations": [1, 1, 1, 2],
}  # fmt: skip


def _windows() -> Iterator[Case]:
    """The ops of the family: forward, and the gradients that the spec declares."""
    for attrs, dense, channels in ((STRIDED, GROUPED, CHANNELS), (PADDED, GROUPED_FIRST, CHANNELS_FIRST)):
        for name, shapes in (("Conv2D", dense), ("DepthwiseConv2dNative", channels)):
            forward = Case(NN, name, shapes, attrs)
            yield forward
            out = {"out_backprop": forward.output_shape}
            yield Case(NN, f"{name}BackpropInput", {"filter": shapes["filter"], **out}, attrs,
                       {"input_sizes": shapes["input"]})  # fmt: skip
            yield Case(NN, f"{name}BackpropFilter", {"input": shapes["input"], **out}, attrs,
                       {"filter_sizes": shapes["filter"]})  # fmt: skip
            if name == "Conv2D":
                yield Case(NN, f"{name}BackpropInputV2", {**shapes, **out}, attrs)
                yield Case(NN, f"{name}BackpropFilterV2", {**shapes, **out}, attrs)
    small = {"strides": [1, 2, 1, 1], "padding": "VALID", "rate": [2, 1]}
    yield Case(NN, "depthwise_conv2d", CHANNELS, small)


WINDOWS = tuple(_windows())
OTHERS = (
    Case(SAMPLES, "MatMul", {"a": (3, 4), "b": (4, 5)}),
    Case(SAMPLES, "Softmax", {"logits": (3, 4)}),
    Case(SAMPLES, "LayerNorm", {"x": (3, 4), "scale": (4,), "offset": (4,)}),
    Case(SAMPLES, "MaxPool", {"input": (2, 5, 6, 3)},
         {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}),
    Case(SAMPLES, "MaxPool", {"input": (2, 3, 5, 6)},
         {"ksize": [1, 1, 2, 2], "strides": [1, 1, 1, 2], "padding": "VALID", "data_format": "NCHW"}),
    Case(SAMPLES, "ConvBiasRelu", {"input": (2, 5, 6, 2), "filter": (3, 2, 2, 3), "bias": (3,)},
         {"strides": [1, 2, 1, 1], "padding": "VALID"}),
    Case(SAMPLES, "ScaledAdd", {"x": (3, 1), "y": (1, 4)}, {"alpha": 2.5}),
    Case(SAMPLES, "ScaledAdd", {"x": (1, 4), "y": (3, 4)}),
    Case(SAMPLES, "Shift", {"x": (5,)}, {"offset": -2}),
    Case(SAMPLES, "Clamp", {"x": (3, 4)}, {"mode": "PRODUCT"}),
    Case(SAMPLES, "Clamp", {"x": (3, 4)}, {"mode": "LARGEST"}),
    Case(SAMPLES, "Clamp", {"x": (3, 4)}, {"mode": "SMALLEST", "low": -0.2}),
)  # fmt: skip
CASES = WINDOWS + OTHERS
PAIRS = tuple((case, wrt) for case in CASES for wrt in differentiable(case.op))
IDS = [f"{case}-{wrt}" for case, wrt in PAIRS]


def finite_differences(case: Case, arrays: Arrays, wrt: str, g: Array, seed: int, count: int = 30) -> dict[int, float]:
    """Central differences of <g, op(x)> by elements of `wrt`, at up to `count` flat positions drawn with the seed."""
    kernel, parameters = case.call().kernel()
    given = {b.name: arrays[b.name] for b in kernel.inputs}
    size = arrays[wrt].size
    chosen = np.random.default_rng(seed).permutation(size)[:count]
    step = 1e-5
    found = {}
    for position in map(int, chosen):
        sums = []
        for sign in (1, -1):
            moved = arrays[wrt].copy()
            moved.flat[position] += sign * step
            sums.append(float((interpret(kernel, {**given, wrt: moved}, parameters)[case.output] * g).sum()))
        found[position] = (sums[0] - sums[1]) / (2 * step)
    return found


def assert_gradient(case: Case, wrt: str, seed: int) -> None:
    """The derived gradient agrees with finite differences, which have about 10 digits here."""
    arrays = values(case, seed)
    derived = derivative(case, wrt)
    g = np.random.default_rng(seed + 1).standard_normal(case.output_shape)
    result = run(derived, {**arrays, cotangent(derived): g})
    assert result.shape == arrays[wrt].shape
    for position, expected in finite_differences(case, arrays, wrt, g, seed).items():
        error = abs(result.flat[position] - expected)
        assert error <= 1e-6 * max(1.0, abs(expected)), f"seed {seed}, {case} by {wrt} at {position}: off by {error}"
