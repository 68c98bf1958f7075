"""Algorithms: alternative mathematics for an op's results, with the conditions under which they may be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from opgen.diagnostics import Span
from opgen.dtypes import lookup
from opgen.spec.check.interface import declare
from opgen.spec.model import model as m
from opgen.spec.model.narrow import narrow, narrow_definition, narrow_tensor
from opgen.spec.model.walk import conjuncts, reads, reads_values
from opgen.spec.resolve.constants import constant_of
from opgen.spec.resolve.definitions import check_definitions
from opgen.spec.resolve.functions import let_values
from opgen.spec.resolve.measure import size
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.resolve.scope import Readable, Scope
from opgen.spec.resolve.stretch import check_stretched
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.fragments import Fragments, expand
from opgen.spec.syntax.limits import CONDITIONS, PLACED
from opgen.spec.syntax.report import Report

_OWN = (s.TypeDecl, s.WhenDecl, s.ConstantDecl, s.LetDecl, s.DefinitionDecl)


def with_algorithms(
    report: Report,
    decl: s.OpDecl,
    op: m.OpSpec,
    fragments: Fragments,
    functions: Mapping[str, m.Function | None],
) -> m.OpSpec | None:
    """Return the op with its declared algorithms, or None with their mistakes noted."""
    before = len(report)
    found: dict[str, m.Algorithm] = {}
    constants = [i for i in decl.items if isinstance(i, s.ConstantDecl)]
    for item in decl.items:
        if not isinstance(item, s.AlgorithmDecl):
            continue
        if item.name.name in found:
            report.add("S011", f"the algorithm '{item.name.name}' is declared twice", item.name.span)
        items = [*constants, *expand(report, item.items, fragments)]
        algorithm = AlgorithmChecker(report, item, items, op, functions).check()
        if algorithm is not None:
            found.setdefault(algorithm.name, algorithm)
    return replace(op, algorithms=tuple(found.values())) if len(report) == before else None


class AlgorithmChecker:
    """Checker of one algorithm of an op whose own declarations are valid; `items` have their fragments expanded."""

    def __init__(
        self,
        report: Report,
        decl: s.AlgorithmDecl,
        items: Sequence[s.Item],
        op: m.OpSpec,
        functions: Mapping[str, m.Function | None],
    ) -> None:
        self.report = report
        self.decl = decl
        self.items = items
        self.op = op
        self.scope = _scope(report, op, functions)
        self.facts: dict[m.Expr, int] = {}
        self._placed = 0

    def check(self) -> m.Algorithm | None:
        """Return the algorithm, or None with its mistakes noted."""
        before = len(self.report)
        self._names()
        for item in self.items:
            if not isinstance(item, _OWN):
                message = "an algorithm has types, conditions, constants, named integers and definitions"
                self.report.add("S063", message, item.span, "declare this in the op")
            elif isinstance(item, s.TypeDecl):
                self._type(item)
            elif isinstance(item, s.ConstantDecl):
                constant = constant_of(self.report, item)
                self.scope.poisoned |= {item.name.name} if constant is None else set()
                self.scope.constants |= {} if constant is None else {item.name.name: constant}
        condition = self._conditions()
        self._believe()
        definitions = tuple(self._definitions())
        self._refuse_elements((*self.op.definitions, *definitions))
        check_stretched(self.report, self.op, definitions)
        if len(self.report) > before:
            return None
        return m.Algorithm(
            self.decl.name.name,
            tuple(self.scope.type_variables.values()),
            condition,
            tuple(self.facts.items()),
            definitions,
            self.decl.optional,
            "" if self.decl.doc is None else self.decl.doc.value,
            self.decl.span,
        )

    def _refuse_elements(self, definitions: Iterable[m.Definition]) -> None:
        """Note data-dependent reads and updates; only those of an op's own definitions can be checked."""
        definitions = tuple(definitions)
        updated = next((d for d in definitions if isinstance(d.value, m.Scatter)), None)
        if updated is not None:
            message = f"'{updated.tensor}' is updated: an op that updates tensors has no algorithms"
            self.report.add("S063", message, updated.span or self.decl.span)
            return
        found = (r for d in definitions for r in reads(d.value) if any(reads_values(i) for i in r.indices))
        first = next(found, None)
        if first is not None:
            message = f"'{first.tensor}' is read at elements of another tensor: an op that does has no algorithms"
            self.report.add("S063", message, first.span or self.decl.span)

    def _names(self) -> None:
        """Note names that are declared twice or taken in the op."""
        scope = self.scope
        taken = {*scope.symbols, *scope.attrs, *scope.enums, *scope.tensors}
        for name, span in declare(self.report, [i for i in self.items if not isinstance(i, s.TypeDecl)]).items():
            if name in taken:
                self.report.add("S011", f"'{name}' is the name of something in '{self.op.name}'", span)

    def _type(self, item: s.TypeDecl) -> None:
        """Narrow a type variable to a subset of the op's types."""
        variable = self.scope.type_variables.get(item.name.name)
        if variable is None:
            self.report.unknown("type variable", item.name.name, item.name.span, self.scope.type_variables)
            return
        allowed = []
        for ident in item.allowed:
            dtype = lookup(ident.name)
            if dtype in variable.allowed:
                allowed.append(dtype)
            else:
                known = [t.name for t in variable.allowed]
                self.report.unknown(f"{variable.name} of {self.op.name}", ident.name, ident.span, known)
        narrowed = m.TypeVariable(variable.name, tuple(t for t in variable.allowed if t in allowed))
        self.scope.type_variables[variable.name] = narrowed

    # Conditions -----------------------------------------------------------------------------------

    def _conditions(self) -> m.Expr | None:
        """Return the conjunction of all conditions; named integers are replaced by their values from here on."""
        resolver = Resolver(self.scope)
        whole: m.Expr | None = None
        count = 0
        for item in self.items:
            if isinstance(item, s.LetDecl):
                values = let_values(item, resolver)
                names = [n.name for n in item.names]
                self.scope.poisoned |= set(names) if values is None else set()
                self._placed += size(values or (), {})
                self.report.stop_beyond(self._placed, PLACED, "expressions that names stand for", item.span)
                self.scope.stands_for |= {} if values is None else dict(zip(names, values, strict=True))
            elif isinstance(item, s.WhenDecl):
                condition = resolver.condition(item.condition)
                if condition is not None:
                    self.facts |= dict(_facts(condition))
                    for part in conjuncts(condition):
                        whole = part if whole is None else m.Operation("and", whole, part)
                        count += 1
                        self.report.stop_beyond(count, CONDITIONS, "conditions of an algorithm", item.span)
        return whole

    def _believe(self) -> None:
        """Substitute the values that the conditions fix."""
        scope = self.scope
        known = {e.name: m.Number(v) for e, v in self.facts.items() if isinstance(e, m.Symbol)}
        scope.stands_for = {n: narrow(e, self.facts) for n, e in scope.stands_for.items()} | known
        for name, tensor in scope.tensors.items():
            if tensor.dims is not None:
                scope.tensors[name] = replace(tensor, dims=tuple(narrow(d, self.facts) for d in tensor.dims))

    # Mathematics ----------------------------------------------------------------------------------

    def _definitions(self) -> Iterator[m.Definition]:
        decls = [i for i in self.items if isinstance(i, s.DefinitionDecl)]
        outputs = {o.name: narrow_tensor(o, self.facts) for o in self.op.outputs}
        defined = check_definitions(self.scope, decls, outputs)
        yield from (narrow_definition(definition, self.facts) for definition in defined)
        named = {d.target.name for d in decls}
        for name in outputs:
            if name not in named:
                message = f"the algorithm '{self.decl.name.name}' does not define '{name}'"
                self.report.add("S053", message, self.decl.name.span, f"write {name}[...] = ...")


def _facts(condition: m.Expr) -> Iterator[tuple[m.Expr, int]]:
    """Yield the symbols and elements of attributes that a condition fixes, with their values."""
    for part in conjuncts(condition):
        if isinstance(part, m.Operation) and part.op == "==":
            known, value = part.left, part.right
            if isinstance(known, m.Symbol | m.AttrValue) and isinstance(value, m.Number) and type(value.value) is int:
                yield known, value.value


def _scope(report: Report, op: m.OpSpec, functions: Mapping[str, m.Function | None]) -> Scope:
    """Return the scope of an op's own mathematics, without its intermediate tensors."""
    nowhere = op.span
    if nowhere is None:
        raise ValueError(f"op {op.name} has no place in a source")
    lists = [f for i in op.inputs for f in ([i.dims] if isinstance(i, m.Tensor) else i.forms)]
    dims = {f for dims in lists for d in dims for f in d.factors if isinstance(f, str)}
    bound = {n for i in op.inputs if isinstance(i, m.Sizes) for form in i.bindings for n, _ in form}
    lets = [n for c in op.checks if isinstance(c, m.ShapeLet) for n in c.names]
    tensors = {t.name: Readable(t.name, t.dtype, tuple(d.size for d in t.dims), t.shape_only) for t in op.tensors}
    tensors |= {o.name: Readable(o.name, o.dtype, None, output=True) for o in op.outputs}
    symbols: dict[str, Span] = dict.fromkeys([*sorted(dims | bound), *lets], nowhere)
    return Scope(
        report,
        functions,
        symbols=symbols,
        dims=dims | bound,
        enums={a.name: a.values for a in op.attrs if a.kind == "enum"},
        attrs={a.name: a for a in op.attrs},
        tensors=tensors,
        type_variables={v.name: v for v in op.type_variables},
    )
