"""Declarations without effect, which are mistakes: attributes never used and inputs never read."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.spec.model import model as m
from opgen.spec.model.visit import attrs_in, symbols_in
from opgen.spec.model.walk import reads
from opgen.spec.syntax.report import Report


def check_effects(report: Report, op: m.OpSpec) -> None:
    """Note attributes and inputs without effect."""
    effective = effective_attrs(op)
    for attr in op.attrs:
        if attr.span is None:
            continue
        if attr.compatibility and attr.name in effective:
            report.add("S033", f"'{attr.name}' has an effect: it is not for compatibility only", attr.span)
        elif not attr.compatibility and attr.name not in effective:
            help = "mark it `compatibility` if it is accepted without effect"
            report.add("S033", f"nothing that the op computes depends on '{attr.name}'", attr.span, help)
    read = {r.tensor for d in op.definitions for r in reads(d.value)}
    for tensor in op.tensors:
        if tensor.name not in read and not tensor.shape_only and tensor.span is not None:
            help = "mark it shape_only if only its shape counts"
            report.add("S033", f"no definition reads '{tensor.name}'", tensor.span, help)


def effective_attrs(op: m.OpSpec) -> set[str]:
    """Return the attributes that results depend on, through values, output shapes, layouts, and the lets these use."""
    lets = {name: check.value for check in op.checks if isinstance(check, m.ShapeLet) for name in check.names}
    found = set(_layouts(op))
    seen: set[str] = set()
    waiting = list(_roots(op))
    while waiting:
        expr = waiting.pop()
        found |= attrs_in(expr)
        for name in symbols_in(expr) - seen:
            seen.add(name)
            if name in lets:
                waiting.append(lets[name])
    found |= {a.payload[1] for a in op.attrs if a.payload is not None and a.name in found}
    return found


def _roots(op: m.OpSpec) -> Iterator[m.Expr]:
    for output in op.outputs:
        yield from (d.size for d in output.dims)
    for definition in op.definitions:
        yield definition.value
        yield from definition.dims
        yield from (r.extent for r in definition.indices)


def _layouts(op: m.OpSpec) -> Iterator[str]:
    for tensor in (*op.tensors, *op.outputs):
        if tensor.layout is not None:
            yield tensor.layout
    for entry in op.inputs:
        if isinstance(entry, m.Sizes):
            yield from (layout for layout in entry.layouts if layout is not None)
    yield from (a.layout for a in op.attrs if a.layout is not None)
