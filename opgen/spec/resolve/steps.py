"""Tensors read at another step, before their definitions are checked.

    let c[t, i] = f(x[t, i], c[t - 1, i] else c0[i], h[t - 1, i] else h0[i])
    let h[t, i] = g(c[t, i])

Both are computed step by step along `t`.  Their types and extents are inferred from their texts, and compared with the
checked definitions afterwards.  `opgen.spec.resolve.recurrences` checks the order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opgen.diagnostics import Span
from opgen.spec.model import model as m
from opgen.spec.model.polynomial import same
from opgen.spec.resolve.hints import extent_by_use, walk_syntax
from opgen.spec.resolve.kinds import INT, NUMBER, REAL, Kind, number
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.resolve.scope import Readable, Scope
from opgen.spec.syntax import nodes as s


class Foretold:
    """Types and extents of `let` tensors, inferred before their definitions are checked."""

    def __init__(self, scope: Scope, decls: Sequence[s.DefinitionDecl], outputs: Mapping[str, m.Tensor]) -> None:
        self._scope = scope
        self._decls = decls
        self._outputs = outputs
        self._lets = {d.target.name: d for d in decls if d.let}
        self._told: dict[str, tuple[Readable, Span]] = {}

    def is_step(self, tree: s.Subscripted) -> bool:
        """True if a `let` tensor is read at another step of some index: `h[t - 1, j]`."""
        return tree.owner.name in self._lets and any(self._is_shifted(e) for e in tree.subscripts)

    def _is_shifted(self, e: s.Expression) -> bool:
        if not isinstance(e, s.Binary) or e.op not in ("+", "-") or not isinstance(e.left, s.Named):
            return False
        shift = number(e.right) if isinstance(e.right, s.Constant) else None
        return e.left.name in self._scope.indices and type(shift) is int and shift > 0

    def readable(self, name: str, outside: Kind | None, span: Span) -> Readable | None:
        """Return a tensor as read at another step; None, with a note, if its type or extents are unknown.

        `outside` is the kind of the read's `else` value.
        """
        if name in self._told:
            return self._told[name][0]
        decl = self._lets[name]
        extents = [self._extent(name, axis, set()) for axis in range(len(decl.subscripts))]
        known = tuple(e for e in extents if e is not None)
        if len(known) < len(extents):
            axis = extents.index(None)
            index = decl.subscripts[axis]
            shown = index.name if isinstance(index, s.Named) else "i"
            message = f"how far '{name}' reaches along its dimension {axis} cannot be told before it is defined"
            self._scope.report.add("S050", message, span, f"write let {name}[...] = ... where {shown} < ...")
            return None
        kind = outside if outside not in (None, INT, NUMBER, REAL) else next(iter(self._scope.type_variables), None)
        if kind is None:
            message = f"what type '{name}' holds cannot be told before it is defined"
            self._scope.report.add("S020", message, span, "cast the value outside, as in float32(0)")
            return None
        found = Readable(name, kind, known)
        self._told[name] = found, span
        return found

    def dims(self, name: str) -> tuple[m.Expr, ...] | None:
        """Return the inferred dimensions of a tensor; None if it was not read at another step."""
        return self._told[name][0].dims if name in self._told else None

    def compare(self, definition: m.Definition) -> None:
        """Note where a definition differs from its inferred type and extents."""
        if definition.tensor not in self._told:
            return
        found, span = self._told[definition.tensor]
        name, report = definition.tensor, self._scope.report
        if found.dtype != definition.dtype:
            message = f"'{name}' is read as a value of type {found.dtype} here, and holds {definition.dtype}"
            report.add("S020", message, span, "cast the value outside, or what is defined")
        if not all(same(a, b) for a, b in zip(found.dims or (), definition.dims, strict=True)):
            message = f"how far '{name}' reaches is not what its text tells first"
            report.add("S050", message, span, f"say it: let {name}[...] = ... where ... < ...")

    def _extent(self, name: str, axis: int, asked: set[tuple[str, int]]) -> m.Expr | None:
        """Return the extent of a dimension from `where`, else from the value's reads, else from later reads."""
        decl = self._lets[name]
        if (name, axis) in asked or axis >= len(decl.subscripts):
            return None
        asked.add((name, axis))
        index = decl.subscripts[axis]
        if not isinstance(index, s.Named):
            return None
        for r in decl.where:
            if r.index.name == index.name and r.extent is not None:
                return Resolver(self._scope).integer(r.extent)
        return self._by_reads(decl.value, index.name, asked) or extent_by_use(self._decls, self._outputs, name, axis)

    def _by_reads(self, value: s.Expression, index: str, asked: set[tuple[str, int]]) -> m.Expr | None:
        """Return the extent of the dimension that an index subscripts alone."""
        others: list[tuple[str, int]] = []
        for node in walk_syntax(value):
            if not isinstance(node, s.Subscripted):
                continue
            for place, e in enumerate(node.subscripts):
                if not isinstance(e, s.Named) or e.name != index:
                    continue
                known = self._scope.tensors.get(node.owner.name)
                if known is not None and known.dims is not None and place < len(known.dims):
                    return known.dims[place]
                if node.owner.name in self._lets:
                    others.append((node.owner.name, place))
        return next((found for other in others if (found := self._extent(*other, asked)) is not None), None)
