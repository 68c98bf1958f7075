"""Examples of specs, computed: each result in an example is compared with that of the op's definition.

`opgen.spec` checks the shapes of examples whenever a spec is loaded.  Computing their elements takes the interpreter of
loop IR.  So it happens on request only: in `opgen check`, and in `opgen generate` before it writes them down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opgen.compiler.limits import CheckedKernel
from opgen.diagnostics import CheckFailed, Span
from opgen.diagnostics.calls import ArgumentError
from opgen.dtypes import DTYPES, DType
from opgen.loop.arithmetic import Array
from opgen.loop.interpret import Counters, interpret
from opgen.lower import Variant, lower, structural_attrs
from opgen.runtime.call.elements import refused
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.spec.call.arguments import CallError
from opgen.spec.check.examples import check_example, environment_of, shape_of, type_of
from opgen.spec.generic.examples import plain_examples
from opgen.spec.model import model as m
from opgen.spec.resolve.measure import weight
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import EXAMPLE_STEPS
from opgen.spec.syntax.report import Report

UNITS = 8
"""Tolerance in units in the last place of the largest element: results worked out by hand round differently."""

WRITTEN = 16
"""Number of elements up to which a message writes the correct result in full."""


def verify_examples(module: m.Module) -> None:
    """Compute the examples of a module.

    Raises DiagnosticError with those whose results differ from the op's, and if they take too much work.
    """
    report = Report()
    steps = _Steps()
    for op in module.ops:
        for example in op.examples:
            types = _types(op, example)
            _verify(report, _Call(op, module, example, types), steps)
    for generic in module.generics:
        for made, example in plain_examples(report, module, generic):
            of_one = m.Module(module.name, (made.op,), made.functions)
            if check_example(report, made.op, of_one, example):
                _verify(report, _Call(made.op, of_one, example, made.types), steps)
    report.raise_if_any()


@dataclass(frozen=True)
class _Call:
    """An example with the types that its tensors have."""

    op: m.OpSpec
    module: m.Module
    example: m.Example
    types: Mapping[str, str]


class _MuchWorkError(Exception):
    """The examples take more steps than the limit."""


class _Steps(Counters):
    """Work of all examples together; raises as soon as it exceeds the limit."""

    def __setattr__(self, name: str, value: int) -> None:
        super().__setattr__(name, value)
        if value > EXAMPLE_STEPS:
            raise _MuchWorkError


def _types(op: m.OpSpec, example: m.Example) -> dict[str, str]:
    """Return the type of each type variable, determined by the literals of the tensors that have it."""
    values = dict(example.values)
    tensors = (*op.tensors, *op.outputs)
    return {
        v.name: type_of(v.allowed, (values[t.name] for t in tensors if t.dtype == v.name)).name
        for v in op.type_variables
    }


def _verify(report: Report, call: _Call, steps: _Steps) -> None:
    """Report the wrong results of an example."""
    decl = call.example.decl
    try:
        steps.iterations += weight(call.op)
        found = _computed(report, call, steps)
    except _MuchWorkError:
        message = f"computing the examples up to this one takes more than {EXAMPLE_STEPS:,} steps"
        report.add("S005", message, decl.title.span, "give examples smaller sizes")
        report.raise_if_any()
    except (CallError, ArgumentError) as error:
        report.add("S061", str(error), decl.title.span)
    else:
        for entry in decl.entries:
            if entry.name.name in found:
                _compare(report, entry, *found[entry.name.name])


def _computed(report: Report, call: _Call, steps: _Steps) -> dict[str, tuple[Array, Array]]:
    """Return each result in the example and as the definition computes it; empty if a literal does not fit."""
    op, before = call.op, len(report)
    environment = environment_of(op, call.module, call.example)
    variant = Variant(call.types, {a.name: str(environment.attrs[a.name]) for a in structural_attrs(op)})
    values, entries = dict(call.example.values), {e.name.name: e for e in call.example.decl.entries}

    def array(tensor: m.Tensor, shape: tuple[int, ...]) -> Array:
        return _array(report, entries[tensor.name], values[tensor.name], variant.dtype(tensor.dtype), shape)

    tensors = {t.name: array(t, shape_of(values[t.name], t.rank) or ()) for t in op.tensors}
    said = {o.name: array(o, environment.output_shapes[o.name]) for o in op.outputs}
    if len(report) > before:
        return {}
    lowered = CheckedKernel(op, lower(call.module, op, variant))
    inputs = {b.name: tensors[b.name] for b in lowered.lowered.kernel.inputs}
    try:
        found = interpret(lowered.lowered.kernel, inputs, lowered.values(environment), counters=steps)
    except CheckFailed as failed:
        raise refused(op, environment, failed) from None
    return {name: (said[name], found[name]) for name in said}


# Literals as arrays -------------------------------------------------------------------------------


def _array(report: Report, entry: s.Entry, value: m.ExampleValue, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return literals as an array of a type; a literal that the type does not have is reported."""
    for index, literal in _literals(value):
        if not _fits(literal, dtype):
            shown = str(literal).lower() if isinstance(literal, bool) else literal
            message = f"'{entry.name.name}' holds numbers of type {dtype}, and {shown} is not one"
            report.add("S061", message, _span(entry.value, index))
            return np.zeros(shape, numpy_dtype(dtype))
    with np.errstate(over="ignore"):
        return np.array(value, numpy_dtype(dtype)).reshape(shape)


def _literals(value: m.ExampleValue, index: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], m.ExampleValue]]:
    """Yield each literal of nested ones with its index, in order."""
    if not isinstance(value, tuple):
        yield index, value
        return
    for at, item in enumerate(value):
        yield from _literals(item, (*index, at))


def _fits(literal: m.ExampleValue, dtype: DType) -> bool:
    """Return True if a literal is a number that a type has, or one that it rounds."""
    if not isinstance(literal, int | float):
        return False
    if dtype.kind == "bool":
        return isinstance(literal, bool) or literal in (0, 1)
    return dtype.is_float or (literal == literal // 1 and dtype.least <= literal <= dtype.greatest)


def _span(value: s.Value, index: tuple[int, ...]) -> Span:
    """Return the place of the literal at an index."""
    for at in index:
        if isinstance(value, s.ListValue):
            value = value.items[at]
    return value.span


# Results ------------------------------------------------------------------------------------------


def _compare(report: Report, entry: s.Entry, said: Array, found: Array) -> None:
    """Report the first element of a result that differs from the computed one, and the correct result."""
    wrong = np.argwhere(~_equal(said, found))
    if not len(wrong):
        return
    index = tuple(int(i) for i in wrong[0])
    place = f"{entry.name.name}{list(index) if index else ''}"
    message = f"'{place}' is {_written(np.asarray(said[index]))}, the op computes {_written(np.asarray(found[index]))}"
    more = "" if len(wrong) == 1 else f"{len(wrong)} of {said.size} elements differ"
    whole = f"{entry.name.name} = {_written(found)}" if found.size <= WRITTEN else ""
    report.add("S061", message, _span(entry.value, index), "; ".join(p for p in (more, whole) if p) or None)


def _equal(said: Array, found: Array) -> npt.NDArray[np.bool_]:
    """Return a mask of the elements that agree: exactly, but for the last places of floats."""
    dtype = DTYPES[found.dtype.name]
    if not dtype.is_float:
        return np.equal(said, found)
    one, other = said.astype(np.float64), found.astype(np.float64)
    largest = np.max(np.abs(other), where=np.isfinite(other), initial=0)
    slack = UNITS * 2.0 ** (1 - dtype.compute_type.precision) * largest
    with np.errstate(invalid="ignore"):
        near = np.less_equal(np.abs(one - other), slack)
    agree: npt.NDArray[np.bool_] = near | np.equal(one, other) | (np.isnan(one) & np.isnan(other))
    return agree


def _written(array: Array) -> str:
    """Return numbers as a spec writes them, with the digits that distinguish one from its neighbours in its type."""
    if array.ndim:
        return f"[{', '.join(_written(np.asarray(part)) for part in array)}]"
    return str(array).lower()
