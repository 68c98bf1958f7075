"""Checks of generic ops that need no form."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from opgen.diagnostics import Span
from opgen.dtypes import ALIASES, DTYPES, lookup
from opgen.spec.check.interface import declare
from opgen.spec.generic import equation
from opgen.spec.generic.evaluate import FOLDS
from opgen.spec.generic.lists import LISTS, SINGLE
from opgen.spec.generic.trees import expressions_of, names_in
from opgen.spec.generic.types import QUESTIONS
from opgen.spec.generic.values import CODE
from opgen.spec.model import model as m
from opgen.spec.resolve.names import check_function_name, check_name, snake_case
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.fragments import Fragments, expand
from opgen.spec.syntax.report import Report

_KINDS = ("int", "int64", "float", "bool", "enum", "layout", "type", equation.KIND)
_REFUSED = {
    s.SpecializeDecl: "kernels are specialised for plain ops",
    s.InheritedDecl: "only gradients have inputs and outputs like those of another op",
    s.SizesDecl: "sizes are a static input of a generic op",
}


def check_generics(
    report: Report,
    decls: Sequence[s.OpDecl],
    fragments: Fragments,
    functions: tuple[m.Function, ...],
    ops: m.Ops,
) -> tuple[m.GenericOp, ...]:
    """Return the generic ops of a module; mistakes go to the report.

    `ops` will hold the ops that they may use.
    """
    return tuple(_generic(report, decl, fragments, functions, ops) for decl in decls)


def _generic(
    report: Report, decl: s.OpDecl, fragments: Fragments, functions: tuple[m.Function, ...], ops: m.Ops
) -> m.GenericOp:
    check_name(report, decl.name.name, decl.name.span)
    check_function_name(report, decl.name.name, decl.name.span)
    placed = dataclasses.replace(decl, items=tuple(expand(report, decl.items, fragments)))
    doc = "" if decl.doc is None else decl.doc.value
    op = m.GenericOp(decl.name.name, snake_case(decl.name.name), placed, functions, doc, decl.span, ops=ops)
    if any(isinstance(i, s.GradientDecl) for i in placed.items):
        help = "the gradient of a generic op is that of the plain op of a call"
        report.add(CODE, "a gradient cannot be generic", decl.name.span, help)
        return op
    declared = declare(report, placed.items)
    _check_items(report, op)
    _check_equation(report, op)
    _check_types(report, op)
    _check_names(report, op, set(declared))
    return op


def _check_items(report: Report, op: m.GenericOp) -> None:
    """Report declarations that a generic op cannot have, and inputs after one for several tensors."""
    for item in op.decl.items:
        why = next((w for kind, w in _REFUSED.items() if isinstance(item, kind)), None)
        if why is not None:
            report.add(CODE, f"the generic op '{op.name}' cannot have this", item.span, why)
    for extra in [i for i in op.decl.items if isinstance(i, s.SignatureDecl)][1:]:
        help = "its attributes are given by keyword"
        report.add(CODE, f"the generic op '{op.name}' has one signature", extra.span, help)
    for decl in op.inputs[:-1]:
        if isinstance(decl, s.SeveralDecl):
            message = f"'{decl.name.name}' stands for all inputs that are left: none comes after it"
            report.add(CODE, message, decl.name.span)
    if not op.outputs:
        report.add("S053", f"the op '{op.name}' has no output", op.decl.name.span)
    targets = {i.target.name for i in op.decl.items if isinstance(i, s.DefinitionDecl)}
    for output in op.outputs:
        name = output.name.name
        by_equation = any(equation.told(output, a.name.name) for a in op.attrs)
        if name not in targets and not by_equation:
            report.add("S053", f"the output '{name}' is not defined", output.name.span, f"write {name}[...] = ...")


def _check_equation(report: Report, op: m.GenericOp) -> None:
    """Report an op with an equation that lacks `inputs` or an output with its dimensions."""
    for attr in (a for a in op.attrs if a.type.kind.name == equation.KIND):
        name = attr.name.name
        inputs = [i for i in op.inputs if equation.told(i, name)]
        outputs = [o for o in op.outputs if equation.told(o, name)]
        several = len(inputs) == 1 and isinstance(inputs[0], s.SeveralDecl)
        single = len(outputs) == 1 and isinstance(outputs[0], s.TensorDecl)
        if attr is not equation.attribute(op) or attr.type.shape or attr.default is not None:
            report.add(CODE, "an op has one equation, which is no list and has no default", attr.span)
        elif not (several and single) or any(
            isinstance(i, s.DefinitionDecl) and i.target.name == outputs[0].name.name for i in op.decl.items
        ):
            help = f"write `inputs x: T[{name}] one or more` and `output y: T[{name}]`, without a definition of it"
            report.add(CODE, f"nothing is told by the equation '{name}'", attr.span, help)


def _check_types(report: Report, op: m.GenericOp) -> None:
    """Report unknown types of tensors, attributes and static inputs."""
    variables = [i for i in op.decl.items if isinstance(i, s.TypeDecl)]
    attributes = [a for a in op.attrs if a.type.kind.name == "type"]
    known = [*(v.name.name for v in variables), *(a.name.name for a in attributes)]
    words = [w.name for a in attributes for w in a.type.words]
    for ident in (*(i for v in variables for i in v.allowed), *words):
        if lookup(ident.name) is None:
            report.unknown("type", ident.name, ident.span, [*DTYPES, *ALIASES])
    for tensor in (*op.inputs, *op.outputs):
        if isinstance(tensor, s.StaticDecl):
            if _canonical(tensor.dtype.name) not in ("int32", "int64", "bool", "float32"):
                report.add(CODE, "a static input holds int32, int64, bool or float32", tensor.dtype.span)
        elif not isinstance(tensor, s.SizesDecl) and not (tensor.dtype.name in known or lookup(tensor.dtype.name)):
            report.unknown("type", tensor.dtype.name, tensor.dtype.span, [*known, *DTYPES, *ALIASES])
    for attr in op.attrs:
        kind = attr.type.kind.name
        if kind not in _KINDS or (kind in ("enum", "layout", "type")) != bool(attr.type.words):
            report.unknown("type of attributes", kind, attr.type.kind.span, _KINDS)


def _canonical(name: str) -> str:
    dtype = lookup(name)
    return name if dtype is None else dtype.name


def _check_names(report: Report, op: m.GenericOp, declared: set[str]) -> None:
    """Report unknown names in `rank`, and names that clash with those of an expanded pack."""
    read = {n for item in op.decl.items for tree in expressions_of(item) for n in names_in(tree)}
    dims = {n for t in op.inputs for tree in expressions_of(t) for n in names_in(tree)}
    inputs = [t.name.name for t in op.inputs]
    for rule in (r for i in op.decl.items if isinstance(i, s.RankDecl) for r in i.rules):
        if rule.pack.name not in dims:
            report.unknown("pack of dimensions", rule.pack.name, rule.pack.span, dims)
        if rule.tensor is not None and rule.tensor.name not in inputs:
            report.unknown("input", rule.tensor.name, rule.tensor.span, inputs)
    for target in (i.target for i in op.decl.items if isinstance(i, s.DefinitionDecl) and i.pack):
        if target.name in dims:
            message = f"'{target.name}' is the name of dimensions: it cannot be that of tensors, too"
            report.add("S011", message, target.span, "choose another name")
    for name, span in _packs(op):
        clash = next((n for n in sorted(read | declared) if re.fullmatch(rf"{re.escape(name)}_\d+", n)), None)
        if clash is not None:
            report.add("S011", f"'{clash}' is a name of what '{name}...' expands to", span, "choose another name")
    for function in op.functions:
        if function.span is not None and function.name in {*LISTS, *SINGLE, *FOLDS, *QUESTIONS}:
            message = f"'{function.name}' is a function of lists or types in generic ops"
            report.add("S010", message, function.span, "choose another name")


def _packs(op: m.GenericOp) -> Iterator[tuple[str, Span]]:
    """Yield the packs of dimensions and of named integers, and the names of several tensors."""
    for item in op.decl.items:
        if isinstance(item, s.SeveralDecl):
            yield item.name.name, item.name.span
        if isinstance(item, s.PackLet):
            yield from ((n.name, n.span) for n in item.names)
        if isinstance(item, s.DefinitionDecl) and item.pack:
            yield item.target.name, item.target.span
        if isinstance(item, s.TensorDecl | s.SeveralDecl) and item.keyword in ("input", "inputs"):
            for dim in item.dims:
                if isinstance(dim.size, s.Expansion) and isinstance(dim.size.pattern, s.Named):
                    yield dim.size.pattern.name, dim.span
