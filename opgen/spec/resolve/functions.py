"""Shape functions, checked on first use so that they may be declared in any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opgen.spec.model import model as m
from opgen.spec.resolve.measure import size
from opgen.spec.resolve.names import check_name, check_word
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.resolve.scope import Scope
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import FUNCTION_CHAIN, FUNCTION_STEPS, PARAMETERS
from opgen.spec.syntax.report import Report
from opgen.spec.syntax.strings import plural


class Functions(Mapping[str, "m.Function | None"]):
    """Shape functions by name; an invalid one maps to None."""

    def __init__(self, report: Report, decls: Sequence[s.FunctionDecl]) -> None:
        self._report = report
        self._decls = {d.name.name: d for d in reversed(decls)}
        self._checked: dict[str, m.Function | None] = {}
        self._chain: list[str] = []
        self.costs: dict[str, int] = {}
        """Number of expressions that a call of each valid function evaluates."""

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._decls))

    def __len__(self) -> int:
        return len(self._decls)

    def __getitem__(self, name: str) -> m.Function | None:
        decl = self._decls[name]
        if name in self._checked:
            return self._checked[name]
        if name in self._chain:
            circle = " -> ".join([*self._chain[self._chain.index(name) :], name])
            self._report.add("S022", f"the function '{name}' calls itself: {circle}", decl.name.span)
            return None
        if len(self._chain) >= FUNCTION_CHAIN:
            message = f"'{name}' is called through more than {FUNCTION_CHAIN} functions"
            self._report.add("S003", message, decl.name.span)
            return None
        self._chain.append(name)
        self._checked[name] = checked = self._check(decl)
        self._chain.pop()
        return checked

    def _check(self, decl: s.FunctionDecl) -> m.Function | None:
        before = len(self._report)
        check_name(self._report, decl.name.name, decl.name.span)
        self._report.at_most(len(decl.parameters), PARAMETERS, "parameters", decl.name.span)
        self._report.at_most(len(decl.results), PARAMETERS, "results", decl.name.span)
        scope = Scope(self._report, self)
        parameters = self._parameters(decl, scope)
        for let in decl.lets:
            scope.later |= {n.name: n.span for n in let.names}
        resolver = Resolver(scope)
        lets: list[tuple[str, m.Expr]] = []
        for let in decl.lets:
            self._let(let, resolver, lets)
        results = [resolver.integer(v) for v in decl.returns.values]
        if len(decl.returns.values) != len(decl.results):
            names = ", ".join(r.name for r in decl.results)
            found = plural(len(decl.returns.values), "value")
            message = f"'{decl.name.name}' returns ({names}), found {found}"
            self._report.add("S021", message, decl.returns.span)
        if len(self._report) > before or None in results:
            return None  # a callee may be invalid, which is noted elsewhere
        cost = size((e for e in (*(value for _, value in lets), *results) if e is not None), self.costs)
        if not self._report.at_most(cost, FUNCTION_STEPS, f"steps in a call of '{decl.name.name}'", decl.name.span):
            return None
        self.costs[decl.name.name] = cost
        return m.Function(
            decl.name.name,
            parameters,
            tuple(lets),
            tuple(r for r in results if r is not None),
            tuple(r.name for r in decl.results),
            "" if decl.doc is None else decl.doc.value,
            decl.span,
        )

    def _parameters(self, decl: s.FunctionDecl, scope: Scope) -> tuple[m.Parameter, ...]:
        parameters = []
        for parameter in decl.parameters:
            name = parameter.name.name
            if name in scope.symbols or name in scope.enums:
                self._report.add("S011", f"the parameter '{name}' is declared twice", parameter.name.span)
                continue
            check_name(self._report, name, parameter.name.span)
            for value in parameter.values:
                check_word(self._report, value.name, value.span)
            values = tuple(dict.fromkeys(v.name for v in parameter.values))
            if values:
                scope.enums[name] = values
            else:
                scope.symbols[name] = parameter.name.span
            parameters.append(m.Parameter(name, values))
        return tuple(parameters)

    def _let(self, let: s.LetDecl, resolver: Resolver, lets: list[tuple[str, m.Expr]]) -> None:
        scope = resolver.scope
        values = let_values(let, resolver)
        for i, ident in enumerate(let.names):
            name = ident.name
            scope.later.pop(name, None)
            if name in scope.symbols or name in scope.enums:
                self._report.add("S011", f"'{name}' is declared twice", ident.span)
                continue
            check_name(self._report, name, ident.span)
            if values is None:
                scope.poisoned.add(name)
            else:
                scope.symbols[name] = ident.span
                lets.append((name, values[i]))


def let_values(let: s.LetDecl, resolver: Resolver) -> tuple[m.Expr, ...] | None:
    """Return the values of a `let`: any integer for one name, the results of one call for several."""
    if len(let.names) == 1:
        value = resolver.integer(let.value)
        return None if value is None else (value,)
    if not isinstance(let.value, s.Call):
        resolver.report.add("S021", f"{len(let.names)} names take the results of one call", let.value.span)
        return None
    return resolver.call_results(let.value, len(let.names))
