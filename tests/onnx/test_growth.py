"""Four times the model takes about four times the work until it first runs.

Work is the calls of Python functions, which are the same in each run and on each machine.  What is made is not taken
from the cache, and different models hardly share anything, so that the smaller one makes nothing for the larger.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

import opgen
from opgen.graph.ir.problems import ModelError
from tests.onnx.models import constant, float_input, node

TIMES = 4
MOST = 6.0
"""Work for four times the model: what is done once for a model makes it less than four, searching and sorting more."""

OF_ONE_KERNEL = 9.0
"""The same for one kernel: its loops are scheduled one by one, and its sizes compared with each other."""

Parts = tuple[list[NodeProto], int, list[Any]]
"""Nodes that make `y...`, the number of inputs `x...`, and constants."""


def chain(count: int, link: Callable[[int, str, str], NodeProto]) -> list[NodeProto]:
    """Nodes of which each takes what the one before makes."""
    names = ["x0", *(f"v{k}" for k in range(1, count)), "y"]
    return [link(k, names[k], names[k + 1]) for k in range(count)]


def functions(count: int) -> Parts:
    kinds = ("Relu", "Tanh", "Neg", "Sigmoid", "Abs")
    return chain(count, lambda k, x, y: node(kinds[k * k % 5], [x], [y])), 1, []


def offsets(count: int) -> Parts:
    constants = [constant(f"c{k}", np.float32([k])) for k in range(count)]
    return chain(count, lambda k, x, y: node("Add", [x, f"c{k}"], [y])), 1, constants


def scaled_products(count: int) -> Parts:
    """Products, each with a constant scale and offset that go into its weights."""
    kinds = ("MatMul", "Mul", "Add")
    weights = [np.float32([[k, 1], [0, k]]) if k % 3 == 0 else np.float32([k, 1]) for k in range(count)]
    constants = [constant(f"c{k}", array) for k, array in enumerate(weights)]
    return chain(count, lambda k, x, y: node(kinds[k % 3], [x, f"c{k}"], [y])), 1, constants


def residuals(count: int) -> Parts:
    nodes, value = [], "x0"
    for k in range(count // 2):
        nodes += [node("Tanh", [value], [f"t{k}"]), node("Add", [value, f"t{k}"], [f"v{k}"])]
        value = f"v{k}"
    return [*nodes, node("Neg", [value], ["y"])], 1, []


def reads_of_one(count: int) -> Parts:
    nodes = [node("Mul", ["x0", f"c{k}"], [f"y{k}"]) for k in range(count)]
    return nodes, 1, [constant(f"c{k}", np.float32([k])) for k in range(count)]


def joined(count: int) -> Parts:
    return [node("Concat", [f"x{k}" for k in range(count)], ["y"], axis=0)], count, []


def parted(count: int) -> Parts:
    """A tensor of parts of one row and none: each is made by a loop of its own."""
    return [node("Split", ["x0"], [f"y{k}" for k in range(count)], axis=0, num_outputs=count)], 1, []


def summed(count: int) -> Parts:
    return [node("Sum", [f"x{k}" for k in range(count)], ["y"])], count, []


def model(parts: Parts) -> bytes:
    nodes, count, constants = parts
    outputs = [float_input(name, None) for n in nodes for name in n.output if name.startswith("y")]
    graph = helper.make_graph(nodes, "g", [float_input(f"x{k}", (2, 2)) for k in range(count)], outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return bytes(made.SerializeToString())


def work(parts: Parts) -> int:
    """Calls of functions until a model has run."""
    given, count = model(parts), 0

    def seen(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        opgen.compile(given)(*[np.ones((2, 2), np.float32)] * parts[1])
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_CACHE", "off")


@pytest.mark.parametrize(("made", "size", "most"), [
    (functions, 100, MOST),
    (offsets, 60, MOST),
    (scaled_products, 45, MOST),
    (residuals, 60, MOST),
    (reads_of_one, 60, MOST),
    (summed, 30, OF_ONE_KERNEL),
    (joined, 20, OF_ONE_KERNEL),
    (parted, 20, OF_ONE_KERNEL),
])  # fmt: skip
def test_work_grows_as_the_model_does(made: Callable[[int], Parts], size: int, most: float) -> None:
    work(made(size // 2))  # what is made once in a process
    small, large = work(made(size)), work(made(size * TIMES))
    assert large < most * small, f"{made.__name__}: {small} calls for {size} nodes, {large} for {size * TIMES}"


@pytest.mark.parametrize("made", [summed, joined])
def test_too_many_tensors_are_refused_by_node(made: Callable[[int], Parts]) -> None:
    given = model(made(700))
    with pytest.raises(ModelError, match=r"it takes and makes 701 tensors.*; split it into several calls"):
        opgen.compile(given)(*[np.ones((2, 2), np.float32)] * 700)
