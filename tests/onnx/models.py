"""Small models for tests: of operators that a few plain specs know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from opgen.spec.loading import load_text
from opgen.spec.model.model import Module

SPECS = """
op Add {
  type T in {float32, int64}
  input A: T[n]
  input B: T[n]
  output C: T[n]
  C[i] = A[i] + B[i]
}

op Constant {
  type T in {float32, int64}
  input value: T[n]
  output output: T[n]
  output[i] = value[i]
}

op Scaled {
  type T in {float32}
  input X: T[n]
  input offset: T[]
  attr factor: float = 2.0
  attr way: enum {up, down} = up
  attr twice: bool = false
  attr ends: int[2] = [0, 0]
  output Y: T[n]
  let scaled[i] = if way == up then X[i] * factor else X[i] / factor
  Y[i] = scaled[i] * (if twice then T(2) else T(1)) + offset[] + T(ends[0] + ends[1])
}
"""


def module() -> Module:
    """The specs above."""
    return load_text(SPECS)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs, outputs, name=name, **attributes)


def float_input(name: str, shape: Sequence[int | str | None] | None = ("n",)) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def constant(name: str, values: Any) -> TensorProto:
    return numpy_helper.from_array(np.asarray(values), name)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Any] = (),
    outputs: Sequence[str] = ("y",),
    initialisers: Sequence[TensorProto] = (),
    functions: Sequence[Any] = (),
    opset: int = 21,
) -> ModelProto:
    """A model whose inputs are `x` (float32[n]) unless others are given."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        list(inputs) or [float_input("x")],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        list(initialisers),
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions))
