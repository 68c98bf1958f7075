"""The interpreter: the definition of loop IR's meaning.

It runs a kernel on numpy arrays and rounds every operation as its type does.  It raises `InternalError` for errors that
a correct kernel never makes: an access out of bounds, a read of an element never written, an unkept assumption, a
barrier that not all threads reach.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from opgen.diagnostics import CheckFailed, InternalError
from opgen.loop.arithmetic import NUMPY, Array
from opgen.loop.interpreter.expressions import NAMESPACE, ExpressionWriter, Names
from opgen.loop.interpreter.memory import Memory
from opgen.loop.interpreter.statements import Order, StatementWriter, finish, threads
from opgen.loop.nodes import Buffer, Const, Expr, Kernel, Parameter, Type, Var
from opgen.loop.print import print_expr
from opgen.loop.walk import substitute_expr, walk_expr

Number = int | float | bool


@dataclass
class Counters:
    """Work done: elements loaded and stored (masked lanes included), multiply-adds, loop iterations; elements of
    temporary buffers.
    """

    loads: int = 0
    stores: int = 0
    multiply_adds: int = 0
    iterations: int = 0
    allocated: int = 0


def interpret(
    kernel: Kernel,
    arrays: Mapping[str, Array],
    parameters: Mapping[str, Number] | None = None,
    *,
    seed: int | None = None,
    counters: Counters | None = None,
    complete: bool = True,
) -> dict[str, Array]:
    """Run a kernel and return its outputs by name.

    `arrays` holds an array for each input, of its type (`ml_dtypes.bfloat16` for bfloat16) and the shape that callers
    know; one for an output is its initial contents (an operand in its place).  `seed`: run loops that are declared to
    have independent iterations in a random order from this seed.  `complete`: every element of every output must have
    been written.  Raises CheckFailed where a check does not hold.
    """
    values = {p.name: _parameter(p, parameters or {}) for p in kernel.parameters}
    _check_assumptions(kernel, values)
    inputs = {b.name: _input(b, arrays, values) for b in kernel.inputs}
    outputs = {b.name: _output(b, arrays, values) for b in kernel.outputs}
    run = _compile(kernel, values, inputs | outputs, counters, Order(None if seed is None else random.Random(seed)))
    with np.errstate(all="ignore"):
        try:
            run()
        except ZeroDivisionError:
            raise InternalError(f"kernel '{kernel.name}' divides an integer by zero") from None
    if complete:
        for memory in outputs.values():
            _check_complete(memory)
    return {b.name: outputs[b.name].array().reshape(_sizes(b.outside, values)) for b in kernel.outputs}


def evaluate(e: Expr, values: Mapping[str, Number]) -> object:
    """Return the value of an expression without loads, over variables with the given values."""
    writer = ExpressionWriter()
    constants: dict[str, Expr] = {}
    for n in walk_expr(e):
        if isinstance(n, Var):
            if n.name not in values:
                raise InternalError(f"variable '{n.name}' of '{print_expr(e)}' has no value")
            constants[n.name] = Const(values[n.name], n.type)
    text = writer.text(substitute_expr(e, constants), Names())
    with np.errstate(all="ignore"):
        try:
            result: object = eval(text, {**NAMESPACE, **writer.constants})
        except ZeroDivisionError:
            raise InternalError(f"'{print_expr(e)}' divides an integer by zero") from None
    return result


def _parameter(p: Parameter, given: Mapping[str, Number]) -> Number:
    if p.name not in given:
        raise InternalError(f"parameter '{p.name}' has no value")
    value = given[p.name]
    if p.dtype.kind == "bool":
        return bool(value)
    if p.dtype.is_float:
        return float(NUMPY[p.dtype.name].type(value))
    whole = int(value)
    if (p.low is not None and whole < p.low) or (p.high is not None and whole > p.high):
        low = "-inf" if p.low is None else p.low
        raise InternalError(f"parameter '{p.name}' is {whole}, outside [{low}, {'inf' if p.high is None else p.high}]")
    return whole


def _check_assumptions(kernel: Kernel, values: Mapping[str, Number]) -> None:
    for a in kernel.assumptions:
        if not evaluate(a, values):
            raise InternalError(f"kernel '{kernel.name}' assumes {print_expr(a)}, which does not hold")


def _shape(buffer: Buffer, values: Mapping[str, Number]) -> tuple[int, ...]:
    return _sizes(buffer.shape, values)


def _sizes(dimensions: tuple[Expr, ...], values: Mapping[str, Number]) -> tuple[int, ...]:
    sizes = (evaluate(e, values) for e in dimensions)
    return tuple(s for s in sizes if isinstance(s, int))


def _output(buffer: Buffer, arrays: Mapping[str, Array], values: Mapping[str, Number]) -> Memory:
    if buffer.name not in arrays:
        return Memory(buffer.name, buffer.dtype, _shape(buffer, values))
    return _input(buffer, {buffer.name: arrays[buffer.name].copy()}, values)


def _input(buffer: Buffer, arrays: Mapping[str, Array], values: Mapping[str, Number]) -> Memory:
    if buffer.name not in arrays:
        raise InternalError(f"input '{buffer.name}' is missing")
    array = np.ascontiguousarray(arrays[buffer.name]).reshape(np.shape(arrays[buffer.name]))
    shape = _sizes(buffer.outside, values)
    if array.shape != shape or array.dtype != NUMPY[buffer.dtype.name]:
        expected = f"{buffer.dtype}{list(shape)}"
        raise InternalError(f"input '{buffer.name}' is {array.dtype}{list(array.shape)}, expected {expected}")
    return Memory(buffer.name, buffer.dtype, _shape(buffer, values), array.reshape(-1))


def _check_complete(memory: Memory) -> None:
    if not memory.written.all():
        index = [int(i) for i in np.unravel_index(int(memory.written.argmin()), memory.shape)]
        raise InternalError(f"element {index} of output '{memory.name}' is never written")


def _compile(
    kernel: Kernel,
    values: Mapping[str, Number],
    memories: Mapping[str, Memory],
    counters: Counters | None,
    order: Order,
) -> Callable[[], None]:
    """Return the kernel for these parameters as a Python function."""
    writer = StatementWriter(counting=counters is not None)
    names = Names()
    namespace: dict[str, object] = {
        **NAMESPACE,
        "Memory": Memory,
        "order": order,
        "threads": threads,
        "finish": finish,
        "counters": counters,
        "prod": prod,
        "CheckFailed": CheckFailed,
    }
    writer.emit(0, "def run():")
    for p in kernel.parameters:
        constant = writer.expressions.write(Const(values[p.name], Type(p.dtype)), names)
        names = names.variable(p.name, constant)
    for name, memory in memories.items():
        python = writer.fresh("argument")
        namespace[python] = memory
        writer.bind(python, 1)
        names = names.buffer(name, python)
    writer.write(kernel.body, names, 1)
    namespace |= writer.expressions.constants
    exec("\n".join(writer.lines), namespace)
    run = namespace["run"]
    assert callable(run)
    return run
