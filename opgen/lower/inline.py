"""Intermediates that need no memory: a `let` that is read once, element for element, becomes part of its reader."""

from __future__ import annotations

from dataclasses import replace

from opgen.spec.model import Definition, Expr, Index, Read, Reduce
from opgen.spec.walk import depth, operands, reads, subexpressions, substitute_indices, transform, with_operands

DEEPEST = 64
"""Most nodes within each other that lets make: what comes after walks down expressions."""


def inline_lets(definitions: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Put each `let` that only one definition reads, once, outside any reduction and at all of that definition's
    indices, into its reader.  The value is computed just as often and rounded just the same.

    A value that would become deeper than `DEEPEST` stays apart.
    """
    result = dict(enumerate(definitions))
    readers: dict[str, set[int]] = {}
    for number, d in result.items():
        for r in reads(d.value):
            readers.setdefault(r.tensor, set()).add(number)
    depths = {number: depth(d.value) for number, d in result.items()}
    for number, d in enumerate(definitions):
        using = readers.get(d.tensor, set())
        if d.is_output or len(using) != 1:
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
    found = [r for r in reads(user.value) if r.tensor == let.tensor]
    if len(found) != 1 or not all(isinstance(s, Index) for s in let.subscripts):
        return False
    if any(found[0] is inner for reduce in _reductions(user.value) for inner in reads(reduce)):
        return False
    subscripts = found[0].indices
    names = [s.name for s in subscripts if isinstance(s, Index)]
    extents = {r.name: r.extent for r in user.indices}
    same_box = all(extents.get(n) == d for n, d in zip(names, let.dims, strict=False))
    return len(names) == len(subscripts) and sorted(names) == sorted(extents) and same_box


def _inlined(let: Definition, user: Definition) -> Definition:
    bound = {r.name for reduce in _reductions(let.value) for r in reduce.indices}
    taken = {r.name for r in user.indices} | {r.name for reduce in _reductions(user.value) for r in reduce.indices}
    value = _rename_bound(let.value, {n: f"{let.tensor}_{n}" for n in bound & taken})

    def replaced(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.tensor != let.tensor:
            return e
        names = (s.name for s in let.subscripts if isinstance(s, Index))
        return substitute_indices(value, dict(zip(names, e.indices, strict=True)))

    return replace(user, value=transform(replaced, user.value))


def _reductions(e: Expr) -> list[Reduce]:
    return [n for n in subexpressions(e) if isinstance(n, Reduce)]


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
