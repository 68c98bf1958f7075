"""Definitions in parts: sums with shared reads get loops of their own.

    y[i, j] = sum[k](x[i, k] * w[k, j]) + sum[k](h[i, k] * r[k, j])

becomes a tensor for the first sum, and the second sum plus that tensor: two products of matrices, each tiled as if it
were alone.  A reduction that does not depend on some surrounding index is computed once for all values of that index.
Values and roundings are the same: the tensor has the type of the addition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from opgen.dtypes import DType
from opgen.spec.model.model import (
    AttrValue,
    Conditional,
    Definition,
    Element,
    Expr,
    Index,
    IndexRange,
    Number,
    Operation,
    Read,
    Reduce,
)
from opgen.spec.model.walk import operands, subexpressions, with_operands

SHORT = 16
"""Number of terms up to which computing a sum again costs about as much as loading the earlier result."""


@dataclass(frozen=True)
class _Found:
    """A reduction found in a definition, with its surroundings.

    Its fields: the indices around it, True if those of reductions are among them, and True if places and sizes may rule
    it out.
    """

    reduce: Reduce
    around: tuple[IndexRange, ...]
    nested: bool
    chosen: bool

    @property
    def own(self) -> tuple[IndexRange, ...]:
        """Return the indices on which the reduction depends."""
        names = _free(self.reduce)
        return tuple(r for r in self.around if r.name in names)

    @property
    def repeats(self) -> bool:
        """Return True if the surroundings compute the same again and again."""
        return any(r.extent != Number(1) for r in self.around if r not in self.own)

    @property
    def mixes(self) -> bool:
        """Return True if two reads are each used again along an index that the other follows: a product of matrices."""
        names = {r.name for r in self.around}
        misses = {frozenset(names - _free(e)) for e in subexpressions(self.reduce.body) if isinstance(e, Read)}
        return any(a - b and b - a for a in misses for b in misses)

    @property
    def interleaves(self) -> bool:
        """Return True if terms of several results alternate along a dimension: groups of channels.

        Their schedule adds up neighbours last, which it cannot do for two sums of one definition.
        """
        own, inner = {r.name for r in self.around}, {r.name for r in self.reduce.indices}
        subscripts = [i for e in subexpressions(self.reduce.body) if isinstance(e, Read) for i in e.indices]
        return len(inner) > 1 and any(_free(i) & own and _free(i) & inner and _has_multiple(i, own) for i in subscripts)

    @property
    def short(self) -> bool:
        """Return True if it is known to have few terms."""
        extents = [r.extent.value for r in self.reduce.indices if isinstance(r.extent, Number)]
        return len(extents) == len(self.reduce.indices) and prod(extents) <= SHORT

    @property
    def fits(self) -> bool:
        """Return True if it can be a tensor of its own.

        Each index runs over the same places for all values of the others, and it makes sense everywhere.
        """
        straight = not any(isinstance(n, Index) for r in self.own for n in subexpressions(r.extent))
        return straight and not (self.chosen and any(_may_fail(n) for n in subexpressions(self.reduce)))


@dataclass(frozen=True)
class Parts:
    """Splitting of definitions into parts; the caller lowers them.

    `type_of` is the type in which a reduction adds, None if its surroundings decide.  `name` returns unused tensor
    names.  `make` reserves memory for a tensor, whose elements have a type from then on.
    """

    type_of: Callable[[Reduce], DType | None]
    name: Callable[[str], str]
    make: Callable[[Definition], None]

    def of(self, definition: Definition) -> tuple[Definition, ...]:
        """Return a definition after the tensors that replace its reductions; alone if it is best unchanged."""
        if any(isinstance(e, Element) for e in subexpressions(definition.value)):
            return (definition,)  # sums over constants are written out, and share their terms
        parts: list[Definition] = []
        while (found := self._next(definition)) is not None:
            reduce, dtype = found
            part = self._part(definition, reduce, dtype)
            parts += self.of(part)
            self.make(part)
            read = Read(part.tensor, part.subscripts)
            definition = replace(definition, value=_replaced(definition.value, reduce.reduce, read))
        return (*parts, definition)

    def apart(self, definition: Definition, names: Collection[str]) -> tuple[Definition, ...]:
        """Return a definition after its sums that read none of some tensors, and so need not be computed with it."""
        parts: list[Definition] = []
        for found in list(_reductions(definition.value, definition.indices, False, False)):
            reads_them = any(isinstance(e, Read) and e.tensor in names for e in subexpressions(found.reduce))
            dtype = self.type_of(found.reduce)
            if found.nested or found.short or reads_them or dtype is None or not found.fits:
                continue
            part = self._part(definition, found, dtype)
            parts.append(part)
            self.make(part)
            read = Read(part.tensor, part.subscripts)
            definition = replace(definition, value=_replaced(definition.value, found.reduce, read))
        return (*parts, definition)

    def _part(self, definition: Definition, found: _Found, dtype: DType) -> Definition:
        """Return a reduction as a definition of its own."""
        return Definition(
            tensor=self.name(f"{definition.tensor}_{found.reduce.kind}"),
            indices=found.own,
            subscripts=tuple(Index(r.name) for r in found.own),
            value=found.reduce,
            dtype=dtype.name,
            dims=tuple(r.extent for r in found.own),
            is_output=False,
            span=definition.span,
        )

    def _next(self, definition: Definition) -> tuple[_Found, DType] | None:
        """Return the reduction to be taken out next, and its type."""
        found: dict[_Found, DType] = {}
        for reduction in _reductions(definition.value, definition.indices, False, False):
            dtype = self.type_of(reduction.reduce)
            if reduction.fits and dtype is not None:
                found[reduction] = dtype
        repeated = next((f for f in found if f.repeats and not f.short), None)
        if repeated is not None:
            return repeated, found[repeated]
        outer = list({f.reduce: f for f in found if not f.nested}.values())
        if len(outer) < 2:
            return None
        return next(((f, found[f]) for f in outer if (f.mixes or f.interleaves) and not f.short), None)


def _reductions(e: Expr, around: Sequence[IndexRange], nested: bool, chosen: bool) -> Iterator[_Found]:
    if isinstance(e, Reduce):
        yield _Found(e, tuple(around), nested, chosen)
        around, nested = (*around, *e.indices), True
    chosen = chosen or isinstance(e, Conditional) or (isinstance(e, Operation) and e.op in ("and", "or"))
    for o in operands(e):
        yield from _reductions(o, around, nested, chosen)


def _may_fail(e: Expr) -> bool:
    """Return True if the integers of an expression can be computed only under a condition on numbers.

    A divisor may be 0, or a multiple of an attribute beyond all integers.
    """
    match e:
        case Operation(op="//" | "%" | "ceildiv"):
            return not isinstance(e.right, Number)
        case Read():
            return any(_is_multiple(n) for i in e.indices for n in subexpressions(i))
        case Reduce():
            return any(_is_multiple(n) or _may_fail(n) for r in e.indices for n in subexpressions(r.extent))
    return False


def _has_multiple(e: Expr, names: set[str]) -> bool:
    """Return True if an expression has a product with one of some indices."""
    products = (n for n in subexpressions(e) if isinstance(n, Operation) and n.op == "*")
    return any(_free(n) & names for n in products)


def _is_multiple(e: Expr) -> bool:
    return isinstance(e, Operation) and e.op == "*" and any(isinstance(n, AttrValue) for n in (e.left, e.right))


def _free(e: Expr) -> set[str]:
    """Return the indices on which an expression depends."""
    if isinstance(e, Index):
        return {e.name}
    names = {n for o in operands(e) for n in _free(o)}
    if isinstance(e, Reduce):
        names |= {n for r in e.indices for n in _free(r.extent)}
        names -= {r.name for r in e.indices}
    return names


def _replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    if e == old:
        return new
    return with_operands(e, tuple(_replaced(o, old, new) for o in operands(e)))
