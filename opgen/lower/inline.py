"""Intermediates that need no memory: a `let` that one reader reads, element for element, becomes part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opgen.lower.repeated import reads_taken, reductions
from opgen.spec.model.model import Definition, Expr, Index, Read, Reduce, Scatter
from opgen.spec.model.polynomial import digits, same
from opgen.spec.model.walk import (
    depth,
    is_order,
    operands,
    reads,
    subexpressions,
    substitute_indices,
    transform,
    with_operands,
)

DEEPEST = 64
"""Greatest depth of nodes that inlined lets may reach: later code recurses through expressions."""

LARGEST = 512
"""Greatest number of nodes of a value used in several places: each use may double the size of its reader."""


def inline_lets(definitions: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Put each `let` that only one definition reads, outside any reduction and at all its indices, into its reader.

    The value is rounded just the same; if it occurs several times, the lowering computes its reductions once.

    A value that would become deeper than `DEEPEST`, or repeated and larger than `LARGEST`, is not inlined.
    """
    result = dict(enumerate(definitions))
    readers: dict[str, set[int]] = {}
    for number, d in result.items():
        for r in reads(d.value):
            readers.setdefault(r.tensor, set()).add(number)
    depths = {number: depth(d.value) for number, d in result.items()}
    for number, d in enumerate(definitions):
        using = readers.get(d.tensor, set())
        if d.is_output or len(using) != 1 or number in using:
            continue
        let, (user,) = result[number], using
        if not _fits(let, result[user]):
            continue
        merged = _inlined(let, result[user])
        if depths[number] + depths[user] > DEEPEST and depth(merged.value) > DEEPEST:
            continue
        result[user], depths[user] = merged, depth(merged.value)
        del result[number]
        for r in reads(let.value):
            readers[r.tensor].discard(number)
            readers[r.tensor].add(user)
    return tuple(result.values())


def _fits(let: Definition, user: Definition) -> bool:
    if is_order(let.value):
        return False
    found = [r for r in reads(user.value) if r.tensor == let.tensor]
    if isinstance(let.value, Scatter):
        return False
    if len({r.indices for r in found}) != 1 or not all(isinstance(s, Index) for s in let.subscripts):
        return False
    if any(r is inner for reduce in reductions(user.value) for inner in reads(reduce) for r in found):
        return False
    if len(found) > 1 and not _may_stand_often(let, user, len(found)):
        return False
    return _same_places(found[0].indices, let.dims, user)


def _same_places(subscripts: Sequence[Expr], dims: Sequence[Expr], user: Definition) -> bool:
    """Return True if a definition reads each place of a tensor just once.

    It reads at its indices, or at composites of them that cover their dimensions.
    """
    found: list[tuple[str, Expr]] = []
    for subscript, size in zip(subscripts, dims, strict=True):
        if isinstance(subscript, Index):
            found.append((subscript.name, size))
        else:
            found += digits(subscript, size) or [("", size)]
    extents = {r.name: r.extent for r in user.indices}
    fits = all(name in extents and same(extents[name], extent) for name, extent in found)
    return fits and sorted(name for name, _ in found) == sorted(extents)


def _may_stand_often(let: Definition, user: Definition, times: int) -> bool:
    """Return True if a value may occur in several places: small, and its reductions are computed in any case."""
    if sum(1 for _ in subexpressions(let.value)) * times > LARGEST:
        return False
    return not reductions(let.value) or any(r.tensor == let.tensor for r in reads_taken(user.value))


def _inlined(let: Definition, user: Definition) -> Definition:
    bound = {r.name for reduce in reductions(let.value) for r in reduce.indices}
    taken = {r.name for r in user.indices} | {r.name for reduce in reductions(user.value) for r in reduce.indices}
    value = _rename_bound(let.value, {n: f"{let.tensor}_{n}" for n in bound & taken})

    def replaced(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.tensor != let.tensor:
            return e
        names = (s.name for s in let.subscripts if isinstance(s, Index))
        return substitute_indices(value, dict(zip(names, e.indices, strict=True)))

    return replace(user, value=transform(replaced, user.value))


def _rename_bound(e: Expr, names: dict[str, str]) -> Expr:
    """Give reduction indices other names, within the reductions that bind them."""
    if not names:
        return e
    if isinstance(e, Reduce) and any(r.name in names for r in e.indices):
        own = {r.name: names[r.name] for r in e.indices if r.name in names}
        ranges = tuple(replace(r, name=own.get(r.name, r.name)) for r in e.indices)
        renamed = {old: Index(new) for old, new in own.items()}
        condition = None if e.condition is None else substitute_indices(e.condition, renamed)
        e = replace(e, indices=ranges, body=substitute_indices(e.body, renamed), condition=condition)
    return with_operands(e, tuple(_rename_bound(o, names) for o in operands(e)))
