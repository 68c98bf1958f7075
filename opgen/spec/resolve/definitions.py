"""Definitions: the left side and its coverage, the ranges of indices, and proofs that reads are in bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from opgen.diagnostics import Span
from opgen.spec.model import model as m
from opgen.spec.model.polynomial import digits, same
from opgen.spec.model.walk import reads_values
from opgen.spec.resolve.dimensions import symbols_of
from opgen.spec.resolve.hints import extent_by_use
from opgen.spec.resolve.inside import inside
from opgen.spec.resolve.kinds import BOOL, INT, NUMBER, REAL, Typed
from opgen.spec.resolve.mathematics import MathResolver, show
from opgen.spec.resolve.recurrences import check_recurrences
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.resolve.scope import Binding, Readable, Scope
from opgen.spec.resolve.steps import Foretold
from opgen.spec.resolve.updates import UpdateChecker
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural

Call: TypeAlias = Callable[[s.OpCall, Sequence[m.Definition]], Sequence[m.Definition]]
"""Function that returns the definitions a call of an op expands to, given the definitions before it."""


def check_definitions(
    scope: Scope,
    items: Sequence[s.DefinitionDecl | s.OpCall],
    outputs: Mapping[str, m.Tensor],
    called: Call = lambda call, before: (),
) -> list[m.Definition]:
    """Return the definitions of intermediate tensors and of `outputs`, in order; mistakes are noted."""
    decls = [d for d in items if isinstance(d, s.DefinitionDecl)]
    scope.later_tensors = {d.target.name for d in decls if d.let}
    scope.later_tensors |= {n.name for d in items if isinstance(d, s.OpCall) for n in d.names}
    done: set[str] = set()
    defined: list[m.Definition] = []
    foretold = Foretold(scope, decls, outputs)
    before = len(scope.report)
    for decl in items:
        if isinstance(decl, s.OpCall):
            scope.later_tensors -= {n.name for n in decl.names}
            defined += called(decl, defined)
            continue
        name = decl.target.name
        if decl.update is not None:
            _update(scope, decl, defined, outputs, foretold)
            continue
        if not decl.let and name not in outputs:
            if name not in scope.poisoned:
                scope.report.unknown("output", name, decl.target.span, outputs)
            continue
        if not decl.let and name in done:
            scope.report.add("S053", f"'{name}' is defined twice", decl.target.span)
            continue
        scope.later_tensors.discard(name)
        hint = partial(extent_by_use, decls, outputs)
        checker = DefinitionChecker(scope, decl, None if decl.let else outputs[name], hint, foretold)
        definition = checker.check()
        _add_tables(scope, defined)
        if definition is None:
            scope.poisoned.add(name)
            continue
        done.add(name)
        defined += [*checker.before(), definition]
        foretold.compare(definition)
        if decl.let:
            scope.tensors[name] = readable(definition)
    if len(scope.report) == before:
        check_recurrences(scope.report, defined)
    return defined


def _update(
    scope: Scope,
    decl: s.DefinitionDecl,
    defined: list[m.Definition],
    outputs: Mapping[str, m.Tensor],
    foretold: Foretold,
) -> None:
    """Merge an update into the definition before it; mistakes are noted."""
    name = decl.target.name
    if name in scope.poisoned:
        return
    if not defined or defined[-1].tensor != name:
        message = f"an update of '{name}' comes right after its definition, or another update of it"
        scope.report.add("S053", message, decl.target.span, f"say before it what it is at first: {name}[...] = ...")
        return
    before = scope.tensors.pop(name, None)
    output = outputs.get(name)
    dtype = defined[-1].dtype if output is None else output.dtype
    updated = UpdateChecker(scope, decl, defined[-1], dtype, foretold).check()
    if before is not None:
        scope.tensors[name] = before
    if updated is None:
        scope.poisoned.add(name)
    else:
        defined[-1] = updated
    _add_tables(scope, defined, before=1)


def _add_tables(scope: Scope, defined: list[m.Definition], before: int = 0) -> None:
    """Insert the tensors of newly read lists into the definitions, `before` places from the end."""
    known = {d.tensor for d in defined}
    for table in scope.tables.values():
        if table.tensor not in known:
            defined.insert(len(defined) - before, table)


class DefinitionChecker:
    """Checker of one definition in the scope of its op.

    `output` is the output it defines (None for a `let` tensor).  `hint` returns the extent that later reads of a `let`
    tensor imply for one of its dimensions, or None.
    """

    def __init__(
        self,
        scope: Scope,
        decl: s.DefinitionDecl,
        output: m.Tensor | None,
        hint: Callable[[str, int], m.Expr | None],
        foretold: Foretold,
    ) -> None:
        self.hint = hint
        self.scope = scope
        self.report = scope.report
        self.decl = decl
        self.output = output
        self.math = MathResolver(scope, decl.target.name, foretold, decl.value if decl.let else None)
        self.ranges: dict[str, m.Expr] = {}

    def check(self) -> m.Definition | None:
        """Return the definition, or None with its mistakes noted."""
        indices = self._indices()
        bindings = self.math.bind(indices)
        self.math.own = {b.name for b in bindings}
        left = self._left() if len(bindings) == len(indices) else None
        value = self.math.resolve(self.decl.value)
        if left is not None and value is not None and self.output is None:
            left = left if self._let_ranges(bindings) else None
        for binding in bindings:
            del self.scope.indices[binding.name]
        if left is None or value is None:
            return None
        self.ranges |= self.math.ordered
        self._prove_reads(self.math.unguarded)
        self._prove_elements()
        typed = self._typed(value)
        if typed is None:
            return None
        if self.output is not None:
            dims = tuple(d.size for d in self.output.dims)
        else:
            dims = tuple(self.ranges[b.name] for b in bindings)
        ranges = tuple(m.IndexRange(b.name, self.ranges[b.name]) for b in bindings)
        target = self.decl.target.name
        return m.Definition(target, ranges, left, typed.expr, typed.kind, dims, self.output is not None, self.decl.span)

    def before(self) -> list[m.Definition]:
        """Return the implicit definitions that the value needs."""
        found = []
        for d in self.math.before:
            ranges = tuple(m.IndexRange(r.name, self.ranges[r.name]) for r in d.indices)
            found.append(replace(d, indices=ranges, dims=tuple(r.extent for r in ranges)))
        return found

    # The left side --------------------------------------------------------------------------------

    def _indices(self) -> list[tuple[s.Ident, s.Expression | None]]:
        """Return the indices of the left side in order, with their extents from `where`."""
        where: dict[str, s.Expression | None] = {}
        for r in self.decl.where:
            if r.index.name in where:
                self.report.add("S050", f"the range of '{r.index.name}' is given twice", r.index.span)
            elif r.extent is None:
                self.report.add("S050", f"expected {r.index.name} < ...", r.span)
            where.setdefault(r.index.name, r.extent)
        found: dict[str, s.Ident] = {}
        for subscript in self.decl.subscripts:
            for named in symbols_of(subscript):
                bare = subscript is named
                if bare or (named.name not in self.scope.symbols and named.name not in self.scope.attrs):
                    found.setdefault(named.name, s.Ident(named.span, named.name))
        for r in self.decl.where:
            if r.index.name not in found:
                self.report.unknown("index", r.index.name, r.index.span, found)
        return [(ident, where.get(name)) for name, ident in found.items()]

    def _left(self) -> tuple[m.Expr, ...] | None:
        """Return the subscripts of the left side; the ranges of an output's indices follow from its dimensions."""
        resolved = [Resolver(self.scope).integer(e) for e in self.decl.subscripts]
        subscripts = tuple(e for e in resolved if e is not None)
        if len(subscripts) < len(resolved):
            return None
        if self.output is None:
            return self._let_left(subscripts)
        if len(subscripts) != self.output.rank:
            expected = plural(self.output.rank, "dimension")
            message = f"'{self.output.name}' has {expected}, found {plural(len(subscripts), 'subscript')}"
            self.report.add("S021", message, self.decl.target.span)
            return None
        fine = True
        for tree, subscript, dim in zip(self.decl.subscripts, subscripts, self.output.dims, strict=True):
            fine = self._cover(subscript, dim.size, tree.span) and fine
        return subscripts if fine else None

    def _let_left(self, subscripts: tuple[m.Expr, ...]) -> tuple[m.Expr, ...] | None:
        names = [e.name for e in subscripts if isinstance(e, m.Index)]
        for tree, subscript in zip(self.decl.subscripts, subscripts, strict=True):
            if not isinstance(subscript, m.Index):
                self.report.add("S051", "a subscript of a `let` tensor is a single index", tree.span)
        if len(set(names)) < len(names):
            self.report.add("S051", "an index stands twice on the left side", self.decl.target.span)
        return subscripts if len(set(names)) == len(subscripts) else None

    def _cover(self, subscript: m.Expr, dim: m.Expr, span: Span) -> bool:
        """Derive the ranges of a subscript's indices from the dimension it covers; return False if that fails."""
        found = [(subscript.name, dim)] if isinstance(subscript, m.Index) else digits(subscript, dim)
        if found is None:
            message = f"this does not cover the dimension {show(dim)} exactly once"
            help = "a subscript of an output is an index, or a composite such as g * K + k for a dimension G * K"
            self.report.add("S051", message, span, help)
            return False
        for name, extent in found:
            binding = self.scope.indices.get(name)
            if binding is None:
                return False
            if name in self.ranges:
                self.report.add("S051", f"the index '{name}' stands twice on the left side", span)
                return False
            if binding.explicit is not None and not same(binding.explicit, extent):
                message = f"'{name}' covers {show(extent)} here, not {show(binding.explicit)}"
                self.report.add("S051", message, binding.span)
                return False
            self.ranges[name] = extent
        return True

    def _let_ranges(self, bindings: Iterable[Binding]) -> bool:
        fine = True
        for axis, binding in enumerate(bindings):
            hint = None if binding.bare or binding.composite else self.hint(self.decl.target.name, axis)
            if hint is not None:
                binding.bare.append((hint, binding.span))
            extent = self.math.extent(binding, f"... where {binding.name} < ...")
            if extent is None:
                fine = False
            else:
                self.ranges[binding.name] = extent
        return fine

    # The value ------------------------------------------------------------------------------------

    def _typed(self, value: Typed) -> Typed | None:
        """Return the value in the element type of the defined tensor."""
        resolver, span = self.math, self.decl.value.span
        if self.output is not None:
            adapted = resolver.adapt(value, self.output.dtype)
            if adapted is None:
                expected = resolver.describe(self.output.dtype)
                message = f"'{self.output.name}' holds {expected}, this is {resolver.describe(value.kind)}"
                self.report.add(
                    "S020", message, span, f"cast it, as in {self.output.dtype}(...)" if value.kind != BOOL else None
                )
            return adapted
        if value.kind in (NUMBER, REAL) and self.scope.type_variables:
            adapted = resolver.adapt(value, next(iter(self.scope.type_variables)))
            if adapted is not None:
                return adapted
        if value.kind in (INT, NUMBER, REAL):
            message = f"a `let` tensor holds values of a tensor's type, this is {resolver.describe(value.kind)}"
            self.report.add("S020", message, span, "cast it, as in float(...)")
            return None
        return value

    def _prove_reads(self, reads: Iterable[m.Read]) -> None:
        for read in reads:
            known = self.scope.tensors.get(read.tensor)
            dims = self.math.foretold.dims(read.tensor) if known is None else known.dims
            if dims is None or read.span is None:
                continue
            for axis, (subscript, dim) in enumerate(zip(read.indices, dims, strict=True)):
                if not reads_values(subscript) and not inside(
                    subscript, dim, self.ranges, self._least, self.scope.required, self.scope.named
                ):
                    name = next((a for a, d in self.scope.tables.items() if d.tensor == read.tensor), read.tensor)
                    message = f"'{name}' may be read outside its dimension {axis} ({show(dim)})"
                    help_ = f"say what is read there: {name}[...] else 0"
                    if self.output is None and known is not None and name == read.tensor:
                        # A `let` has a value everywhere, but a reduction skips terms whose reads are out of bounds.
                        help_ += (
                            f"; for a term that a reduction leaves out, read it there, as in sum[...](f({name}[...]))"
                        )
                        help_ += " with `function f(v) = ...` in place of the `let`"
                    self.report.add("S052", message, read.span, help_)
                    break

    def _prove_elements(self) -> None:
        for element, reduced in self.math.elements:
            ranges = self.ranges | reduced
            for axis, (subscript, size) in enumerate(zip(element.indices, element.constant.shape, strict=True)):
                proved = _remainder(subscript, size) or inside(subscript, m.Number(size), ranges, self._least)
                if not proved and element.span is not None:
                    message = f"'{element.constant.name}' may be read outside its dimension {axis} ({size})"
                    self.report.add("S052", message, element.span)
                    break

    def _least(self, atom: m.Expr) -> int | None:
        """Return a lower bound of an atom: 0 for a dimension, the declared minimum for an attribute."""
        if isinstance(atom, m.AttrValue):
            attr = self.scope.attrs[atom.attr]
            return None if attr.optional and (attr.minimum or 0) > 0 else attr.minimum
        if isinstance(atom, m.Symbol) and atom.name in self.scope.dims:
            return 0
        return None


def _remainder(subscript: m.Expr, size: int) -> bool:
    """True if a subscript is a remainder by a positive literal that is at most `size`."""
    if not isinstance(subscript, m.Operation) or subscript.op != "%" or not isinstance(subscript.right, m.Number):
        return False
    return 0 < subscript.right.value <= size


def readable(definition: m.Definition) -> Readable:
    """Return a `let` tensor as later definitions read it."""
    return Readable(definition.tensor, definition.dtype, definition.dims)
