"""Checks of a generic op's expansions: each mistake of a form is reported once, and the examples are run."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.diagnostics import Diagnostic, DiagnosticError
from opgen.spec.call.arguments import CallError
from opgen.spec.generic.attributes import is_list
from opgen.spec.generic.equation import KIND, written_out
from opgen.spec.generic.examples import check_examples
from opgen.spec.generic.given import call_of
from opgen.spec.generic.instances import checked, expanded
from opgen.spec.generic.samples import Sample, samples, some_left_out, types, variations
from opgen.spec.generic.trees import expressions_of, names_in
from opgen.spec.generic.values import CODE
from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report

FORMS = 64
"""Greatest number of forms that are tried for one op."""


def check_forms(module: m.Module) -> None:
    """Raise DiagnosticError with the mistakes in forms of a module's generic ops, each place once."""
    report = Report()
    for op in module.generics:
        before = len(report)
        _Forms(report, op).check()
        if len(report) == before:
            check_examples(report, module, op)
    report.raise_if_any()


class _Forms:
    """Checks of the forms of one op."""

    def __init__(self, report: Report, op: m.GenericOp) -> None:
        self.report = report
        self.op = op
        self.refused: CallError | None = None
        self.fitting = 0
        self.effective: set[str] = set()
        self.read: set[str] = set()
        self.demanded: set[str] = set()
        self.asked: set[str] = set()
        self.filled: set[str] = set()
        self._told: set[tuple[str, str]] = set()

    def check(self) -> None:
        """Report the mistakes of all forms, and declarations without an effect in any form."""
        before = len(self.report)
        fitted = [sample for sample in self._within(samples(self.op)) if self._fits(sample)]
        if not any(sample.optional for sample in fitted):
            fitted = [each for each in self._within(some_left_out(self.op)) if self._fits(each)] + fitted
        for sample in fitted[-2:] + fitted[:1]:
            typed = [o for o in self._within(types(sample, self.asked)) if self._fits(o)]
            for one in typed or [sample]:
                for other in self._within(variations(one, self.demanded)):
                    self._fits(other)
        if not self.fitting and len(self.report) == before:
            why = "" if self.refused is None else f": {self.refused}"
            help = "the forms that are tried have ranks 0 to 3; an example adds its own"
            if not any(isinstance(i, s.ExampleDecl) for i in self.op.decl.items):
                self.report.add(CODE, f"no form of '{self.op.name}' fits{why}", self.op.decl.name.span, help)
        elif len(self.report) == before:
            self._effects()

    def _within(self, given: Iterator[Sample]) -> Iterator[Sample]:
        for at, sample in enumerate(given):
            if at >= FORMS:
                return
            yield sample

    def _fits(self, sample: Sample) -> bool:
        """Return True if a form fits the op; report its mistakes."""
        report = Report()
        try:
            call = written_out(call_of(self.op, sample.arguments, sample.given(), sample.outputs))
            found = expanded(report, call)
            made = None if found is None else checked(report, call, *found)
        except CallError as error:
            self.refused = error
            return False
        except DiagnosticError as error:
            for diagnostic in error.diagnostics:
                report.append(diagnostic)
            found = made = None
        self._note(report, sample)
        if found is None or made is None:
            return False
        self.fitting += 1
        expander, _ = found
        self.demanded |= expander.world.demanded
        self.asked |= set(expander.narrowed.asked)
        self.effective |= {a.name for a in made.op.attrs} | expander.world.demanded
        self.filled |= {n for n, v in sample.given().items() if v}
        self.read |= {i.name for i in made.op.tensors if not i.shape_only}
        return True

    def _note(self, report: Report, sample: Sample) -> None:
        for found in report.diagnostics:
            key = (found.code, str(found.span))
            if key in self._told:
                continue
            self._told.add(key)
            form = str(sample)
            help = form if found.help is None else f"{found.help} ({form})"
            self.report.append(Diagnostic(found.code, found.message, found.span, help))

    def _effects(self) -> None:
        """Report attributes and inputs that nothing depends on, in any form.

        If no form with elements in a list fits, all names in the definitions count as used.
        """
        lists = {a.name.name for a in self.op.attrs if is_list(a)} - self.filled
        named = _named(self.op) if lists else set()
        for attr in self.op.attrs:
            used = attr.name.name in self.effective | (named & lists) or attr.type.kind.name in ("type", KIND)
            if not used and not attr.compatibility:
                help = "mark it `compatibility` if it is accepted without effect"
                self.report.add("S033", f"nothing that the op computes depends on '{attr.name.name}'", attr.span, help)
        for decl in self.op.inputs:
            name = f"{decl.name.name}_0" if isinstance(decl, s.SeveralDecl) else decl.name.name
            read = name in self.read or decl.name.name in named
            if isinstance(decl, s.TensorDecl | s.SeveralDecl) and not read and not _shape_only(decl):
                help = "mark it shape_only if only its shape counts"
                self.report.add("S033", f"no definition reads '{decl.name.name}'", decl.span, help)


def _named(op: m.GenericOp) -> set[str]:
    """Return all names in the definitions and sizes of an op's results, and in the lets they refer to."""
    lets = [i for i in op.decl.items if isinstance(i, s.LetDecl | s.PackLet)]
    roots = (*op.outputs, *(i for i in op.decl.items if isinstance(i, s.DefinitionDecl | s.OpCall)))
    found, known = {n for item in roots for tree in expressions_of(item) for n in names_in(tree)}, -1
    while known < len(found):
        known = len(found)
        for let in lets:
            if not found.isdisjoint(n.name for n in let.names):
                found |= set(names_in(let.value))
    return found


def _shape_only(decl: s.TensorDecl | s.SeveralDecl) -> bool:
    return isinstance(decl, s.TensorDecl) and decl.shape_only
