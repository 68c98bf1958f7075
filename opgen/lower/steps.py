"""Lowering of recurrences: values computed before the steps, the start of the steps, the work of each.

    let h[t, j] = tanh(x[t, j] + sum[k]((h[t - 1, k] else h0[k]) * r[j, k]))

    h row 0 = h0
    for each step t, in order:
        for each j:
            h row t + 1 = tanh(x[t, j] + sum of (h row t) * r)

If all reads before the first step take the same values, these are in memory next to the rows of the steps, so that no
step is a special case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from opgen.spec.model.model import Definition, Expr, Index, IndexRange, Number, Read, Reduce
from opgen.spec.model.walk import index_names, operands, reads, substitute_indices
from opgen.spec.resolve.recurrences import Recurrence


@dataclass(frozen=True)
class Start:
    """Values of a tensor before its first step, as a definition of that row."""

    axis: int
    before: int
    after: int
    row: Definition


def start_of(recurrence: Recurrence, number: int) -> Start | None:
    """Return the start of a member; None if its reads do not agree on it, or none is before its first step."""
    member, axis = recurrence.members[number], recurrence.axes[number]
    own = [s.name for s in member.subscripts if isinstance(s, Index)]
    values: set[Expr] = set()
    for reader, read, ranges in _reads_of(recurrence, member.tensor):
        lag = recurrence.lag(reader, read)
        if lag == 0:
            continue
        value = None if lag != 1 else _outside(recurrence, read, axis, member, ranges, own)
        if value is None:
            return None
        values.add(value)
    if len(values) != 1:
        return None
    edge = recurrence.steps if recurrence.backward else Number(-1)
    subscripts = tuple(edge if a == axis else s for a, s in enumerate(member.subscripts))
    indices = tuple(r for r in member.indices if r.name != recurrence.index(number))
    row = replace(member, indices=indices, subscripts=subscripts, value=values.pop())
    return Start(axis, 0 if recurrence.backward else 1, 1 if recurrence.backward else 0, row)


def at_each_step(recurrence: Recurrence) -> tuple[Definition, ...]:
    """Return the members, each for all its indices except that of the steps."""
    return tuple(
        replace(d, indices=tuple(r for r in d.indices if r.name != recurrence.index(n)))
        for n, d in enumerate(recurrence.members)
    )


def apart(recurrence: Recurrence, members: Sequence[Definition]) -> tuple[IndexRange, ...]:
    """Return the indices whose values are separate recurrences, to be looped over outside the steps.

    `members` are computed at each step.  With sums, the indices are those that all summed values depend on: each step
    then reads less.  Without, they are those that come before the steps in memory.
    """
    sums = [e for d in members for e in _reductions(d.value)]
    found: list[IndexRange] = []
    for r in members[0].indices:
        places = [_axis(d, r) for d in members]
        if any(place is None for place in places) or not _passes(members, r.name, places):
            continue
        summed = [read for e in sums for read in reads(e.body)]
        outer = all(p is not None and p < axis for p, axis in zip(places, recurrence.axes, strict=True))
        if all(r.name in index_names(read) for read in summed) if sums else outer:
            found.append(r)
    return tuple(found)


def _axis(d: Definition, r: IndexRange) -> int | None:
    """Return the dimension of a definition along which an index runs over a range; None if there is none."""
    return d.subscripts.index(Index(r.name)) if r in d.indices else None


def _passes(members: Sequence[Definition], index: str, places: Sequence[int | None]) -> bool:
    """Return True if members read each other only at the same value of an index."""
    names = [d.tensor for d in members]
    between = [read for d in members for read in reads(d.value) if read.tensor in names]
    return all(read.indices[places[names.index(read.tensor)] or 0] == Index(index) for read in between)


def _outside(
    recurrence: Recurrence, read: Read, axis: int, member: Definition, ranges: Mapping[str, Expr], own: list[str]
) -> Expr | None:
    """Return a read before the first step in terms of the member's own indices; None if it is not a row of it."""
    if read.outside is None or any(r.tensor in recurrence.names for r in reads(read.outside)):
        return None
    names: dict[str, Expr] = {}
    for place, subscript in enumerate(read.indices):
        if place == axis:
            continue
        if not isinstance(subscript, Index) or subscript.name in names:
            return None
        if ranges.get(subscript.name) != member.dims[place]:
            return None
        names[subscript.name] = Index(own[place])
    bound = {r.name for e in _reductions(read.outside) for r in e.indices}
    if not index_names(read.outside) - bound <= set(names) or bound & set(own):
        return None
    return substitute_indices(read.outside, names)


def _reads_of(recurrence: Recurrence, tensor: str) -> Iterator[tuple[int, Read, dict[str, Expr]]]:
    """Yield the reads of a tensor by the members: the member, the read, and the ranges of the indices around it."""
    for number, d in enumerate(recurrence.members):
        for read, ranges in _reads(d.value, {r.name: r.extent for r in d.indices}):
            if read.tensor == tensor:
                yield number, read, ranges


def _reads(e: Expr, ranges: dict[str, Expr]) -> Iterator[tuple[Read, dict[str, Expr]]]:
    if isinstance(e, Read):
        yield e, ranges
    if isinstance(e, Reduce):
        ranges = ranges | {r.name: r.extent for r in e.indices}
    for o in operands(e):
        yield from _reads(o, ranges)


def _reductions(e: Expr) -> Iterator[Reduce]:
    if isinstance(e, Reduce):
        yield e
    for o in operands(e):
        yield from _reductions(o)
