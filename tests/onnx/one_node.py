"""Models of one node, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import onnx

import opgen

Array = npt.NDArray[Any]


def model_of(operator: str, given: Mapping[str, Array], opset: int, **attributes: object) -> Any:
    """A model of one node, whose inputs come at run time; those without elements are left out."""
    helper = onnx.helper
    names = [n if a.size else "" for n, a in given.items()]
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in given.items()
        if a.size
    ]
    node = helper.make_node(operator, names, ["y"], **attributes)
    kind = helper.np_dtype_to_tensor_dtype(next(iter(given.values())).dtype)
    graph = helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info("y", kind, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def found_by(model: Any, given: Mapping[str, Array]) -> Array:
    """What opgen makes of a model."""
    found: Array = opgen.compile(model)(*(a for a in given.values() if a.size))
    return found
