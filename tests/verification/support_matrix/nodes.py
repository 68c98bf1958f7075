"""A cell as a model of one node, and the elements of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from opgen.dtypes import DTYPES
from opgen.runtime.memory.buffers import numpy_dtype
from tests.verification.support_matrix.cells import Cell, Given

Array: TypeAlias = npt.NDArray[Any]
ALONG_AXIS = ("Gather", "GatherElements", "Scatter", "ScatterElements")
"""Operators of which the second input has places along an axis: some are outside where elements are `signed`."""
SCHEMA: Any = onnx.defs.get_schema


def named(cell: Cell) -> tuple[str, str]:
    """The set of operators of a cell's operator, and its name there."""
    domain, _, name = cell.operator.rpartition(".")
    return domain, name


def schema_of(cell: Cell) -> Any:
    """What the standard declares of a cell's operator."""
    domain, name = named(cell)
    return SCHEMA(name, cell.opset, domain)


def arrays_of(cell: Cell, seed: int) -> dict[str, Array]:
    """The elements of all inputs, by the names that `model_of` gives them: numbers that every type has exactly.

    `signed` are quarters from -2 to 2, or integers from -8 to 8; `positive` are above 0; `few` are 0, 1 and, of what is
    signed, -1.
    """
    rng = np.random.default_rng([seed, cell.number, *cell.op.encode()])
    found: dict[str, Array] = {}
    for at, given in enumerate(cell.inputs):
        if given is None:
            continue
        dtype = numpy_dtype(DTYPES[given.dtype])
        if given.value is not None:
            found[f"i{at}"] = np.array(given.value, dtype).reshape(given.shape)
            continue
        found[f"i{at}"] = _elements(given, cell.values, rng).astype(dtype)
    if cell.operator in ALONG_AXIS and cell.values != "signed":
        found["i1"] = _inside(cell, found["i1"])
    return found


def _inside(cell: Cell, places: Array) -> Array:
    """Places brought into the dimension along which they count, if there is such."""
    shape, axis = cell.inputs[0].shape if cell.inputs[0] else (), int(cell.attributes.get("axis") or 0)
    return places % shape[axis] if -len(shape) <= axis < len(shape) and shape[axis] else places


def _elements(given: Given, values: str, rng: np.random.Generator) -> Array:
    dtype, shape = DTYPES[given.dtype], given.shape
    signed = dtype.signed and dtype.kind != "bool" and (dtype.small is None or dtype.small.signed)
    if dtype.kind == "bool":
        return rng.integers(0, 2, shape)
    if values == "few":
        return rng.integers(-1 if signed and dtype.is_float else 0, 2, shape)
    if dtype.is_float:
        if dtype.small is not None:
            return rng.choice([1.0, 2.0, 0.5] if values == "positive" or not signed else [-2.0, -1.0, 1.0, 0.5], shape)
        return rng.integers(1 if values == "positive" else -8, 9, shape) / 4
    most = min(8, 2 ** (dtype.digits - 1) - 1)
    return rng.integers(-most if signed and values == "signed" else 0, most + 1, shape)


def model_of(cell: Cell, arrays: Mapping[str, Array]) -> Any:
    """The model of a cell; inputs that are known before it runs are constants in it."""
    schema = schema_of(cell)
    declared = {i.name for i in schema.inputs}
    names: list[str] = []
    inputs: list[Any] = []
    constants: list[Any] = []
    attributes: list[Any] = []
    for at, given in enumerate(cell.inputs):
        name = f"i{at}"
        if given is None:
            names.append("")
        elif given.name.removesuffix("_") in schema.attributes and given.name not in declared:
            value = numpy_helper.from_array(arrays[name], name)
            attributes.append(_own(schema, given, value, arrays[name]))
        elif given.value is not None:
            names.append(name)
            constants.append(numpy_helper.from_array(arrays[name], name))
        else:
            names.append(name)
            kind = helper.np_dtype_to_tensor_dtype(arrays[name].dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, arrays[name].shape))
    while names and not names[-1]:
        names.pop()
    results = [f"o{at}" for at in range(cell.outputs)]
    domain, operator = named(cell)
    node = helper.make_node(operator, names, results, "cell", domain=domain)
    node.attribute.extend(attributes)
    node.attribute.extend(
        _attribute(schema, name, value) for name, value in cell.attributes.items() if value not in ([], ())
    )  # a list without elements says in a spec that there is none
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([node], "cell", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, cell.opset)], ir_version=10)


def _own(schema: Any, given: Given, value: Any, array: Array) -> Any:
    """An input of the spec that the operator has as an attribute."""
    name = given.name.removesuffix("_")
    if schema.attributes[name].type == onnx.AttributeProto.TENSOR:
        return helper.make_attribute(name, value)
    numbers = array.tolist()
    return helper.make_attribute(name, numbers, attr_type=schema.attributes[name].type)


def _attribute(schema: Any, name: str, value: object) -> Any:
    """An attribute as a node has it: a flag and a type are numbers there, a number that may be absent is no list."""
    outside = name.removesuffix("_")
    kind = schema.attributes[outside].type if outside in schema.attributes else None
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, str) and kind == onnx.AttributeProto.INT:
        value = helper.np_dtype_to_tensor_dtype(np.dtype(numpy_dtype(DTYPES[value])))
    elif isinstance(value, str):
        value = value.removesuffix("_")
    if isinstance(value, list) and kind in (onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT):
        value = value[0] if value else 0
    return helper.make_attribute(outside, value, attr_type=kind)
