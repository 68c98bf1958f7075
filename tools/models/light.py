"""The topologies in onnx's own wheel, whose weights are one number: with random weights, and an open batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, numpy_helper

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def load(name: str, seed: int) -> ModelProto:
    """Return the topology with weights of its own and logits of a spread that separates classes."""
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    model.ir_version = 8  # from 4 on constants need not be inputs, too
    open_batch(model)
    fill(model, np.random.default_rng(seed))
    _spread(model)
    onnx.checker.check_model(model)
    return model


def open_batch(model: ModelProto) -> None:
    """Make the first dimension of inputs and outputs a symbol; shapes that begin with 1 keep the input's dimension."""
    for value in (*_inputs(model), *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    shapes = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for tensor in model.graph.initializer:
        if tensor.name in shapes and (shape := numpy_helper.to_array(tensor))[0] == 1:
            tensor.CopyFrom(numpy_helper.from_array(np.array([0, *shape[1:]], np.int64), tensor.name))


def _inputs(model: ModelProto) -> list[Any]:
    constant = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constant]


def fill(model: ModelProto, generator: np.random.Generator) -> None:
    """Replace the nodes that fill shapes with one number by random constants."""
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept, shapes = [], set()
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shapes.add(node.input[0])
        name = node.output[0]
        values = _draw(generator, tuple(map(int, known[node.input[0]])), *_use(model, name))
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    _keep(model.graph.initializer, lambda name: name not in shapes)
    constant = {tensor.name for tensor in model.graph.initializer}
    _keep(model.graph.input, lambda name: name not in constant | shapes)


def _keep(values: Any, wanted: Callable[[str], bool]) -> None:
    left = [value for value in values if wanted(value.name)]
    del values[:]
    values.extend(left)


def _use(model: ModelProto, name: str) -> tuple[str, int]:
    """Return the operator that takes a constant, and the input's position, through nodes that only change its rank."""
    node = next(_takers(model, name))
    if node.op_type in ("Unsqueeze", "Reshape"):
        return _use(model, node.output[0])
    return node.op_type, list(node.input).index(name)


def _takers(model: ModelProto, name: str) -> Iterator[NodeProto]:
    return (node for node in model.graph.node if name in node.input)


def _draw(generator: np.random.Generator, shape: tuple[int, ...], op: str, place: int) -> Any:
    if len(shape) > 1:
        return generator.standard_normal(shape) * math.sqrt(2 / math.prod(shape[1:]))
    if op == "Mul" or (op == "BatchNormalization" and place in (1, 4)):  # a scale, or a variance
        return generator.uniform(0.5, 1.5, shape)
    return 0.1 * generator.standard_normal(shape)


def _spread(model: ModelProto) -> None:
    """Scale the last weights so that the input of the last softmax has a standard deviation of 2."""
    import onnxruntime  # so that what is above can be tested without it

    if (last := model.graph.node[-1]).op_type != "Softmax":
        return
    made = {name: node for node in model.graph.node for name in node.output}
    node = made[last.input[0]]
    while node.op_type not in ("Gemm", "Conv"):
        node = made[node.input[0]]
    probe = ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(onnx.helper.make_empty_tensor_value_info(last.input[0]))
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    data = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    (logits,) = session.run(None, {_inputs(model)[0].name: data})
    scale = np.float32(2 / np.std(logits))
    names = {_origin(made, name) for name in node.input[1:]}
    for tensor in model.graph.initializer:
        if tensor.name in names:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * scale, tensor.name))


def _origin(made: dict[str, NodeProto], name: str) -> str:
    """Return the constant behind a value, through nodes that only change its rank."""
    return _origin(made, made[name].input[0]) if name in made else name
