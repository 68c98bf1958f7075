"""Whether a cell is right in CUDA C: its kernels run on a device or emulated, beside the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

from opgen.diagnostics import CheckFailed, InternalError, UserError
from opgen.graph.build.model import Call, Model
from opgen.graph.build.resolve import resolve
from opgen.graph.ir.bound import Bound
from opgen.graph.ir.nodes import Graph, Op
from opgen.graph.ir.problems import UndecidedError
from opgen.graph.kernels.interpret import RunNode, interpret
from opgen.graph.kernels.kernels import lowered
from opgen.lower import Variant
from opgen.onnx.load import load
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.call.elements import refused
from opgen.runtime.devices.device import CudaKernel
from opgen.runtime.devices.emulation import EmulatedKernel, compile_emulated
from opgen.runtime.memory.buffers import dtype_of
from opgen.schedule.default import default_schedule
from opgen.schedule.schedule import apply
from tests.verification.support_matrix.cells import Cell
from tests.verification.support_matrix.judge import beside_the_interpreter
from tests.verification.support_matrix.nodes import Array, arrays_of, model_of, schema_of

CudaRun: TypeAlias = Callable[[Mapping[str, Array], Mapping[str, Any]], Mapping[str, Any]]
"""A loaded kernel: its outputs by name, from inputs and parameters by name."""


def judge(cell: Cell, seed: int, how: str) -> str:
    """`right`, `refused rightly` as the interpreter does, `left out` of what is no program, or what is wrong.

    `how` is `cuda`, for a device, or `emulated`.
    """
    found = program(cell, seed)
    if found is None:
        return "left out"
    graph, inputs = found
    try:
        results = interpret(graph, inputs, _runner(how))
    except UserError as refusal:
        return _refused_as(str(refusal), graph, inputs)
    except Exception as failure:  # one broken cell must not hide the others
        return f"wrong: {type(failure).__name__}: {failure}"
    try:
        differs = beside_the_interpreter(graph, inputs, results)
    except UserError as refusal:
        return f"wrong: the interpreter refuses it: {refusal}"
    return f"wrong: {differs}" if differs else "right"


def runs(cell: Cell, seed: int) -> bool:
    """Whether a cell has kernels to run: it is no call that is refused before."""
    return program(cell, seed) is not None


def program(cell: Cell, seed: int) -> tuple[Graph, dict[str, Array]] | None:
    """The graph of a cell and its inputs; None for a call that is refused.

    Where a size is counted, the graph is that for the number that the interpreter counts.
    """
    try:
        arrays = arrays_of(cell, seed)
        known = schema_of(cell).attributes
        given = {name: value for name, value in cell.attributes.items() if name.removesuffix("_") in known}
        model = model_of(replace(cell, attributes=given), arrays)
        inputs = {i.name: arrays[i.name] for i in model.graph.input}
        kinds: dict[str, Any] = {n: (dtype_of(a), a.shape) for n, a in inputs.items()}
        return resolve(_counted(load(model), kinds, inputs), kinds), inputs
    except (UserError, UndecidedError, TypeError, ValueError, OverflowError, KeyError):
        return None


def _counted(model: Model, kinds: Mapping[str, Any], inputs: Mapping[str, Array]) -> Model:
    """The model with the sizes that its first call counts for the second."""
    if len(model.calls) != 2:
        return model
    count, call = model.calls
    if not (isinstance(count, Call) and isinstance(call, Call) and call.counted):
        return model
    ((name, number),) = call.counted
    (counted,) = interpret(resolve(replace(model, calls=(count,), outputs=(number,)), kinds), inputs)
    return replace(model, calls=(replace(call, attributes={**call.attributes, name: int(counted)}, counted=()),))


def _refused_as(said: str, graph: Graph, inputs: dict[str, Array]) -> str:
    """Whether the interpreter refuses a call as it was refused."""
    try:
        interpret(graph, inputs)
    except UserError as refusal:
        return "refused rightly" if str(refusal) == said else f"wrong: it says {said}, not {refusal}"
    return f"wrong: it is refused: {said}"


def _runner(how: str) -> RunNode:
    """What runs a node's kernel for all sizes, scheduled for a GPU."""

    def run(call: Bound, tensors: Sequence[Array | None]) -> tuple[Array, ...]:
        checked, kernel = lowered(call.op, call.variant), _kernel(call.op, call.variant, how)
        given = dict(zip((t.name for t in call.op.spec.tensors), tensors, strict=True))
        read = {b.name for b in checked.lowered.kernel.inputs}
        arrays = {name: a for name, a in given.items() if a is not None and name in read}
        try:
            found = kernel(arrays, checked.values(call.environment))
        except CheckFailed as failed:
            raise refused(call.op.spec, call.environment, failed) from None
        return tuple(found[b.name] for b in checked.lowered.kernel.outputs)

    return run


@lru_cache(maxsize=64)
def _kernel(op: Op, variant: Variant, how: str) -> CudaRun:
    kernel = simplify(lowered(op, variant).lowered.kernel)
    scheduled = legalize(apply(kernel, default_schedule(kernel, "cuda")))
    return _both_ways(compile_emulated([scheduled])[0]) if how == "emulated" else CudaKernel(scheduled)


def _both_ways(kernel: EmulatedKernel) -> CudaRun:
    """The kernel, which must give the same with its threads and blocks in the opposite order."""

    def run(arrays: Mapping[str, Array], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        found, other = kernel(arrays, parameters), kernel(arrays, parameters, reverse=True)
        for name, array in found.items():
            if array.tobytes() != other[name].tobytes():
                raise InternalError(f"'{name}' depends on the order of threads")
        return found

    return run
