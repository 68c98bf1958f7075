"""Definitions in pieces: a value that an index chooses among many of its ranges gets a loop for each range.

    y[j] = if j < n_0 then a[j] else if j < n_0 + n_1 then b[j - n_0] else ... c[j - start]

becomes `y[j] = a[j]` for n_0 places, `y[n_0 + j] = b[j]` for n_1, and so on: no element tests all conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from opgen.spec.model.model import Conditional, Definition, Expr, Index, IndexRange, Number, Operation
from opgen.spec.model.polynomial import Polynomial, constant, polynomial, same
from opgen.spec.model.walk import index_names, reads_values, substitute_indices, transform

LEAST = 9
"""Ranges that are worth loops of their own: of fewer, a condition each costs little, and one loop serves all."""

_HERE = "the place in a piece"
"""An index while a piece is made: no index has such a name."""


def in_pieces(d: Definition, named: Mapping[Expr, Expr], is_size: Callable[[Expr], bool]) -> tuple[Definition, ...]:
    """Return the pieces of a definition; itself alone if it has few, or if ranges are not proved to be in order.

    `named` are the values of named integers; `is_size` tells which symbols are never negative.
    """
    if not isinstance(d.value, Conditional):
        return (d,)
    names = {value: name for name, value in named.items()}
    index = _compared(d.value.condition)
    chosen = list(_ranges(d.value, index))
    own = next((r for r in d.indices if r.name == index), None)
    plain = [s for s in d.subscripts if index in index_names(s)] == [Index(index)]
    if len(chosen) < LEAST or own is None or not plain:
        return (d,)
    found: list[Definition] = []
    start: Expr = Number(0)
    for stop, value in chosen:
        last = stop is None
        extent = _extent(own.extent if stop is None else stop, start, named if last else {}, is_size)
        if extent is None:
            return (d,)
        found.append(_piece(replace(d, value=value), index, start, extent))
        start = own.extent if stop is None else names.get(stop, stop)
    return tuple(found)


def _compared(condition: Expr) -> str:
    """Return the index that a condition compares as below something; "" for any other condition."""
    match condition:
        case Operation("<", Index(name), bound) if not index_names(bound) and not reads_values(bound):
            return name
    return ""


def _ranges(e: Expr, index: str) -> Iterator[tuple[Expr | None, Expr]]:
    """Yield the values that an index chooses, each with where its range ends; None for the last."""
    while index and isinstance(e, Conditional) and _compared(e.condition) == index:
        assert isinstance(e.condition, Operation)
        yield e.condition.right, e.if_true
        e = e.if_false
    yield None, e


def _extent(stop: Expr, start: Expr, named: Mapping[Expr, Expr], is_size: Callable[[Expr], bool]) -> Expr | None:
    """Return the length of a range, if it is a number or a size: it is not negative then."""
    length = polynomial(stop) - _spelled(start, named)
    match list(length.terms.items()):
        case []:
            return Number(0)
        case [((), number)] if number > 0:
            return Number(number)
        case [((atom,), 1)] if is_size(atom):
            return atom
    return None


def _spelled(e: Expr, named: Mapping[Expr, Expr]) -> Polynomial:
    """Return an expression with the values of named integers in their place."""
    found = constant(0)
    while e in named:
        value = named[e]
        if not isinstance(value, Operation) or value.op != "+":
            return found + polynomial(value)
        found, e = found + polynomial(value.right), value.left
    return found + polynomial(e)


def _piece(d: Definition, index: str, start: Expr, extent: Expr) -> Definition:
    """Return a definition for a range of an index, which counts from 0 there."""

    def from_start(e: Expr) -> Expr:
        counted = isinstance(e, Operation) and e.op == "-" and e.left == Index(index) and same(e.right, start)
        return Index(_HERE) if counted else e

    here = Index(index)
    place = here if start == Number(0) else Operation("+", start, here)
    put: dict[str, Expr] = {index: place, _HERE: here}
    return replace(
        d,
        indices=tuple(IndexRange(r.name, extent) if r.name == index else r for r in d.indices),
        subscripts=tuple(substitute_indices(s, put) for s in d.subscripts),
        value=substitute_indices(transform(from_start, d.value), put),
    )
