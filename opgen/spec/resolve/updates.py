"""Updates: elements of a tensor that are changed at computed positions.

    y[p, j] = data[p, j]
    y[at[i], j] add= values[i, j]

An update is merged into the definition before it; the value of the merged definition is a `Scatter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from opgen.spec.model import model as m
from opgen.spec.model.walk import index_names, reads, subexpressions, substitute_indices
from opgen.spec.resolve.hints import walk_syntax
from opgen.spec.resolve.kinds import BOOL
from opgen.spec.resolve.mathematics import MathResolver
from opgen.spec.resolve.scope import Binding, Scope
from opgen.spec.resolve.steps import Foretold
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural

KINDS: dict[str, Literal["sum", "prod", "max", "min", "set"]] = {
    "add": "sum",
    "mul": "prod",
    "max": "max",
    "min": "min",
    "set": "set",
}
"""Kind of a `Scatter` for each word of an update."""


def word_of(kind: str) -> str:
    """Return the word that writes an update of a kind."""
    return next(word for word, known in KINDS.items() if known == kind)


def layers(value: m.Expr) -> tuple[m.Expr, tuple[m.Scatter, ...]]:
    """Return the initial value of the elements, and the updates of a value in order."""
    found: list[m.Scatter] = []
    while isinstance(value, m.Scatter):
        found.insert(0, value)
        value = value.start
    return value, tuple(found)


class UpdateChecker:
    """Checker of one update of the definition `so_far`; `dtype` is the tensor's type."""

    def __init__(
        self, scope: Scope, decl: s.DefinitionDecl, so_far: m.Definition, dtype: str, foretold: Foretold
    ) -> None:
        self._scope = scope
        self._decl = decl
        self._so_far = so_far
        self._dtype = dtype
        self._math = MathResolver(scope, decl.target.name, foretold)

    def check(self) -> m.Definition | None:
        """Return the definition with the update, or None with its mistakes noted."""
        indices = list(self._indices())
        bindings = self._math.bind(indices)
        found = self._update(bindings) if len(bindings) == len(indices) else None
        for binding in bindings:
            self._scope.indices.pop(binding.name, None)
        if found is None:
            return None
        own = next((r for r in reads(found) if r.tensor == self._so_far.tensor), None)
        if own is not None:
            message = f"'{own.tensor}' is computed step by step: it has no updates"
            self._scope.report.add("S023", message, self._decl.target.span)
            return None
        return replace(self._so_far, value=self._renamed(found))

    def _indices(self) -> Iterator[tuple[s.Ident, s.Expression | None]]:
        """Yield the indices in iteration order, with their extents from `where`."""
        where = {r.index.name: r for r in self._decl.where}
        seen: set[str] = set()
        for subscript in self._decl.subscripts:
            for name, ident in self._names(subscript).items():
                if name not in seen:
                    seen.add(name)
                    yield ident, where[name].extent if name in where else None
        for r in self._decl.where:
            if r.extent is None:
                self._scope.report.add("S050", f"expected {r.index.name} < ...", r.span)
            if r.index.name not in seen:
                seen.add(r.index.name)
                yield r.index, r.extent

    def _names(self, subscript: s.Expression) -> dict[str, s.Ident]:
        """Return the indices of a subscript: its names without another meaning."""
        scope, found = self._scope, dict[str, s.Ident]()
        nodes = list(walk_syntax(subscript))
        bound = {r.index.name for n in nodes if isinstance(n, s.Reduction) for r in n.ranges}
        words = {id(n.right) for n in nodes if isinstance(n, s.Binary) and n.op in ("==", "!=") and _is_enum(scope, n)}
        known = (bound, scope.symbols, scope.attrs, scope.enums, scope.tensors, scope.constants, scope.poisoned)
        for node in nodes:
            if isinstance(node, s.Named) and id(node) not in words and not any(node.name in k for k in known):
                found.setdefault(node.name, s.Ident(node.span, node.name))
        return found

    def _update(self, bindings: list[Binding]) -> m.Scatter | None:
        decl, math, report = self._decl, self._math, self._scope.report
        resolved, value, condition = math.update(decl)
        at = tuple(e for e in resolved if e is not None)
        if len(at) < len(resolved) or value is None or (condition is None and decl.condition is not None):
            return None
        dims = self._so_far.dims
        if len(at) != len(dims):
            expected = plural(len(dims), "dimension")
            message = f"'{decl.target.name}' has {expected}, found {plural(len(at), 'subscript')}"
            report.add("S021", message, decl.target.span)
            return None
        adapted = math.adapt(value, self._dtype)
        if adapted is None:
            message = f"'{decl.target.name}' holds {math.describe(self._dtype)}, this is {math.describe(value.kind)}"
            report.add("S020", message, decl.value.span, f"cast it, as in {self._dtype}(...)")
            return None
        if self._may_be_bool() and decl.update != "set":
            report.add("S020", f"'{decl.update}=' takes numbers, '{decl.target.name}' holds {BOOL}", decl.target.span)
            return None
        ranges = self._ranges(bindings, at, dims)
        if ranges is None:
            return None
        kind = KINDS[decl.update or "set"]
        return m.Scatter(kind, ranges, adapted.expr, decl.span, condition, at=at, start=self._so_far.value)

    def _may_be_bool(self) -> bool:
        variable = self._scope.type_variables.get(self._dtype)
        return any(d.kind == BOOL for d in variable.allowed) if variable else self._dtype == BOOL

    def _ranges(
        self, bindings: list[Binding], at: tuple[m.Expr, ...], dims: tuple[m.Expr, ...]
    ) -> tuple[m.IndexRange, ...] | None:
        """Return the ranges of indices from the dimensions they subscript alone; reads precede the updated tensor."""
        alone = {e.name: d for e, d in zip(at, dims, strict=True) if isinstance(e, m.Index)}
        found: list[m.IndexRange] = []
        for binding in bindings:
            if not binding.bare and not binding.composite and binding.name in alone:
                binding.bare.append((alone[binding.name], binding.span))
            extent = self._math.extent(binding, f"... where {binding.name} < ...")
            if extent is None:
                return None
            found.append(m.IndexRange(binding.name, extent))
        return tuple(found)

    def _renamed(self, e: m.Scatter) -> m.Scatter:
        """Return the update with its indices renamed where the definition already has their names."""
        used = {r.name for r in self._so_far.indices} | index_names(e)
        used |= {r.name for n in subexpressions(e) if isinstance(n, m.Reduce) and n is not e for r in n.indices}
        used |= {*self._scope.symbols, *self._scope.attrs, *self._scope.tensors}
        names: dict[str, str] = {}
        for r in e.indices:
            if r.name in {i.name for i in self._so_far.indices} | _bound(e.start):
                names[r.name] = f"{r.name}_"
                while names[r.name] in used:
                    names[r.name] += "_"
        return renamed(e, names)


def renamed(e: m.Scatter, names: Mapping[str, str]) -> m.Scatter:
    """Return an update with some of its indices renamed."""
    if not names:
        return e
    new: dict[str, m.Expr] = {old: m.Index(name) for old, name in names.items()}
    return replace(
        e,
        indices=tuple(m.IndexRange(names.get(r.name, r.name), r.extent) for r in e.indices),
        body=substitute_indices(e.body, new),
        condition=None if e.condition is None else substitute_indices(e.condition, new),
        at=tuple(substitute_indices(i, new) for i in e.at),
    )


def _bound(e: m.Expr) -> set[str]:
    return {r.name for n in subexpressions(e) if isinstance(n, m.Reduce) for r in n.indices}


def _is_enum(scope: Scope, e: s.Binary) -> bool:
    return isinstance(e.left, s.Named) and e.left.name in scope.enums
