"""The checker: from the syntax trees of files to a module, or to all of their mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from opgen.spec import model as m
from opgen.spec import syntax as s
from opgen.spec.effects import check_effects
from opgen.spec.examples import check_example
from opgen.spec.functions import Functions
from opgen.spec.names import check_name, snake_case
from opgen.spec.op import OpChecker
from opgen.spec.report import Report

D = TypeVar("D", s.FunctionDecl, s.FragmentDecl, s.OpDecl)


def check(report: Report, name: str, doc: str, files: Sequence[s.File]) -> m.Module:
    """The module of some files, imported ones before those that import them; mistakes go to the report."""
    items = [item for file in files for item in file.items]
    functions = Functions(report, _once(report, [i for i in items if isinstance(i, s.FunctionDecl)], "function"))
    fragments = {f.name.name: f for f in _once(report, [i for i in items if isinstance(i, s.FragmentDecl)], "fragment")}
    decls = _once(report, [i for i in items if isinstance(i, s.OpDecl)], "op")
    for fragment in fragments.values():
        check_name(report, fragment.name.name, fragment.name.span)
    _check_function_names(report, decls)
    ops = [OpChecker(report, decl, fragments, functions).check() for decl in decls]
    checked = [functions[d.name.name] for d in items if isinstance(d, s.FunctionDecl)]
    right = tuple(dict.fromkeys(f for f in checked if f is not None))
    module = m.Module(name, tuple(o for o in ops if o is not None), right, doc)
    known = {d.name.name for d in decls}
    for op in module.ops:
        if op.gradient is not None:
            _check_gradient(report, op, op.gradient, module, known)
    if not len(report):
        for op, decl in zip(module.ops, decls, strict=True):
            examples = [i for i in decl.items if isinstance(i, s.ExampleDecl)]
            for example, place in zip(op.examples, examples, strict=False):
                check_example(report, op, module, example, place)
    return module


def _once(report: Report, decls: Sequence[D], what: str) -> list[D]:
    """The declarations without those whose name was declared before."""
    seen: dict[str, D] = {}
    for decl in decls:
        name = decl.name.name
        if name in seen:
            first = seen[name].name.span
            report.add("S011", f"the {what} '{name}' is declared twice", decl.name.span, f"the first is at {first}")
        seen.setdefault(name, decl)
    return list(seen.values())


def _check_function_names(report: Report, decls: Sequence[s.OpDecl]) -> None:
    seen: dict[str, str] = {}
    for decl in decls:
        name = decl.name.name
        function = snake_case(name)
        if seen.setdefault(function, name) != name:
            report.add("S011", f"'{name}' and '{seen[function]}' have the same function '{function}'", decl.name.span)


def _check_gradient(report: Report, op: m.OpSpec, gradient: m.Gradient, module: m.Module, known: set[str]) -> None:
    if gradient.span is None:
        return
    target = next((o for o in module.ops if o.name == gradient.op), None)
    if target is None:
        if gradient.op not in known:
            report.unknown("op", gradient.op, gradient.span, known - {op.name})
        return
    wrt = next((t for t in target.tensors if t.name == gradient.wrt), None)
    if target is op:
        report.add("S022", f"'{op.name}' is its own gradient", gradient.span)
    elif wrt is None:
        names = [t.name for t in target.tensors]
        report.unknown(f"input of {target.name}", gradient.wrt, gradient.span, names)
    elif wrt.shape_only:
        report.add("S060", f"'{wrt.name}' is shape_only: nothing depends on its elements", gradient.span)
    elif len(op.outputs) != 1 or op.outputs[0].rank != wrt.rank:
        message = f"a gradient with respect to '{wrt.name}' has one output of rank {wrt.rank}"
        report.add("S060", message, gradient.span)
    else:
        check_effects(report, op, target)
