"""Definitions by cases: a choice that depends on sizes and attributes alone is made around the loops.

    y[i, j] = if flag then sum[k](a[i, k] * b[k, j]) else sum[k](a[k, i] * b[k, j])

becomes two definitions, one of which a kernel runs; where the flag is constant, the other is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from opgen.loop import nodes as loop
from opgen.spec.model.model import Conditional, Definition, Expr, Index, IndexRange, Not, Read, Reduce
from opgen.spec.model.walk import operands, reads_values, subexpressions, transform

MOST = 3
"""Number of a definition's conditions that are decided around its loops: each may double the code."""


@dataclass(frozen=True)
class Cases:
    """A definition for each side of a condition: where it holds, and where it does not."""

    condition: loop.Expr
    if_true: Part
    if_false: Part


Part: TypeAlias = Definition | Cases


@dataclass(frozen=True)
class ByCases:
    """Splitting of definitions into cases.

    `lowered` gives a condition as loop IR, constant where it is decided.  `named` are the values of named integers:
    each case replaces an integer that a condition chooses by its value there, so that reads are proved to be inside.
    """

    lowered: Callable[[Expr], loop.Expr]
    named: Mapping[Expr, Expr]

    def of(self, definition: Definition, most: int = MOST) -> Part:
        """Return a definition by the cases of the conditions that choose between reductions, or reads in reductions."""
        condition = next(_conditions(definition.value, False), None)
        if condition is None:
            return definition
        known = self.lowered(condition)
        if isinstance(known, loop.Const):
            return self.of(self._decided(definition, condition, bool(known.value)), most)
        if most == 0:
            return definition
        sides = (self.of(self._decided(definition, condition, holds), most - 1) for holds in (True, False))
        return Cases(known, *sides)

    def _decided(self, definition: Definition, condition: Expr, holds: bool) -> Definition:
        """Return the definition where it is known whether a condition holds."""
        opposite = Not(condition)

        def taken(e: Expr) -> Expr:
            named = self.named.get(e, e)
            if isinstance(named, Conditional) and named.condition in (condition, opposite):
                side = named.if_true if holds == (named.condition == condition) else named.if_false
                return side if named is e else transform(taken, side)
            return e

        ranges = tuple(IndexRange(r.name, transform(taken, r.extent)) for r in definition.indices)
        return replace(definition, indices=ranges, value=transform(taken, definition.value))


def _conditions(e: Expr, summed: bool) -> Iterator[Expr]:
    """Yield conditions that are the same for all elements and choose between costly values, the outermost first."""
    if isinstance(e, Conditional) and _is_uniform(e.condition):
        sides = [n for side in (e.if_true, e.if_false) for n in subexpressions(side)]
        if any(isinstance(n, Reduce) or (summed and isinstance(n, Read)) for n in sides):
            yield e.condition
    for o in operands(e):
        yield from _conditions(o, summed or isinstance(e, Reduce))


def _is_uniform(condition: Expr) -> bool:
    return not reads_values(condition) and not any(isinstance(n, Index) for n in subexpressions(condition))
