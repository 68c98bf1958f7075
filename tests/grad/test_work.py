"""A gradient does the forward's work and no more: multiply-adds counted by the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.loop.interpret import Counters, interpret
from tests.grad.cases import NN, Array, Case, cotangent, derivative, values


def multiply_adds(case: Case, arrays: dict[str, Array]) -> int:
    kernel, parameters = case.call().kernel()
    counters = Counters()
    interpret(kernel, {b.name: arrays[b.name] for b in kernel.inputs}, parameters, counters=counters)
    return counters.multiply_adds


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("wrt", ["input", "filter"])
def test_as_many_as_forward(wrt: str, stride: int, padding: str) -> None:
    """Each pair of an input element and a tap that the forward joins is joined once, and no other is."""
    shapes = {"input": (1, 9, 8, 2), "filter": (3, 3, 2, 3)}
    case = Case(NN, "Conv2D", shapes, {"strides": [1, stride, stride, 1], "padding": padding})
    arrays = values(case, 1)
    backward = derivative(case, wrt)
    g = {cotangent(backward): np.ones(case.output_shape)}
    assert multiply_adds(backward, {**arrays, **g}) == multiply_adds(case, arrays) > 0


def test_a_layer_that_fits_exactly() -> None:
    """Stride 2 over (out - 1) * 2 + 3 elements: no border, so the count is known."""
    case = Case(NN, "Conv2D", {"input": (1, 9, 9, 2), "filter": (3, 3, 2, 4)},
                {"strides": [1, 2, 2, 1], "padding": "VALID"})  # fmt: skip
    arrays = values(case, 1)
    backward = derivative(case, "input")
    g = {cotangent(backward): np.ones(case.output_shape)}
    assert multiply_adds(backward, {**arrays, **g}) == 4 * 4 * 4 * 3 * 3 * 2
