"""Examples of generic ops; the nesting of their literals determines the form."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from opgen.dtypes import lookup
from opgen.spec.call.arguments import CallError
from opgen.spec.check.examples import check_example, type_of
from opgen.spec.check.values import example_of, example_values
from opgen.spec.generic.form import Argument, Instance
from opgen.spec.generic.instances import instance
from opgen.spec.generic.sizes import known_sizes
from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report


@dataclass(frozen=True)
class ExampleCall:
    """An example as a call: arguments, attributes, number of results, and all written values by name."""

    title: str
    arguments: tuple[Argument | None, ...]
    attributes: Mapping[str, m.ExampleValue]
    outputs: int
    values: Mapping[str, m.ExampleValue]


def examples_of(report: Report, op: m.GenericOp) -> list[tuple[s.ExampleDecl, ExampleCall]]:
    """Return the complete examples of an op; mistakes go to the report."""
    found = []
    for decl in op.decl.items:
        if isinstance(decl, s.ExampleDecl):
            call = _call(report, op, decl)
            if call is not None:
                found.append((decl, call))
    return found


def _call(report: Report, op: m.GenericOp, decl: s.ExampleDecl) -> ExampleCall | None:
    values = dict(example_values(report, decl))
    known = [i.name.name for i in (*op.inputs, *op.attrs, *op.outputs)]
    for entry in decl.entries:
        if entry.name.name not in known:
            report.unknown("argument", entry.name.name, entry.name.span, known)
            return None
    if len(values) < len(decl.entries):
        report.add("S061", "an argument is given twice", decl.title.span)
        return None
    needed = [i.name.name for i in op.inputs if isinstance(i, s.SeveralDecl | s.SizesDecl) or not i.optional]
    needed += [o.name.name for o in op.outputs if isinstance(o, s.SeveralDecl) or not o.optional]
    for name in needed:
        if name not in values:
            report.add("S061", f"the example lacks '{name}'", decl.title.span)
            return None
    types = {i.name.name: _type(op, i, values) for i in op.decl.items if isinstance(i, s.TypeDecl)}
    arguments: list[Argument | None] = []
    for tensor in op.inputs:
        value = values.get(tensor.name.name)
        found = _arguments(tensor, value, types)
        if isinstance(tensor, s.TensorDecl) and found[0] is not None and value is not None:
            found = [dataclasses.replace(found[0], sizes=known_sizes(op, len(arguments), _shape(value)))]
        arguments += found
    attributes = {a.name.name: values[a.name.name] for a in op.attrs if a.name.name in values}
    outputs = sum(_count(o, values[o.name.name]) for o in op.outputs if o.name.name in values)
    return ExampleCall(decl.title.value, tuple(arguments), attributes, outputs, values)


def _count(decl: s.TensorDecl | s.SeveralDecl, value: m.ExampleValue) -> int:
    return len(value) if isinstance(decl, s.SeveralDecl) and isinstance(value, tuple) else 1


def _type(op: m.GenericOp, decl: s.TypeDecl, values: Mapping[str, m.ExampleValue]) -> str:
    """Return a type for a type variable that represents the literals of its tensors."""
    allowed = [t for t in (lookup(i.name) for i in decl.allowed) if t is not None]
    tensors = [t for t in (*op.inputs, *op.outputs) if isinstance(t, s.TensorDecl | s.SeveralDecl)]
    return type_of(allowed, (values.get(t.name.name, ()) for t in tensors if t.dtype.name == decl.name.name)).name


def _flat(value: m.ExampleValue) -> list[m.ExampleValue]:
    return [v for item in value for v in _flat(item)] if isinstance(value, tuple) else [value]


def _rank(value: m.ExampleValue) -> int:
    """Return the nesting depth of literals."""
    return 1 + max((_rank(v) for v in value), default=0) if isinstance(value, tuple) else 0


def _shape(value: m.ExampleValue) -> tuple[int, ...]:
    """Return the shape of literals."""
    return (len(value), *(_shape(value[0]) if value else ())) if isinstance(value, tuple) else ()


def _arguments(
    decl: s.TensorDecl | s.SeveralDecl | s.StaticDecl | s.SizesDecl,
    value: m.ExampleValue | None,
    types: Mapping[str, str],
) -> list[Argument | None]:
    if value is None:
        return [None]
    if isinstance(decl, s.SeveralDecl):
        several = value if isinstance(value, tuple) else (value,)
        return [Argument(_dtype(decl.dtype, types), _rank(v)) for v in several]
    if isinstance(decl, s.TensorDecl):
        return [Argument(_dtype(decl.dtype, types), _rank(value))]
    floats = isinstance(decl, s.StaticDecl) and _dtype(decl.dtype, types) == "float32"
    scalar = not isinstance(value, tuple)
    numbers = tuple((float if floats else int)(v) for v in _flat(value) if isinstance(v, int | float))
    value_of = numbers[0] if scalar and numbers else numbers
    return [Argument("float32" if floats else "int64", 0 if scalar else 1, value_of)]


def _dtype(ident: s.Ident, types: Mapping[str, str]) -> str:
    found = lookup(ident.name)
    return types.get(ident.name, ident.name if found is None else found.name)


def plain_example(op: m.GenericOp, decl: s.ExampleDecl, call: ExampleCall, made: Instance) -> s.ExampleDecl:
    """Return the example rewritten for the plain op."""
    several = {t.name.name for t in (*op.inputs, *op.outputs) if isinstance(t, s.SeveralDecl)}
    kept = {i.name for i in (*made.op.inputs, *made.op.outputs)} | {a.name for a in made.op.attrs}
    entries: list[s.Entry] = []
    for entry in decl.entries:
        name = entry.name.name
        if name in several and isinstance(entry.value, s.ListValue):
            for at, item in enumerate(entry.value.items):
                entries.append(s.Entry(entry.span, s.Ident(entry.name.span, f"{name}_{at}"), item))
        elif name in kept:
            entries.append(entry)
    return s.ExampleDecl(decl.span, decl.title, tuple(entries))


def check_examples(report: Report, module: m.Module, op: m.GenericOp) -> None:
    """Report examples that do not fit their op, also those whose results have another shape than the computed one."""
    for made, example in plain_examples(report, module, op):
        check_example(report, made.op, m.Module(module.name, (made.op,), made.functions), example)


def plain_examples(report: Report, module: m.Module, op: m.GenericOp) -> Iterator[tuple[Instance, m.Example]]:
    """Yield each example of an op with its plain op; report those that do not fit."""
    for decl, call in examples_of(report, op):
        before = len(report)
        try:
            made = instance(module, op.name, call.arguments, call.attributes, call.outputs)
        except CallError as error:
            report.add("S061", str(error), decl.title.span)
            continue
        example = example_of(report, plain_example(op, decl, call, made))
        if len(report) == before:
            yield made, example
