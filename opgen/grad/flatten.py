"""Flattening of definitions: at most one reduction, at the root; inner reductions become intermediates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias, TypeVar

from opgen.diagnostics import Diagnostic, DiagnosticError
from opgen.grad.algebra import conjunction
from opgen.grad.types import Types, type_of
from opgen.grad.updates import apart
from opgen.spec.model.model import (
    Conditional,
    Definition,
    Expr,
    Index,
    IndexRange,
    Not,
    Operation,
    Read,
    Reduce,
    Scatter,
)
from opgen.spec.model.walk import conjuncts, index_names, operands, reads, reads_values, with_operands

Reduction = TypeVar("Reduction", bound=Reduce)
Taken: TypeAlias = "tuple[Expr, ...]"
"""The conditions under which an expression is computed at all."""


def flatten(definitions: tuple[Definition, ...], types: Types) -> tuple[Definition, ...]:
    """Return equal definitions with reductions only at the root, over an elementwise body.

    A new intermediate is named after its definition.  `types` has the types of all other tensors, whose names are
    avoided.
    """
    known = {**types, **{d.tensor: d.dtype for d in definitions}}
    result: list[Definition] = []

    def fresh(like: Definition) -> str:
        name = _fresh(like.tensor, known)
        known[name] = like.dtype
        return name

    for whole in definitions:
        for definition in apart(whole, fresh):
            hoisted, value = _Hoist(definition, known).run()
            result += [*hoisted, replace(definition, value=value)]
    return tuple(result)


def _fresh(name: str, known: dict[str, str]) -> str:
    """Return an unused name derived from another."""
    count = 1
    while f"{name}_{count}" in known:
        count += 1
    return f"{name}_{count}"


class _Hoist:
    def __init__(self, definition: Definition, types: dict[str, str]) -> None:
        self._definition = definition
        self._types = types
        self._hoisted: list[Definition] = []

    def run(self) -> tuple[list[Definition], Expr]:
        value = self._definition.value
        ranges = self._definition.indices
        if isinstance(value, Scatter):
            at = tuple(self._elementwise(i, value.indices) for i in value.at)
            start = self._elementwise(value.start, ranges)
            return self._hoisted, replace(self._reduction(value, ()), at=at, start=start)
        if isinstance(value, Reduce):
            return self._hoisted, self._reduction(value, ranges)
        value = self._elementwise(value, ranges)
        return self._hoisted, value

    def _reduction(self, e: Reduction, ranges: tuple[IndexRange, ...], taken: Taken = ()) -> Reduction:
        inner = (*ranges, *e.indices)
        condition = None if e.condition is None else self._elementwise(e.condition, inner, taken)
        # the place in an order is an index
        body = self._elementwise(e.body, inner, (*taken, *conjuncts(condition)))
        return replace(e, body=body, condition=condition)

    def _elementwise(self, e: Expr, ranges: tuple[IndexRange, ...], taken: Taken = ()) -> Expr:
        """Return an expression with reads in place of its reductions.

        It is computed only where all `taken` conditions hold.
        """
        match e:
            case Reduce():
                return self._intermediate(e, ranges, taken)
            case Conditional():
                condition = self._elementwise(e.condition, ranges, taken)
                if_true = self._elementwise(e.if_true, ranges, (*taken, condition))
                return replace(
                    e,
                    condition=condition,
                    if_true=if_true,
                    if_false=self._elementwise(e.if_false, ranges, (*taken, Not(condition))),
                )
            case Operation(op="and" | "or"):
                left = self._elementwise(e.left, ranges, taken)
                decided = left if e.op == "and" else Not(left)
                return replace(e, left=left, right=self._elementwise(e.right, ranges, (*taken, decided)))
        return with_operands(e, tuple(self._elementwise(o, ranges, taken) for o in operands(e)))

    def _intermediate(self, e: Reduce, ranges: tuple[IndexRange, ...], taken: Taken) -> Read:
        reduction = self._reduction(e, ranges, taken)
        if taken and e.place is None and any(map(_is_at_elements, reads(reduction))):  # may be outside otherwise
            reduction = replace(reduction, condition=conjunction([*taken, *conjuncts(reduction.condition)]))
        used = index_names(reduction) | set(_extent_names(reduction))
        own = {r.name for r in e.indices}
        for r in ranges:
            if r.name in used - own and index_names(r.extent):
                message = f"a reduction inside one in which the range of '{r.name}' depends on another index"
                raise DiagnosticError([Diagnostic("S062", f"{message} cannot be differentiated", e.span)])
        outer = tuple(r for r in ranges if r.name in used and r.name not in own)
        name = _fresh(self._definition.tensor, self._types)
        self._types[name] = type_of(reduction, self._types) or self._definition.dtype
        subscripts = tuple(Index(r.name) for r in outer)
        self._hoisted.append(
            Definition(
                tensor=name,
                indices=outer,
                subscripts=subscripts,
                value=reduction,
                dtype=self._types[name],
                dims=tuple(r.extent for r in outer),
                is_output=False,
                span=e.span,
            )
        )
        return Read(name, subscripts, span=e.span)


def _is_at_elements(read: Read) -> bool:
    return read.outside is None and any(map(reads_values, read.indices))


def _extent_names(e: Reduce) -> Iterator[str]:
    for r in e.indices:
        yield from index_names(r.extent)
