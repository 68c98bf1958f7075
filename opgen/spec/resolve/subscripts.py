"""Subscripts of reads: integers of shapes, indices, and elements of integer tensors and constants."""

from __future__ import annotations

from collections.abc import Callable

from opgen.diagnostics import Span
from opgen.spec.model import model as m
from opgen.spec.model.walk import reads_constants, reads_values
from opgen.spec.resolve.kinds import BOOL, INT, NUMBER, Typed
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.resolve.scope import Scope
from opgen.spec.syntax import nodes as s

Find = Callable[[s.Expression], Typed | None]


class SubscriptResolver(Resolver):
    """Resolver of one subscript.

    `element` resolves a read, a cast or a reduction.  `whole` converts its value to int64, or returns None if it is not
    an integer.
    """

    def __init__(self, scope: Scope, element: Find, whole: Callable[[Typed], m.Expr | None]) -> None:
        super().__init__(scope)
        self._find = element
        self._whole = whole

    def _subscripted(self, tree: s.Subscripted) -> Typed | None:
        return self._integer_of(tree)

    def _reduction(self, tree: s.Reduction) -> Typed | None:
        return self._integer_of(tree)

    def _call(self, tree: s.Call) -> Typed | None:
        name = tree.function.name
        known = name in self.scope.functions or name in ("min", "max", "ceildiv", "pow", "present")
        return super()._call(tree) if known else self._integer_of(tree)

    def _integer_of(self, tree: s.Expression) -> Typed | None:
        found = self._find(tree)
        if found is None or found.kind in (INT, BOOL) or (found.kind == NUMBER and not reads_constants(found.expr)):
            return found
        whole = self._whole(found)
        if whole is None:
            message = f"a subscript is an integer, found {self.describe(found.kind)}"
            self.report.add("S020", message, tree.span, "cast it, as in int64(...)")
            return None
        return Typed(whole, INT)

    def arithmetic(self, op: m.Operator, left: Typed, right: Typed, span: Span) -> Typed | None:
        if op in ("//", "%", "ceildiv") and (reads_values(right.expr) or reads_constants(right.expr)):
            message = f"'{op}' in a subscript divides by what is known before the op runs, not by an element"
            self.report.add("S013", message, span)
            return None
        return super().arithmetic(op, left, right, span)
