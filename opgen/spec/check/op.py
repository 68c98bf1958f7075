"""Checker of one op, from its declarations to the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from opgen.diagnostics import DiagnosticError
from opgen.spec.check.effects import check_effects
from opgen.spec.check.interface import InterfaceBuilder
from opgen.spec.check.signature import signature_of, signatures_of
from opgen.spec.check.specializations import specializations
from opgen.spec.check.values import example_of
from opgen.spec.inline.inlining import Inliner
from opgen.spec.inline.passing import Passing
from opgen.spec.model import model as m
from opgen.spec.model.polynomial import differences
from opgen.spec.resolve.constants import constant_of
from opgen.spec.resolve.definitions import check_definitions
from opgen.spec.resolve.functions import let_values
from opgen.spec.resolve.measure import fits
from opgen.spec.resolve.names import check_function_name, check_name, snake_case
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.resolve.scope import Scope
from opgen.spec.resolve.stretch import check_stretched
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.fragments import Fragments, expand
from opgen.spec.syntax.limits import PARTS
from opgen.spec.syntax.parse import parse_expression
from opgen.spec.syntax.report import Report


class OpChecker:
    """Checker of one op; `check` returns its model, or None with its mistakes noted.

    `passing` creates the checker of the op's calls of other ops.
    """

    def __init__(
        self,
        report: Report,
        decl: s.OpDecl,
        fragments: Fragments,
        functions: Mapping[str, m.Function | None],
        passing: Callable[[Scope, str], Passing],
    ) -> None:
        self.report = report
        self._before = len(report)
        self.decl = decl
        self.items = expand(report, decl.items, fragments)
        self.scope = Scope(report, functions)
        self._passing = passing(self.scope, decl.name.name)
        self.scope.ops = self._passing.ops
        self.interface = InterfaceBuilder(self.scope, self.items)

    def check(self) -> m.OpSpec | None:
        if not fits(self.report, self.decl, self.items):
            return None
        check_name(self.report, self.decl.name.name, self.decl.name.span)
        check_function_name(self.report, self.decl.name.name, self.decl.name.span)
        self.interface.build_inputs()
        checks = self._checks()
        self.interface.build_outputs()
        inliner = self._inliner()
        definitions = self._definitions(inliner)
        built = self.interface.built
        self._outputs_defined()
        spec = m.OpSpec(
            name=self.decl.name.name,
            function_name=snake_case(self.decl.name.name),
            signature=signature_of(self.report, self.items, built.inputs, built.attrs),
            type_variables=tuple(built.type_variables),
            inputs=tuple(built.inputs),
            attrs=tuple(built.attrs),
            outputs=tuple(built.outputs),
            checks=(*checks, *inliner.checks),
            definitions=tuple(definitions),
            examples=self._examples(),
            specializations=specializations(self.report, self.items, built, set(self.scope.symbols)),
            doc="" if self.decl.doc is None else self.decl.doc.value,
            span=self.decl.span,
            signatures=signatures_of(self.report, self.items, built.inputs, built.attrs),
        )
        if len(self.report) > self._before or inliner.failed:
            return None
        check_effects(self.report, spec)
        check_stretched(self.report, spec, spec.definitions)
        return spec if len(self.report) == self._before else None

    # Lets and requirements ------------------------------------------------------------------------

    def _checks(self) -> list[m.ShapeLet | m.Require]:
        checks: list[m.ShapeLet | m.Require] = []
        resolver = Resolver(self.scope)
        for item in self.items:
            if isinstance(item, s.LetDecl):
                checks += self._let(item, resolver)
            elif isinstance(item, s.RequireDecl):
                checks += self._require(item, resolver)
        return checks

    def _let(self, item: s.LetDecl, resolver: Resolver) -> list[m.ShapeLet]:
        values = let_values(item, resolver)
        for ident in item.names:
            self.scope.later.pop(ident.name, None)
            if values is None:
                self.scope.poisoned.add(ident.name)
            else:
                self.scope.symbols[ident.name] = ident.span
        names = tuple(i.name for i in item.names)
        if values is not None and len(names) == 1:
            self.scope.named[m.Symbol(names[0])] = values[0]
        return [] if values is None else [m.ShapeLet(names, values[0], item.span)]

    def _require(self, item: s.RequireDecl, resolver: Resolver) -> list[m.Require]:
        condition = resolver.condition(item.condition)
        built = self.interface.built
        arguments = [i.name for i in built.inputs] + [a.name for a in built.attrs]
        blamed = item.argument.name
        if blamed not in arguments and blamed not in self.scope.poisoned:
            self.report.unknown("input or attribute", blamed, item.argument.span, arguments)
        expected = self._message(item.expected, resolver)
        if condition is None or expected is None:
            return []
        self.scope.required += differences(condition)
        return [m.Require(condition, blamed, expected, item.span)]

    def _message(self, text: s.Text, resolver: Resolver) -> tuple[str | m.Expr, ...] | None:
        """Split a message into text and the expressions in its braces (`{{` is a literal brace)."""
        pieces: list[str | m.Expr] = []
        fine = True
        values = len(re.findall(r"\{[^{}]*\}", text.value))
        if not self.report.at_most(values, PARTS, "values in a message", text.span):
            return None
        for match in re.finditer(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+", text.value):
            found = match.group()
            if match.group(1) is not None:
                value = self._interpolated(text, match.group(1), match.start(1), resolver)
                fine = fine and value is not None
                pieces += [] if value is None else [value]
            elif found in "{}":
                self.report.add(
                    "S004", f"a lone '{found}' in a message", text.span, "a brace itself is written {{ or }}"
                )
                fine = False
            else:
                found = {"{{": "{", "}}": "}"}.get(found, found)
                previous = pieces[-1] if pieces else None
                if isinstance(previous, str):
                    pieces[-1] = previous + found
                else:
                    pieces.append(found)
        return tuple(pieces) if fine else None

    def _interpolated(self, text: s.Text, written: str, offset: int, resolver: Resolver) -> m.Expr | None:
        # Each escape before the brace shifts the column by one, but the span stays within the line.
        line = text.span.line
        try:
            tree = parse_expression(text.span.source, written, line, text.span.column + 1 + offset)
        except DiagnosticError as error:
            for diagnostic in error.diagnostics:
                self.report.append(diagnostic)
            return None
        found = resolver.resolve(tree)
        return None if found is None else found.expr

    # Mathematics ----------------------------------------------------------------------------------

    def _inliner(self) -> Inliner:
        built = self.interface.built
        arguments = [*(t.name for t in built.inputs), *(a.name for a in built.attrs)]
        return Inliner(self.scope, self._passing, arguments, built.spans)

    def _definitions(self, inliner: Inliner) -> list[m.Definition]:
        decls = [i for i in self.items if isinstance(i, s.DefinitionDecl | s.OpCall)]
        outputs = {o.name: o for o in self.interface.built.outputs}
        self._constants()
        return check_definitions(self.scope, decls, outputs, inliner.definitions)

    def _constants(self) -> None:
        for item in self.items:
            if isinstance(item, s.ConstantDecl):
                constant = constant_of(self.report, item)
                if constant is None:
                    self.scope.poisoned.add(item.name.name)
                else:
                    self.scope.constants[item.name.name] = constant
            elif isinstance(item, s.WhenDecl):
                self.report.add(
                    "S063", "`when` belongs to an algorithm", item.span, "an op says what holds by `require`"
                )

    def _outputs_defined(self) -> None:
        decls = [i for i in self.items if isinstance(i, s.DefinitionDecl)]
        tensors = [i for i in self.items if isinstance(i, s.TensorDecl) and i.keyword == "output"]
        if not tensors:
            self.report.add("S053", f"the op '{self.decl.name.name}' has no output", self.decl.name.span)
        targets = {d.target.name for d in decls}
        for tensor in tensors:
            name = tensor.name.name
            if name not in targets:
                help = f"write {name}[...] = ..."
                self.report.add("S053", f"the output '{name}' is not defined", tensor.name.span, help)

    def _examples(self) -> tuple[m.Example, ...]:
        decls = [i for i in self.items if isinstance(i, s.ExampleDecl)]
        return tuple(example_of(self.report, d) for d in decls)
