"""Running a kernel on arrays by name, as the interpreter does: for tests and tools, not for speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from opgen.compiler.sharing import WORTH_SHARING
from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL
from opgen.loop import build as b
from opgen.loop.nodes import Binary, Buffer, Compare, Const, Expr, Kernel, Select, Unary, Var
from opgen.loop.print import print_expr
from opgen.loop.walk import map_expr
from opgen.runtime.kernels.kernel import compile_kernel
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import empty_aligned, numpy_dtype, poison
from opgen.runtime.memory.guard import GuardedArray, Side, guarded_copy, guarded_empty

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target
    from opgen.compiler.sharing import Work

AnyArray = npt.NDArray[np.generic]


def evaluate(e: Expr, parameters: Mapping[str, int | float]) -> int:
    """Return the value of an integer expression over a kernel's parameters, such as a dimension of a buffer."""

    def fold(node: Expr) -> Expr:
        match node:
            case Var() if node.type == b.index(0).type and node.name in parameters:
                return b.index(int(parameters[node.name]))
            case Var() if node.type.dtype == BOOL and node.name in parameters:
                return Const(bool(parameters[node.name]), node.type)
            case Binary(op="and"):
                return b.both(node.left, node.right)
            case Binary(op="or"):
                return b.either(node.left, node.right)
            case Binary():
                return b.binary(node.op, node.left, node.right)
            case Compare():
                return b.compare(node.op, node.left, node.right)
            case Select():
                return b.select(node.condition, node.if_true, node.if_false)
            case Unary(op="not"):
                return b.negate(node.operand)
        return node

    result = map_expr(fold, e)
    if not isinstance(result, Const):
        raise InternalError(f"no integer comes of {print_expr(e)} with parameters {sorted(parameters)}")
    return int(result.value)


def is_small(work: Work, parameters: Mapping[str, int | float]) -> bool:
    """Return True if the calling thread is to do all work of a kernel of open sizes, for given parameters."""
    operations, touched = (evaluate(e, parameters) for e in (work.operations, work.bytes))
    return work.always + work.per_operation * operations + work.per_byte * touched < WORTH_SHARING


def buffer_shape(buffer: Buffer, parameters: Mapping[str, int | float]) -> tuple[int, ...]:
    """Return the dimensions of a kernel's buffer, as callers know them, for given parameters."""
    return tuple(evaluate(d, parameters) for d in buffer.outside)


def _checked_input(buffer: Buffer, arrays: Mapping[str, AnyArray], parameters: Mapping[str, int | float]) -> AnyArray:
    if buffer.name not in arrays:
        raise InternalError(f"no array is given for input {buffer.name}")
    array = arrays[buffer.name]
    shape = buffer_shape(buffer, parameters)
    if array.shape != shape or array.dtype != numpy_dtype(buffer.dtype):
        raise InternalError(
            f"input {buffer.name} is {buffer.dtype}{list(shape)}, given {array.dtype}{list(array.shape)}"
        )
    return array


def _aligned_copy(source: AnyArray, buffer: Buffer) -> AnyArray:
    copy = empty_aligned(source.shape, buffer.dtype)
    copy[...] = source
    return copy


def _parameter_values(kernel: Kernel, parameters: Mapping[str, int | float]) -> list[int | float]:
    missing = [p.name for p in kernel.parameters if p.name not in parameters]
    if missing:
        raise InternalError(f"kernel {kernel.name}: no value is given for {', '.join(missing)}")
    return [parameters[p.name] for p in kernel.parameters]


def _check_slack(kernel: Kernel, guarded: Sequence[GuardedArray]) -> None:
    for buffer, array in zip(kernel.buffers, guarded, strict=True):
        if array.damaged():
            raise InternalError(f"kernel {kernel.name} wrote beside buffer {buffer.name}")


def run_kernel(
    kernel: Kernel,
    arrays: Mapping[str, AnyArray],
    parameters: Mapping[str, int | float],
    threads: int | None = None,
    *,
    guarded: bool = False,
    side: Side = "end",
    target: Target | None = None,
) -> dict[str, AnyArray]:
    """Return the outputs of a kernel by name, from its inputs by name.

    The arrays are copied, and the outputs start poisoned.  Memory is aligned to 64 bytes; `guarded` puts every array
    against a protected page instead (its end, or with `side` its start).  Then an access outside ends the process, and
    inputs are read-only.  Raises InternalError if an array or parameter does not fit the kernel, or if the kernel wrote
    beside an array; MemoryError as the kernel does.
    """
    compiled = compile_kernel(kernel, target)
    values = _parameter_values(kernel, parameters)
    inputs = [_checked_input(x, arrays, parameters) for x in kernel.inputs]
    shapes = [buffer_shape(o, parameters) for o in kernel.outputs]
    guards: list[GuardedArray] = []
    if guarded:
        guards = [guarded_copy(a, side, read_only=True) for a in inputs]
        guards += [
            guarded_empty(shape, numpy_dtype(o.dtype), side) for shape, o in zip(shapes, kernel.outputs, strict=True)
        ]
        buffers = [g.array for g in guards]
    else:
        buffers = [_aligned_copy(a, x) for a, x in zip(inputs, kernel.inputs, strict=True)]
        buffers += [empty_aligned(shape, o.dtype) for shape, o in zip(shapes, kernel.outputs, strict=True)]
    outputs = buffers[len(inputs) :]
    for output in outputs:
        poison(output)
    compiled([address(a) for a in buffers], values, threads)
    if guarded:
        _check_slack(kernel, guards)
    return {o.name: array for o, array in zip(kernel.outputs, outputs, strict=True)}
