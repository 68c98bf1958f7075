"""Whether a cell is right: its model, run, beside the interpreter and a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

import opgen
from opgen.diagnostics import UserError
from opgen.dtypes import DTYPES
from opgen.graph.build.resolve import resolve
from opgen.graph.ir.nodes import Graph
from opgen.graph.ir.problems import UndecidedError
from opgen.graph.kernels.interpret import interpret
from opgen.onnx.load import load
from opgen.runtime.memory.buffers import dtype_of
from opgen.spec.model import model as m
from opgen.spec.model.walk import subexpressions
from tests.verification.support_matrix.cells import Cell
from tests.verification.support_matrix.meaning import CHANCE, IN_FLOAT32, LEFT_OUT, meaningless
from tests.verification.support_matrix.nodes import Array, arrays_of, model_of, named
from tests.verification.support_matrix.references import Unknown, declared, expected, forbidden

ROUNDINGS = 64
"""Units of rounding by which results of few terms may differ from the reference's."""

EXACT = ("abs", "sign", "floor", "ceil", "round", "trunc", "sqrt", "isnan", "isinf", "bit_not")
"""Functions that are the same to the bit everywhere."""


def judge(cell: Cell, seed: int) -> str:
    """`right`, `refused rightly`, `not compared: ...` if there is no reference, or what is wrong."""
    try:
        arrays = arrays_of(cell, seed)
        model = model_of(cell, arrays)
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        return f"no model: {type(error).__name__}: {error}"
    inputs = {i.name: arrays[i.name] for i in model.graph.input}
    why = forbidden(cell, model, arrays)
    reference: Sequence[Array] | str
    try:
        reference = expected(cell, model, inputs, seed)
    except Unknown as unknown:
        reference = str(unknown)
    try:
        found = opgen.compile(model).run(inputs)
    except UserError as refusal:
        if why or isinstance(reference, str) or meaningless(cell, arrays):
            return "refused rightly"
        return "left out" if cell.operator in LEFT_OUT else f"refused: {str(refusal)[:400]}"
    except Exception as failure:  # one broken cell must not hide the others
        return f"wrong: {type(failure).__name__}: {failure}"
    results = [found[o.name] for o in model.graph.output]
    differs = _by_definition(model, inputs, results)
    if differs:
        return f"wrong: {differs}"
    if why and not why.startswith("type"):
        return f"accepted: {why}"
    if meaningless(cell, arrays):
        return "no meaning"
    if isinstance(reference, str):
        return f"not compared: {reference}"
    for at, (array, kind) in enumerate(zip(results, declared(model), strict=True)):
        if kind and onnx.helper.np_dtype_to_tensor_dtype(array.dtype) != kind and not why:
            return f"wrong: result {at} is {array.dtype}, not {onnx.TensorProto.DataType.Name(kind)}"
    if cell.operator in CHANCE:
        results, reference = [np.zeros_like(a) for a in results], [np.zeros_like(a) for a in reference]
    floats = [d.precision for d in map(dtype_of, (*inputs.values(), *results)) if d is not None and d.is_float]
    said = _compared(results, reference, 24 if named(cell)[1] in IN_FLOAT32 else min(floats, default=53))
    return "more types" if why and said == "right" else said


def _by_definition(model: Any, inputs: dict[str, Array], results: Sequence[Array]) -> str:
    """How results differ from what the interpreter gives; a model that is no one program is not compared."""
    kinds: dict[str, Any] = {n: (dtype_of(a), a.shape) for n, a in inputs.items()}
    try:
        graph = resolve(load(model), kinds)
    except UndecidedError:
        return ""
    try:
        return beside_the_interpreter(graph, inputs, results)
    except UserError as refusal:
        return f"the interpreter refuses it: {refusal}"


def beside_the_interpreter(graph: Graph, inputs: Mapping[str, Array], results: Sequence[Array]) -> str:
    """How results differ from what the interpreter gives; empty if they do not.  Raises UserError where it does.

    They are the same to the bit, unless numbers are summed whose rounding depends on the order, or are of functions
    that no standard rounds.
    """
    others = interpret(graph, inputs)
    if all(
        a.dtype == b.dtype and a.shape == b.shape and _bits(a) == _bits(b) for a, b in zip(results, others, strict=True)
    ):
        return ""
    said = _compared(results, others)
    if said != "right":
        return f"differs from the interpreter: {said}"
    rounds = any(_rounds(d) for node in graph.nodes for d in node.op.spec.definitions)
    return "" if rounds else "differs from the interpreter by bits"


def _bits(array: Array) -> bytes:
    """The bits of an array, one NaN for all."""
    dtype = dtype_of(array)
    if dtype is None or not dtype.is_float:
        return array.tobytes()
    missing = np.isnan(array)
    return missing.tobytes() + array[~missing].tobytes()


def _rounds(definition: m.Definition) -> bool:
    """Whether a definition leaves a rounding open."""
    for e in subexpressions(definition.value):
        if isinstance(e, m.Reduce) and e.kind in ("sum", "prod"):
            return True
        if isinstance(e, m.Operation) and e.op == "pow":
            return True
        if isinstance(e, m.Apply) and e.function not in EXACT:
            return True
    return False


def _compared(results: Sequence[Array], reference: Sequence[Array], least: int = 53) -> str:
    """`right`, or the first result that differs by more than arithmetic of `least` bits of precision does."""
    for at, (found, wanted) in enumerate(zip(results, reference, strict=False)):
        if found.shape != wanted.shape:
            return f"wrong: result {at} has shape {list(found.shape)}, not {list(wanted.shape)}"
        dtype = dtype_of(found)
        if dtype is None or not dtype.is_float:
            if not np.array_equal(found, wanted.astype(found.dtype)):
                return f"wrong: result {at} is {_short(found)}, not {_short(wanted)}"
            continue
        with np.errstate(all="ignore"):
            exact = wanted.astype(np.float64)
            rounded = exact.astype(found.dtype).astype(np.float64)
            value = found.astype(np.float64)
            precision = DTYPES[dtype.name].precision
            # arithmetic is in float32 at least, and the result rounded once
            bound = (
                ROUNDINGS * 2.0 ** -max(min(precision, least), 24) + (2.0**-precision * 2 if precision < 24 else 0)
            ) * (np.abs(rounded) + _scale(rounded))
            fits = (value == rounded) | (np.isnan(value) & np.isnan(rounded)) | (np.abs(value - rounded) <= bound)
        if not fits.all():
            return f"wrong: result {at} is {_short(found[~fits])}, not {_short(wanted[~fits])}"
    return "right"


def _scale(values: Array) -> float:
    """The magnitude of what is summed, as far as results tell."""
    finite = np.abs(values[np.isfinite(values)])
    return max(float(finite.max(initial=0.0)), 1.0) if finite.size else 1.0


def _short(values: Array) -> str:
    return str(values.reshape(-1)[:6].tolist())
