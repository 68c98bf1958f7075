"""Examples: literal arguments and results, checked against their op by evaluating the call's shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from opgen.diagnostics import UserError
from opgen.dtypes import DType
from opgen.spec.call.shapes import AttrArgument, Environment, solve
from opgen.spec.model import model as m
from opgen.spec.syntax.report import Report

Shape: TypeAlias = tuple[int, ...]

_PREFERRED = ("float32", "float64", "int32", "int64")
"""Preferred types of examples' numbers; if a type variable allows none of them, its first type is used."""


def check_example(report: Report, op: m.OpSpec, module: m.Module, example: m.Example) -> bool:
    """Note arguments that the op does not have or lacks, and results whose shape is not the one it computes.

    True if there are none.
    """
    before = len(report)
    if _complete(report, op, example):
        _check_shapes(report, op, module, example)
    return len(report) == before


def _complete(report: Report, op: m.OpSpec, example: m.Example) -> bool:
    """True if an example gives each required argument and result once, and no unknown ones."""
    decl = example.decl
    known = [i.name for i in op.inputs] + [a.name for a in op.attrs] + [o.name for o in op.outputs]
    for entry in decl.entries:
        if entry.name.name not in known:
            report.unknown("argument", entry.name.name, entry.name.span, known)
            return False
    values = dict(example.values)
    if len(values) < len(decl.entries):
        report.add("S061", "an argument is given twice", decl.title.span)
        return False
    needed = [i.name for i in op.inputs] + [o.name for o in op.outputs]
    missing = next((n for n in needed if n not in values), None)
    if missing is not None:
        report.add("S061", f"the example lacks '{missing}'", decl.title.span)
    return missing is None


def _check_shapes(report: Report, op: m.OpSpec, module: m.Module, example: m.Example) -> None:
    values, decl = dict(example.values), example.decl
    spans = {e.name.name: e.span for e in decl.entries}
    shapes: dict[str, Shape] = {}
    for tensor in (*op.tensors, *op.outputs):
        shape = shape_of(values[tensor.name], tensor.rank)
        if shape is None:
            message = f"'{tensor.name}' must be a regular list of rank {tensor.rank}"
            report.add("S061", message, spans[tensor.name])
            return
        shapes[tensor.name] = shape
    try:
        environment = environment_of(op, module, example)
    except UserError as error:
        report.add("S061", str(error), decl.title.span)
        return
    for output in op.outputs:
        computed = environment.output_shapes[output.name]
        if computed != shapes[output.name]:
            message = f"'{output.name}' has shape {list(shapes[output.name])}, the op computes {list(computed)}"
            report.add("S061", message, spans[output.name])


def environment_of(op: m.OpSpec, module: m.Module, example: m.Example) -> Environment:
    """Evaluate an example's call, whose tensors are regular.  Raises CallError if the op refuses it."""
    values = dict(example.values)
    shapes = {t.name: shape_of(values[t.name], t.rank) or () for t in op.tensors}
    sizes = {i.name: _integers(values[i.name]) for i in op.inputs if isinstance(i, m.Sizes)}
    attrs: dict[str, AttrArgument] = {a.name: _argument(values[a.name]) for a in op.attrs if a.name in values}
    return solve(op, module, shapes, sizes, attrs)


def type_of(allowed: Sequence[DType], literals: Iterable[m.ExampleValue]) -> DType:
    """Return the allowed type of tensors whose elements are written as these literals."""
    numbers = [n for literal in literals for n in _flat(literal)]
    if any(isinstance(n, bool) for n in numbers):
        return next((t for t in allowed if t.kind == "bool"), allowed[0])
    fitting = [t for t in allowed if t.is_float or not any(isinstance(n, float) for n in numbers)] or allowed
    named = {t.name: t for t in fitting}
    return next((named[name] for name in _PREFERRED if name in named), fitting[0])


def _flat(value: m.ExampleValue) -> list[m.ExampleValue]:
    return [v for item in value for v in _flat(item)] if isinstance(value, tuple) else [value]


def shape_of(value: m.ExampleValue, rank: int) -> Shape | None:
    """Return the shape of nested literals of a rank; None if they are irregular or contain words."""
    if rank == 0:
        return None if isinstance(value, tuple | str) else ()
    if not isinstance(value, tuple):
        return None
    if not value:
        return (0,) * rank
    inner = {shape_of(item, rank - 1) for item in value}
    first = inner.pop()
    return None if inner or first is None else (len(value), *first)


def _integers(value: m.ExampleValue) -> tuple[int, ...]:
    items = value if isinstance(value, tuple) else (value,)
    return tuple(i if isinstance(i, int) else -1 for i in items)


def _argument(value: m.ExampleValue) -> AttrArgument:
    """Return a literal as a caller would pass it."""
    if not isinstance(value, tuple):
        return value
    flat = [v for item in value for v in (item if isinstance(item, tuple) else (item,))]
    return tuple(v for v in flat if isinstance(v, int | float))
