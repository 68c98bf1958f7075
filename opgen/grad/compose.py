"""Nesting of sums with constants: definitions that `flatten` split are merged again, without intermediates in memory.

A derivative of `sum[b](B[b, j] * sum[a](A[a, i] * x[a, b]))` reads the inner sum as an intermediate tensor, or has one
sum over both indices.  The nested form is cheaper: it adds few terms, and the inner sums are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from opgen.grad.algebra import mul
from opgen.grad.solve import digits_apart
from opgen.spec.model.model import Definition, Element, Expr, Index, IndexRange, Number, Operation, Read, Reduce
from opgen.spec.model.walk import index_names, reads, subexpressions, substitute_indices, transform

Size = Callable[[str, int], Expr | None]
"""The size of a dimension of an input; None if it stretches."""


def compose(definitions: tuple[Definition, ...], size: Size) -> tuple[Definition, ...]:
    """Merge intermediates that only weight by constants into the definitions that read them."""
    result = list(definitions)
    for let in definitions:
        let = next(d for d in result if d.tensor == let.tensor)
        readers = [d for d in result if any(r.tensor == let.tensor for r in reads(d.value))]
        if not let.is_output and len(readers) == 1 and _weights(let.value):
            merged = _merged(let, readers[0], size)
            if merged is not None and _weights(merged.value):
                result[result.index(readers[0])] = merged
                result.remove(let)
    return tuple(replace(d, value=transform(_separated, d.value)) for d in result)


def _weights(e: Expr) -> bool:
    """Return True if a value is a sum over indices of constants, or a product with elements of them."""
    body = e
    while isinstance(body, Reduce):
        if not _over_constants(body):
            return False
        body = body.body
    return any(isinstance(n, Element) for n in subexpressions(e))


def _over_constants(e: Reduce) -> bool:
    choosing = {n for c in subexpressions(e.body) if isinstance(c, Element) for i in c.indices for n in index_names(i)}
    plain = e.kind == "sum" and e.condition is None
    return plain and all(r.name in choosing and isinstance(r.extent, Number) for r in e.indices)


def _merged(let: Definition, reader: Definition, size: Size) -> Definition | None:
    """Return the reader with the let's value in place of its one read; None if that would change which terms exist."""
    found = [r for r in reads(reader.value) if r.tensor == let.tensor]
    if len(found) != 1 or found[0].outside is not None:
        return None
    ranges = (*reader.indices, *_bound(reader.value))
    extents = {r.name: r.extent for r in ranges}
    names = [s.name for s in let.subscripts if isinstance(s, Index)]
    for name, dim, subscript in zip(names, let.dims, found[0].indices, strict=True):
        plain = isinstance(subscript, Index) and extents.get(subscript.name) == dim
        if not plain and not _guarded(let.value, name, dim, size):
            return None
    value = _apart_from(let.value, set(extents))
    value = substitute_indices(value, dict(zip(names, found[0].indices, strict=True)))
    placed = transform(lambda e: value if e == found[0] else e, reader.value)
    return replace(reader, value=digits_apart(placed, ranges))


def _guarded(value: Expr, name: str, dim: Expr, size: Size) -> bool:
    """Return True if a product reads a tensor along a dimension of that size, and so leaves out the same terms."""
    factors = list(_factors(value))
    return any(
        index == Index(name) and size(read.tensor, axis) == dim
        for read in factors
        if isinstance(read, Read) and read.outside is None
        for axis, index in enumerate(read.indices)
    )


def _factors(e: Expr) -> Iterator[Expr]:
    if isinstance(e, Operation) and e.op == "*":
        yield from _factors(e.left)
        yield from _factors(e.right)
    else:
        yield e


def _bound(e: Expr) -> Iterator[IndexRange]:
    for n in subexpressions(e):
        if isinstance(n, Reduce):
            yield from n.indices


def _apart_from(e: Expr, taken: set[str]) -> Expr:
    """Rename the reduction indices of an expression that clash with taken names."""
    new: dict[str, str] = {}
    for r in _bound(e):
        name = r.name
        while name in taken:
            name += "_"
        new[r.name] = name
        taken.add(name)

    def renamed(n: Expr) -> Expr:
        if isinstance(n, Index):
            return Index(new.get(n.name, n.name))
        if isinstance(n, Reduce):
            return replace(n, indices=tuple(replace(r, name=new.get(r.name, r.name)) for r in n.indices))
        return n

    return transform(renamed, e)


def _separated(e: Expr) -> Expr:
    """Rewrite sum[a, b](A[a] * B[b] * x) to sum[b](B[b] * sum[a](A[a] * x))."""
    if not isinstance(e, Reduce) or len(e.indices) < 2 or not _over_constants(e):
        return e
    factors = list(_factors(e.body))
    for last in reversed(e.indices):
        others = {r.name for r in e.indices} - {last.name}
        own = [
            f for f in factors if isinstance(f, Element) and last.name in index_names(f) and not others & index_names(f)
        ]
        rest = [f for f in factors if f not in own]
        if own and rest:
            inner = replace(e, indices=tuple(r for r in e.indices if r != last), body=_product(rest))
            if _over_constants(inner):
                return replace(e, indices=(last,), body=mul(_product(own), _separated(inner)))
    return e


def _product(factors: Sequence[Expr]) -> Expr:
    result = factors[0]
    for factor in factors[1:]:
        result = mul(result, factor)
    return result
