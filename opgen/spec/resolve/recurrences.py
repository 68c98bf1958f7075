"""Recurrences: `let` tensors computed step by step, which read each other at earlier steps of an index.

    let total[t, i] = x[t, i] + (total[t - 1, i] else 0)

Definitions that read each other form a group.  Each step computes the whole group, in the order of definition.  With
`t + 1` instead of `t - 1`, the steps run backward from the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opgen.diagnostics import Span
from opgen.spec.model import model as m
from opgen.spec.model.polynomial import Polynomial, polynomial, same
from opgen.spec.model.walk import is_order, reads, reads_values
from opgen.spec.syntax.report import Report


@dataclass(frozen=True)
class Recurrence:
    """Group of definitions computed together; `axes` holds the step dimension of each member.

    Each step computes every member for all its other indices.  If `backward`, the steps run from the last to the first.
    """

    members: tuple[m.Definition, ...]
    axes: tuple[int, ...]
    backward: bool

    @property
    def names(self) -> frozenset[str]:
        return frozenset(d.tensor for d in self.members)

    @property
    def steps(self) -> m.Expr:
        """Number of steps."""
        return self.members[0].dims[self.axes[0]]

    def index(self, number: int) -> str:
        """Return the step index of a member."""
        subscript = self.members[number].subscripts[self.axes[number]]
        assert isinstance(subscript, m.Index)
        return subscript.name

    def lag(self, reader: int, read: m.Read) -> int | None:
        """Return the number of steps that a read of a member lags behind its reader; None if unknown."""
        axis = self.axes[[d.tensor for d in self.members].index(read.tensor)]
        ahead = _shift(read.indices[axis], self.index(reader))
        return None if ahead is None else ahead if self.backward else -ahead


class NoOrderError(Exception):
    """Error for definitions that read each other and have no step order; its span is the offending read."""

    def __init__(self, message: str, span: Span | None, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.help = help


def grouped(definitions: Sequence[m.Definition]) -> tuple[m.Definition | Recurrence, ...]:
    """Return the definitions in topological order, with those that read each other grouped as a recurrence.

    Raises NoOrderError.
    """
    if not _reads_ahead(definitions):
        return tuple(definitions)
    position = {d.tensor: n for n, d in enumerate(definitions) if not d.is_output}
    needs = [sorted({position[r.tensor] for r in reads(d.value) if r.tensor in position}) for d in definitions]
    found: list[m.Definition | Recurrence] = []
    for component in _components(needs):
        members = tuple(definitions[n] for n in sorted(component))
        alone = len(members) == 1 and component[0] not in needs[component[0]]
        found.append(members[0] if alone else _recurrence(members))
    return tuple(found)


def recurrences(definitions: Sequence[m.Definition]) -> Iterator[Recurrence]:
    """Yield the groups of definitions that are computed step by step."""
    return (g for g in grouped(definitions) if isinstance(g, Recurrence))


def check_recurrences(report: Report, definitions: Sequence[m.Definition]) -> None:
    """Note definitions that read each other and cannot be computed step by step."""
    try:
        grouped(definitions)
    except NoOrderError as error:
        if error.span is not None:
            report.add("S023", error.message, error.span, error.help)


def _reads_ahead(definitions: Sequence[m.Definition]) -> bool:
    """True if a definition reads itself or a later one."""
    left = {d.tensor for d in definitions if not d.is_output}
    for d in definitions:
        if any(r.tensor in left for r in reads(d.value)):
            return True
        left.discard(d.tensor)
    return False


def _components(needs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components in dependency order (Tarjan's algorithm, without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    held: list[int] = []
    done: list[list[int]] = []
    for root in range(len(needs)):
        if root in order:
            continue
        work = [(root, iter(needs[root]))]
        order[root] = low[root] = len(order)
        held.append(root)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    at = held.index(node)
                    done.append(held[at:])
                    del held[at:]
            elif following not in order:
                order[following] = low[following] = len(order)
                held.append(following)
                work.append((following, iter(needs[following])))
            elif following in held:
                low[node] = min(low[node], order[following])
    return done


# The step index ---------------------------------------------------------------------------------


def _recurrence(members: tuple[m.Definition, ...]) -> Recurrence:
    """Return the members with their step dimensions.  Raises NoOrderError."""
    for d in members:
        if is_order(d.value):
            raise NoOrderError(f"'{d.tensor}' is an order: it is not computed step by step", d.span)
    names = [d.tensor for d in members]
    between = [(n, r) for n, d in enumerate(members) for r in reads(d.value) if r.tensor in names]
    failed: NoOrderError | None = None
    for reader, read, axis, place, ahead in _candidates(members, between):
        axes = _spread(members, between, {names.index(read.tensor): axis, reader: place})
        if axes is None:
            continue
        found = Recurrence(members, axes, ahead > 0)
        try:
            _require_order(found, between)
        except NoOrderError as error:
            failed = failed or error
        else:
            return found
    if failed is not None:
        raise failed
    raise NoOrderError(f"'{between[0][1].tensor}' is read before it is computed", between[0][1].span)


def _candidates(
    members: Sequence[m.Definition], between: Sequence[tuple[int, m.Read]]
) -> Iterator[tuple[int, m.Read, int, int, int]]:
    """Yield reads at another step: reader, read, dimension of the read tensor, dimension of the reader, steps ahead."""
    for reader, read in between:
        for axis, subscript in enumerate(read.indices):
            for place, own in enumerate(members[reader].subscripts):
                ahead = _shift(subscript, own.name) if isinstance(own, m.Index) else None
                if ahead:
                    yield reader, read, axis, place, ahead


def _spread(
    members: Sequence[m.Definition], between: Sequence[tuple[int, m.Read]], known: dict[int, int]
) -> tuple[int, ...] | None:
    """Propagate the step dimensions of some members to all; return None if they do not agree."""
    names = [d.tensor for d in members]
    changed = True
    while changed:
        changed = False
        for reader, read in between:
            target = names.index(read.tensor)
            if reader in known and target not in known:
                own = members[reader].subscripts[known[reader]]
                found = [a for a, e in enumerate(read.indices) if isinstance(own, m.Index) and _moves(e, own.name)]
            elif target in known and reader not in known:
                subscript = read.indices[known[target]]
                own_indices = enumerate(members[reader].subscripts)
                found = [a for a, e in own_indices if isinstance(e, m.Index) and _moves(subscript, e.name)]
            else:
                continue
            if len(found) != 1:
                return None
            known[target if reader in known else reader] = found[0]
            changed = True
    return tuple(known[n] for n in range(len(members))) if len(known) == len(members) else None


def _require_order(found: Recurrence, between: Sequence[tuple[int, m.Read]]) -> None:
    names = [d.tensor for d in found.members]
    for number, d in enumerate(found.members):
        if not same(d.dims[found.axes[number]], found.steps):
            message = f"'{d.tensor}' and '{names[0]}' are computed step by step together, and have not as many steps"
            raise NoOrderError(message, d.span)
    for reader, read in between:
        lag = found.lag(reader, read)
        before = names.index(read.tensor) < reader
        if lag is None or lag < (0 if before else 1):
            index, own = found.index(reader), names[reader]
            message = f"'{own}' is computed step by step along '{index}', and needs '{read.tensor}' of no earlier step"
            raise NoOrderError(message, read.span, "a step reads earlier ones, or what is defined before it")
    for d in found.members:
        if isinstance(d.value, m.Scatter):
            raise NoOrderError(f"'{d.tensor}' is computed step by step: it has no updates", d.span)
        for read in reads(d.value):
            made = [e for e in read.indices if read.outside is None and reads_values(e)]
            if any(r.tensor in names for e in made for r in reads(e)):
                message = f"'{read.tensor}' is read at what is computed step by step: say what is read outside"
                raise NoOrderError(message, read.span)


def _moves(subscript: m.Expr, index: str) -> bool:
    return _shift(subscript, index) is not None


def _shift(subscript: m.Expr, index: str) -> int | None:
    """Return a subscript's constant offset from an index; None if it is not that index plus a number."""
    rest = polynomial(subscript) - Polynomial({(_atom(subscript, index),): 1})
    return rest.terms.get((), 0) if set(rest.terms) <= {()} else None


def _atom(subscript: m.Expr, index: str) -> m.Expr:
    """Return the index as it occurs in a subscript (spans do not count)."""
    return next((a for a in polynomial(subscript).atoms if isinstance(a, m.Index) and a.name == index), m.Index(index))
