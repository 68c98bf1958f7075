"""Examples: literal arguments and results, checked against their op by working the call out as far as shapes go."""

from __future__ import annotations

from typing import TypeAlias

from opgen.diagnostics import UserError
from opgen.spec import model as m
from opgen.spec import syntax as s
from opgen.spec.report import Report
from opgen.spec.shapes import AttrArgument, solve

Shape: TypeAlias = tuple[int, ...]


def check_example(report: Report, op: m.OpSpec, module: m.Module, example: m.Example, decl: s.ExampleDecl) -> None:
    """Notes arguments that the op does not have or lacks, and results whose shape is not the one it computes."""
    values = dict(example.values)
    spans = {e.name.name: e.span for e in decl.entries}
    known = [i.name for i in op.inputs] + [a.name for a in op.attrs] + [o.name for o in op.outputs]
    for entry in decl.entries:
        if entry.name.name not in known:
            report.unknown("argument", entry.name.name, entry.name.span, known)
            return
    if len(spans) < len(decl.entries):
        report.add("S061", "an argument is given twice", decl.title.span)
        return
    needed = [i.name for i in op.inputs] + [o.name for o in op.outputs]
    missing = next((n for n in needed if n not in values), None)
    if missing is not None:
        report.add("S061", f"the example lacks '{missing}'", decl.title.span)
        return
    shapes: dict[str, Shape] = {}
    for tensor in (*op.tensors, *op.outputs):
        shape = shape_of(values[tensor.name], tensor.rank)
        if shape is None:
            message = f"'{tensor.name}' must be a regular list of rank {tensor.rank}"
            report.add("S061", message, spans[tensor.name])
            return
        shapes[tensor.name] = shape
    sizes = {i.name: _integers(values[i.name]) for i in op.inputs if isinstance(i, m.Sizes)}
    attrs: dict[str, AttrArgument] = {a.name: _argument(values[a.name]) for a in op.attrs if a.name in values}
    try:
        environment = solve(op, module, {t.name: shapes[t.name] for t in op.tensors}, sizes, attrs)
    except UserError as error:
        report.add("S061", str(error), decl.title.span)
        return
    for output in op.outputs:
        computed = environment.output_shapes[output.name]
        if computed != shapes[output.name]:
            message = f"'{output.name}' has shape {list(shapes[output.name])}, the op computes {list(computed)}"
            report.add("S061", message, spans[output.name])


def shape_of(value: m.ExampleValue, rank: int) -> Shape | None:
    """The shape of nested literals of a rank; None if they are not regular, or hold words."""
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
    """A literal as a caller would give it."""
    if not isinstance(value, tuple):
        return value
    flat = [v for item in value for v in (item if isinstance(item, tuple) else (item,))]
    return tuple(v for v in flat if isinstance(v, int | float))
