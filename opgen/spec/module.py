"""The checker: from the syntax trees of files to a module, or to all of their mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from opgen.spec.check.algorithms import with_algorithms
from opgen.spec.check.examples import check_example
from opgen.spec.check.gradients import GradientChecker, check_inheritance, gradient_of, in_order
from opgen.spec.check.op import OpChecker
from opgen.spec.check.versions import versions_of
from opgen.spec.expand.calls import in_turn, named_ops, with_calls
from opgen.spec.expand.counted import counted
from opgen.spec.expand.formulas import with_formulas
from opgen.spec.generic.check import check_generics
from opgen.spec.generic.instances import passing_of
from opgen.spec.generic.opens import is_generic
from opgen.spec.model import model as m
from opgen.spec.resolve.functions import Functions
from opgen.spec.resolve.measure import Measure
from opgen.spec.resolve.names import check_name, snake_case
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.fragments import Fragments, in_place
from opgen.spec.syntax.limits import OPS, ORDER
from opgen.spec.syntax.report import Report

D = TypeVar("D", s.FunctionDecl | s.FormulaDecl, s.FragmentDecl, s.OpDecl)


def check(report: Report, name: str, doc: str, files: Sequence[s.File]) -> m.Module:
    """Return the module of some files, imports first; mistakes go to the report."""
    items = [item for file in files for item in file.items]
    written_functions = [i for i in items if isinstance(i, s.FunctionDecl | s.FormulaDecl)]
    formulas = [f for f in _once(report, written_functions, "function") if isinstance(f, s.FormulaDecl)]
    items = with_formulas(report, items, formulas)
    functions = Functions(report, [i for i in items if isinstance(i, s.FunctionDecl)])
    named = named_ops(items)
    placed = [with_calls(i, named) for i in items if isinstance(i, s.FragmentDecl)]
    fragments = Fragments(_once(report, placed, "fragment"))
    written = [with_calls(i, named) for i in items if isinstance(i, s.OpDecl)]
    decls = _once(report, [op for decl in written for op in counted(report, decl, fragments)], "op")
    for fragment in fragments.values():
        check_name(report, fragment.name.name, fragment.name.span)
    _check_function_names(report, decls)
    for decl in decls[OPS : OPS + 1]:
        report.stop_beyond(len(decls), OPS, "ops", decl.name.span)
    open_ = [d for d in decls if is_generic(in_place(d.items, fragments))]
    plain = [d for d in decls if d not in open_]
    checked = [functions[d.name.name] for d in items if isinstance(d, s.FunctionDecl)]
    right = tuple(dict.fromkeys(f for f in checked if f is not None))
    known: m.Ops = dict.fromkeys(sorted(named))
    generics = check_generics(report, open_, fragments, right, known)
    ordered = in_turn(report, decls, fragments)
    known |= {g.name: g if any(d.name.name == g.name for d in ordered) else None for g in generics}
    built = _ops(report, plain, ordered, fragments, functions, known)
    ops = [built.get(decl.name.name) for decl in plain]
    versions = versions_of(report, decls, fragments)
    made = tuple(o for o in ops if o is not None)
    module = m.Module(name, made, right, doc, generics, versions, tuple(f.name.name for f in formulas))
    if not len(report):
        for op in module.ops:
            for example in op.examples:
                check_example(report, op, module, example)
    return module


def _ops(
    report: Report,
    plain: Sequence[s.OpDecl],
    ordered: Sequence[s.OpDecl],
    fragments: Fragments,
    functions: Functions,
    known: m.Ops,
) -> dict[str, m.OpSpec | None]:
    """Return the plain ops by name, each after those that it uses; add them to `known`, which has the generic ones."""
    for fragment in fragments.values():
        check_inheritance(report, fragment)
    measure = Measure(report, functions.costs)
    built: dict[str, m.OpSpec | None] = {}
    orders: dict[str, int] = {}
    for decl, circle in in_order({d.name.name: d for d in ordered if d in plain}):
        gradient = gradient_of(decl)
        name = decl.name.name
        if gradient is None:
            check_inheritance(report, decl)
            checker = OpChecker(report, decl, fragments, functions, passing_of(known))
            built[name] = _checked(report, decl, checker, fragments, functions)
        elif circle is not None:
            report.add("S022", f"'{name}' is its own gradient", circle)
        elif gradient.op.name not in built:
            report.unknown("op", gradient.op.name, gradient.op.span, built)
        else:
            forward = built[gradient.op.name]
            orders[name] = orders.get(gradient.op.name, 0) + 1
            report.stop_beyond(orders[name], ORDER, "derivatives of each other", gradient.span)
            if forward is None:
                built[name] = None
                continue
            built[name] = _checked(report, decl, GradientChecker(report, decl, gradient, forward), fragments, functions)
        made = known[name] = built.get(name)
        if made is not None:
            measure.add(made, decl.name.span)
    return built


def _checked(
    report: Report,
    decl: s.OpDecl,
    checker: OpChecker | GradientChecker,
    fragments: Fragments,
    functions: Functions,
) -> m.OpSpec | None:
    """Return an op with its algorithms, or None with the mistakes reported, including one too deep for the stack."""
    try:
        op = checker.check()
        return None if op is None else with_algorithms(report, decl, op, fragments, functions)
    except RecursionError:
        report.add("S003", f"'{decl.name.name}' nests too deeply", decl.name.span, "name a part of it with `let`")
        return None


def _once(report: Report, decls: Sequence[D], what: str) -> list[D]:
    """Report redeclared names, and return the first declaration of each."""
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
    for decl in decls:
        others = (i.function for i in decl.items if isinstance(i, s.SignatureDecl) and i.function is not None)
        for other in {o.name: o for o in others}.values():
            if seen.setdefault(other.name, decl.name.name) != decl.name.name or other.name == snake_case(
                decl.name.name
            ):
                report.add("S011", f"'{seen[other.name]}' has the function '{other.name}' already", other.span)
