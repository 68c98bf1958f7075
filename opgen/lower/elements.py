"""Subscripts that are made of elements: checks made before a kernel writes anything.

    y[i, j] = table[ids[i], j]

reads `table` at the elements of `ids`.  Every such read without a value for outside has a check: over all indices for
which it is taken, the subscript is inside.  The number of a check is its place in `element_checks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from opgen.lower.inline import inline_lets
from opgen.spec.model.model import (
    Conditional,
    Definition,
    Expr,
    Index,
    IndexRange,
    Not,
    Number,
    Operation,
    OpSpec,
    Read,
    Reduce,
    Scatter,
)
from opgen.spec.model.walk import conjuncts, index_names, operands, reads, reads_values
from opgen.spec.resolve.updates import layers


@dataclass(frozen=True)
class ElementCheck:
    """A check: for all indices in `ranges` where all conditions hold, 0 <= subscript < size.

    The subscript is that of dimension `axis` of the tensor in `read`.
    """

    read: Read
    axis: int
    subscript: Expr
    size: Expr
    ranges: tuple[IndexRange, ...]
    conditions: tuple[Expr, ...]

    @property
    def measure(self) -> Expr:
        """Return an integer that is negative if one of the subscripts is outside: the least distance from an end."""
        last = Operation("-", self.size, Number(1))
        return self._least(Operation("min", self.subscript, Operation("-", last, self.subscript)))

    @property
    def least(self) -> Expr:
        """Return the least of the subscripts, or 0."""
        return self._least(self.subscript)

    @property
    def tensors(self) -> frozenset[str]:
        """Return the tensors whose elements the check depends on."""
        return frozenset(r.tensor for e in (self.subscript, *self.conditions) for r in reads(e))

    def _least(self, value: Expr) -> Expr:
        condition: Expr | None = None
        for c in self.conditions:
            condition = c if condition is None else Operation("and", condition, c)
        if condition is not None:
            value = Conditional(condition, value, Number(0))
        return Reduce("min", self.ranges, value) if self.ranges else value


def checked_definitions(op: OpSpec) -> tuple[Definition, ...]:
    """Return the definitions of an op in their lowered form, the ones that `element_checks` checks."""
    return inline_lets(op.definitions)


def element_checks(op: OpSpec) -> tuple[ElementCheck, ...]:
    """Return the checks of an op, in the order in which they are made: dependencies first."""
    definitions = checked_definitions(op)
    sizes = {t.name: tuple(d.size for d in t.dims) for t in op.tensors}
    sizes |= {d.tensor: d.dims for d in definitions}
    found: list[ElementCheck] = []
    for definition in definitions:
        start, updates = layers(definition.value)
        found += _checks(start, _Around(definition.indices, ()), sizes)
        for u in updates:
            found += _of_update(u, definition.tensor, sizes)
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class _Around:
    """The indices around an expression, and the conditions under which it is taken."""

    ranges: tuple[IndexRange, ...]
    conditions: tuple[Expr, ...]

    def where(self, *conditions: Expr) -> _Around:
        return _Around(self.ranges, (*self.conditions, *conditions))

    def over(self, *ranges: IndexRange) -> _Around:
        return _Around((*self.ranges, *ranges), self.conditions)

    def needed(self, subscript: Expr) -> tuple[tuple[IndexRange, ...], tuple[Expr, ...]]:
        """Return the indices on which a subscript and the conditions depend, and the conditions."""
        names = {n for e in (subscript, *self.conditions) for n in index_names(e)}
        kept: list[IndexRange] = []
        for r in reversed(self.ranges):
            if r.name in names:
                kept.insert(0, r)
                names |= index_names(r.extent)
        return tuple(kept), self.conditions


def _checks(e: Expr, around: _Around, sizes: Mapping[str, tuple[Expr, ...]]) -> Iterator[ElementCheck]:
    match e:
        case Reduce():
            inner = around.over(*e.indices)
            for c in conjuncts(e.condition):
                yield from _checks(c, inner, sizes)
                inner = inner.where(c)
            yield from _checks(e.body, inner, sizes)
        case Conditional():
            yield from _checks(e.condition, around, sizes)
            yield from _checks(e.if_true, around.where(e.condition), sizes)
            yield from _checks(e.if_false, around.where(Not(e.condition)), sizes)
        case Operation(op="and" | "or"):
            yield from _checks(e.left, around, sizes)
            yield from _checks(e.right, around.where(e.left if e.op == "and" else Not(e.left)), sizes)
        case Read():
            yield from _of_read(e, around, sizes)
        case _:
            for o in operands(e):
                yield from _checks(o, around, sizes)


def _of_read(e: Read, around: _Around, sizes: Mapping[str, tuple[Expr, ...]]) -> Iterator[ElementCheck]:
    for subscript in e.indices:
        yield from _checks(subscript, around, sizes)
    inside = [_inside(i, s) for i, s in zip(e.indices, sizes[e.tensor], strict=True)]
    if e.outside is not None:
        together: Expr = Number(True)  # an element of a scalar is always inside
        for at, c in enumerate(inside):
            together = c if at == 0 else Operation("and", together, c)
        yield from _checks(e.outside, around.where(Not(together)), sizes)
        return
    extents = {r.name: r.extent for r in around.ranges}
    moving = [
        c
        for c, i, s in zip(inside, e.indices, sizes[e.tensor], strict=True)
        if not reads_values(i) and not (isinstance(i, Index) and extents.get(i.name) == s)
    ]
    for axis, (subscript, size) in enumerate(zip(e.indices, sizes[e.tensor], strict=True)):
        if reads_values(subscript) and not _plainly_inside(subscript, size, around.conditions):
            ranges, conditions = around.where(*moving).needed(subscript)
            yield ElementCheck(e, axis, subscript, size, ranges, conditions)


def _of_update(e: Scatter, tensor: str, sizes: Mapping[str, tuple[Expr, ...]]) -> Iterator[ElementCheck]:
    """Yield the checks of an update: those of its condition, of its place, of its value."""
    around = _Around(e.indices, ())
    for c in conjuncts(e.condition):
        yield from _checks(c, around, sizes)
        around = around.where(c)
    yield from _of_read(Read(tensor, e.at, span=e.span), around, sizes)
    yield from _checks(e.body, around, sizes)


def _plainly_inside(subscript: Expr, size: Expr, conditions: tuple[Expr, ...]) -> bool:
    """Return True if a subscript is a remainder by the size, or is taken only after a test that it is inside."""
    if isinstance(subscript, Operation) and subscript.op == "%" and subscript.right == size:
        return True
    asked = {c for condition in conditions for c in conjuncts(condition)}
    return Operation("<=", Number(0), subscript) in asked and Operation("<", subscript, size) in asked


def _inside(subscript: Expr, size: Expr) -> Expr:
    return Operation("and", Operation("<=", Number(0), subscript), Operation("<", subscript, size))
