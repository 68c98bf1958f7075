"""Orders: the index at each position when values are sorted.

    let at[i, p] = descending[j](x[i, j], p)

An order is the whole value of a `let` tensor: it is sorted once, and read where its positions are needed.
"""

from __future__ import annotations

from typing import Protocol

from opgen.spec.model import model as m
from opgen.spec.model.walk import index_names
from opgen.spec.resolve.kinds import BOOL, INT, NUMBER, REAL, Kind, Typed
from opgen.spec.resolve.scope import Binding, Scope
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report

ORDERS: dict[str, m.ReductionKind] = {"ascending": "ascending", "descending": "descending"}


class Resolving(Protocol):
    """Resolver of the value of a definition of the tensor `target`.

    `root` is the value if it may be an order, `own` are the tensor's indices.  `ordered` collects the sorted index.
    """

    scope: Scope
    report: Report
    target: str
    root: s.Expression | None
    own: set[str]
    ordered: dict[str, m.Expr]

    def bind(self, indices: list[tuple[s.Ident, s.Expression | None]]) -> list[Binding]:
        """Bring indices into scope."""

    def resolve(self, tree: s.Expression) -> Typed | None:
        """Resolve an expression to its model and kind."""

    def extent(self, binding: Binding, written: str) -> m.Expr | None:
        """Return the extent of an index."""

    def describe(self, kind: Kind) -> str:
        """Describe a kind in words."""


def resolve_order(resolver: Resolving, tree: s.Reduction) -> Typed | None:
    """Resolve the order of the values of an index; mistakes are noted."""
    if not _stands_right(resolver, tree):
        return None
    (binding,) = resolver.bind([(r.index, r.extent) for r in tree.ranges]) or (None,)
    if binding is None:
        return None
    key = resolver.resolve(tree.body)
    del resolver.scope.indices[binding.name]
    assert tree.place is not None
    place = resolver.resolve(tree.place)
    if key is None or place is None:
        return None
    if key.kind in (BOOL, INT, NUMBER, REAL):
        message = f"'{tree.kind}' takes values of a tensor's type, found {resolver.describe(key.kind)}"
        resolver.report.add("S020", message, tree.body.span, "cast it, as in float(...) or uint8(...)")
        return None
    extent = resolver.extent(binding, f"{tree.kind}[{binding.name} < ...]")
    if extent is None:
        return None
    if not binding.used:
        resolver.report.add("S033", f"the index '{binding.name}' is never used", binding.span)
    if not isinstance(place.expr, m.Index) or place.expr.name not in resolver.own:
        message = f"the place in an order is an index of '{resolver.target}'"
        resolver.report.add("S013", message, tree.place.span, f"as in let {resolver.target}[..., p] = ...(..., p)")
        return None
    if place.expr.name in index_names(key.expr):
        resolver.report.add("S013", f"what is sorted depends on the place '{place.expr.name}'", tree.body.span)
        return None
    resolver.scope.indices[place.expr.name].composite.append((extent, tree.place.span))
    resolver.ordered[binding.name] = extent
    ranges = (m.IndexRange(binding.name, extent),)
    return Typed(m.Reduce(ORDERS[tree.kind], ranges, key.expr, tree.span, place=place.expr), "int64")


def _stands_right(resolver: Resolving, tree: s.Reduction) -> bool:
    """True if an order is the whole value of a `let`, has one index and names a position."""
    report, name = resolver.report, resolver.target
    if tree is not resolver.root:
        message = f"'{tree.kind}[...]' is all that a `let` tensor holds"
        report.add("S013", message, tree.span, f"let at[..., p] = {tree.kind}[...](..., p), read as at[..., p]")
    elif len(tree.ranges) != 1:
        report.add("S021", f"'{tree.kind}' sorts along 1 index, found {len(tree.ranges)}", tree.span)
    elif tree.condition is not None:
        help = "give what is left out a value that comes last, as in (if ... then ... else ...)"
        report.add("S013", f"'{tree.kind}' sorts all values of an index, it takes no `if`", tree.condition.span, help)
    elif tree.place is None:
        help = f"as in let {name}[..., p] = {tree.kind}[j](..., p)"
        report.add("S021", f"'{tree.kind}' takes a value and a place in the order", tree.span, help)
    else:
        return True
    return False
