"""What a cell should give, and whether it has a meaning: by ONNX's own reference evaluator, and by its declarations."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from opgen.dtypes import DTYPES
from opgen.runtime.memory.buffers import numpy_dtype
from tests.verification.support_matrix.by_hand import OWN
from tests.verification.support_matrix.cells import Cell
from tests.verification.support_matrix.lacking import LACKING
from tests.verification.support_matrix.meaning import TAKEN
from tests.verification.support_matrix.nodes import Array, named, schema_of

IN_OWN_TYPE = ("DynamicQuantizeLinear", "QuantizeLinear", "QLinearMatMul", "QLinearConv")
"""Operators that round in a certain type, so that a reference in float64 rounds otherwise."""


class Unknown(Exception):
    """There is no reference for a cell; the text says why."""


def forbidden(cell: Cell, model: Any, arrays: Mapping[str, Array]) -> str:
    """Why the standard has no meaning for a cell, as far as its declarations tell; empty if they do not."""
    schema = schema_of(cell)
    try:
        onnx.checker.check_node(model.graph.node[0], _context(cell))
    except onnx.checker.ValidationError as error:
        said = str(error).splitlines()[0]
        if not any(text in said for text in TAKEN):
            return f"the checker: {said}"
    constraints = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    told: dict[str, str] = {}
    for at, given in enumerate(cell.inputs):
        if given is None or not schema.inputs:
            continue
        port = schema.inputs[min(at, len(schema.inputs) - 1)]
        name = _name(arrays[f"i{at}"])
        if name not in constraints.get(port.type_str, {port.type_str}):
            return f"type: {given.name} may not be {given.dtype}"
        if port.is_homogeneous and told.setdefault(port.type_str, name) != name and port.type_str in constraints:
            return f"type: {given.name} has another type than an input before it"
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        said = str(error).splitlines()[0]
        return "" if any(text in said for text in TAKEN) else f"inference: {said[:240]}"
    return ""


def declared(model: Any) -> list[int]:
    """The types of the results as the standard infers them; 0 for one that it does not."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return [0 for _ in model.graph.output]
    return [o.type.tensor_type.elem_type for o in inferred.graph.output]


def _context(cell: Cell) -> Any:
    found = onnx.checker.C.CheckerContext()
    found.ir_version = 10
    found.opset_imports = {named(cell)[0]: cell.opset}
    return found


def _name(array: Array) -> str:
    """A type as schemas write it."""
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return f"tensor({onnx.TensorProto.DataType.Name(kind).lower()})"


def expected(cell: Cell, model: Any, inputs: Mapping[str, Array], seed: int) -> Sequence[Array]:
    """The results; raises Unknown if there is no reference, or the reference refuses the cell."""
    try:
        return _known(cell, model, inputs)
    except Unknown:
        lacking = LACKING.get(cell.operator)
        if lacking is None:
            raise
    with np.errstate(all="ignore"):
        try:
            found = lacking(cell, inputs)
        except (ValueError, IndexError, KeyError, TypeError, RuntimeError) as error:  # what fits no array
            raise Unknown(f"{type(error).__name__}: {error}") from error
    if found is None:
        raise Unknown("there is no reference for these attributes")
    return found


def _known(cell: Cell, model: Any, inputs: Mapping[str, Array]) -> Sequence[Array]:
    """The results by ONNX's evaluator, or by hand where it computes something else."""
    own = OWN.get(cell.operator)
    if own is not None:
        with np.errstate(all="ignore"):
            try:
                found = own(cell, inputs)
            except (ValueError, IndexError) as error:
                raise Unknown(f"{type(error).__name__}: {error}") from error
        if found is not None:
            return found
    if cell.operator == "RoiAlign" and cell.opset < 16:
        raise Unknown("the evaluator has the operator of version 16 alone")
    if cell.operator in IN_OWN_TYPE:
        return _evaluated(model, inputs)
    wide = {n: a.astype(np.float64) if _widened(a) else a for n, a in inputs.items()}
    if any(_widened(a) for a in inputs.values()):
        try:
            return _evaluated(_widen(model), wide)
        except Unknown:
            pass
    return _evaluated(model, inputs)


def _widened(array: Array) -> bool:
    return array.dtype in (np.float16, np.float32, numpy_dtype(DTYPES["bfloat16"]))


def _widen(model: Any) -> Any:
    """The model for float64 inputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    for entry in made.graph.input:
        if entry.type.tensor_type.elem_type in floats:
            entry.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return made


def _evaluated(model: Any, inputs: Mapping[str, Array]) -> Sequence[Array]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = ReferenceEvaluator(model).run(None, dict(inputs))
        except Exception as error:  # whatever it raises, it gives no results
            raise Unknown(f"{type(error).__name__}: {str(error)[:160]}") from error
    return [np.asarray(each) for each in found]
