"""Execution of a graph node by node: by the ops' definitions, which define its meaning, or by compiled kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TypeAlias

import numpy as np

from opgen.compiler import toolchain
from opgen.compiler.request import Compilation, OpVariant
from opgen.diagnostics import CheckFailed, InternalError
from opgen.graph.ir.bound import Bound, bound
from opgen.graph.ir.nodes import Array, Graph, Op, Value
from opgen.graph.kernels.kernels import lowered
from opgen.loop.interpret import interpret as interpret_kernel
from opgen.lower import Variant
from opgen.runtime.call.elements import refused
from opgen.runtime.call.specialize import build
from opgen.runtime.kernels.kernel import CompiledKernel
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import empty_aligned, numpy_dtype

SMALL = 1 << 10
"""Number of elements up to which the interpreter is quicker than building a kernel."""

SHARED = 1 << 18
"""Number of elements from which on a compiled kernel runs on several threads."""

RunNode: TypeAlias = "Callable[[Bound, Sequence[Array | None]], tuple[Array, ...]]"
"""Runs a call on its op's tensors, in order (None: only the shape counts), and returns the results, in order.

Raises ArgumentValueError for elements that are out of range as subscripts, and for numbers that no kernel takes
(intermediate integers beyond 64 bits).
"""


def interpret(graph: Graph, inputs: Mapping[str, Array], run: RunNode | None = None) -> tuple[Array, ...]:
    """Return the outputs of a graph in order, given its inputs by name.

    `run` is `by_definition` (None), or another function of its signature; its errors pass through.  Raises
    InternalError for inputs that do not fit the graph.
    """
    values = interpret_all(graph, inputs, run)
    return tuple(values[name] for name in graph.outputs)


def interpret_all(graph: Graph, inputs: Mapping[str, Array], run: RunNode | None = None) -> dict[str, Array]:
    """Return every value of a graph by name."""
    step = by_definition if run is None else run
    values = {v.name: _checked(v, inputs) for v in graph.inputs}
    values |= {c.value.name: c.data.array for c in graph.constants}
    for node in graph.nodes:
        results = step(bound(graph, node), [values[name] for name in node.inputs])
        values |= zip(node.outputs, results, strict=True)
    return values


def _checked(value: Value, inputs: Mapping[str, Array]) -> Array:
    if value.name not in inputs:
        raise InternalError(f"input '{value.name}' is missing")
    array = inputs[value.name]
    if array.shape != value.shape or array.dtype != numpy_dtype(value.dtype):
        raise InternalError(f"input '{value.name}' is {array.dtype}{list(array.shape)}, expected {value}")
    return array


def by_definition(call: Bound, tensors: Sequence[Array | None]) -> tuple[Array, ...]:
    """Return the results of a call by the interpreter of loop IR, which rounds every operation to its type."""
    checked = lowered(call.op, call.variant)
    kernel = checked.lowered.kernel
    try:
        found = interpret_kernel(kernel, _read(call, tensors), checked.values(call.environment))
    except CheckFailed as failed:
        raise refused(call.op.spec, call.environment, failed) from None
    return tuple(found[b.name] for b in kernel.outputs)


def compiled(call: Bound, tensors: Sequence[Array | None]) -> tuple[Array, ...]:
    """Return the results of a call by the op's kernel for all sizes.

    The kernel may add in another order than the definition.
    """
    checked = lowered(call.op, call.variant)
    kernel = _kernel(call.op, call.variant)
    values = checked.values(call.environment)
    arrays = _read(call, tensors)
    held = [np.ascontiguousarray(arrays[b.name]) for b in kernel.kernel.inputs]
    results = tuple(empty_aligned(shape, dtype) for dtype, shape in call.results)
    try:
        threads = 1 if sum(a.size for a in (*held, *results)) < SHARED else None
        kernel([address(a) for a in (*held, *results)], [values[p.name] for p in kernel.kernel.parameters], threads)
    except CheckFailed as failed:
        raise refused(call.op.spec, call.environment, failed) from None
    return results


def worked_out(call: Bound, tensors: Sequence[Array | None]) -> tuple[Array, ...]:
    """Return the results of a call by the quicker of the two.  Raises MemoryError if memory does not suffice."""
    size = sum(a.size for a in tensors if a is not None) + sum(prod(shape) for _, shape in call.results)
    return (by_definition if size <= SMALL else compiled)(call, tensors)


def _read(call: Bound, tensors: Sequence[Array | None]) -> dict[str, Array]:
    """Return the tensors whose elements an op reads, by name."""
    return {t.name: a for t, a in zip(call.op.spec.tensors, tensors, strict=True) if a is not None}


@lru_cache(maxsize=256)
def _kernel(op: Op, variant: Variant) -> CompiledKernel:
    source = OpVariant(op.module, op.spec, variant)
    return build(Compilation(source, toolchain.host(), algorithms="off"))
