"""Terms of a sum that lie side by side, added up last.

    y[x, c] = sum[s, q](u[x + s, c*4 + q] * v[s, c*4 + q])

is first `z[x, j] = sum[s](u[x + s, j] * v[s, j])`, with lanes along all of `j`, and then
`y[x, c] = sum[q](z[x, c*4 + q])`: gradients of windows with several results a channel.
"""

from __future__ import annotations

from functools import partial
from math import prod

from opgen.loop.nodes import Load, Store
from opgen.schedule.auto.accesses import strides_of
from opgen.schedule.auto.nests import Nest, conditional_loops, is_contiguous, nests, own_axis, with_last
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import NEIGHBOURS, TERMS_BESIDE_NEIGHBOURS
from opgen.schedule.steps import Divide, Flatten, Pack, Permute, Regroup, Reorder


def neighbours_last(trial: Trial) -> None:
    """Take such terms out of the sums of all nests."""
    seldom = conditional_loops(trial.kernel)
    for nest in nests(trial.kernel):
        found = None if nest.names[0] in seldom else _neighbours(nest)
        if found is not None:
            trial.attempt(partial(_apart, nest, *found, trial))


def _neighbours(nest: Nest) -> tuple[str, str] | None:
    """A loop over results, and one of the sum whose terms lie, in all factors, between those of one result and of the
    next; none if the sum has few others.
    """
    if len(nest.results) != 1 or len(nest.summed) < 2:
        return None
    counts = Roles.of(nest).counts
    for term, count in counts.items():
        few = 1 < count <= NEIGHBOURS and prod(counts.values()) >= count * TERMS_BESIDE_NEIGHBOURS
        loops = [n for n in nest.names if few and all(_between(e, n, term, count, nest) for e in nest.summed)]
        if loops and (count > 2 or _along(nest.results[0], loops[0], nest)):  # two are not worth transposing
            return loops[0], term
    return None


def _between(access: Load, loop: str, term: str, count: int, nest: Nest) -> bool:
    strides = strides_of(access, [loop, term], nest.shapes) or {}
    return strides.get(term, 0) > 0 and strides.get(loop) == count * strides[term]


def _along(access: Load | Store, loop: str, nest: Nest) -> bool:
    return is_contiguous(access, loop, nest.shapes)


def _apart(nest: Nest, loop: str, term: str, trial: Trial) -> bool:
    """The sum over the neighbours of what is summed over all other terms, and one loop over results and neighbours;
    results and factors are transposed where these do not lie side by side.
    """
    terms, sums = [s.var for s in nest.inner_loops], trial.fresh(f"{nest.results[0].buffer}_{term}")
    moved: list[tuple[Load | Store, str]] = [*((e, term) for e in nest.summed), (nest.results[0], loop)]
    for access, n in moved:
        axis = own_axis(access, n)
        if axis is not None and not _along(access, n, nest):
            copy = trial.fresh(f"{access.buffer}_transposed")
            if not trial.take(Pack(access.buffer, with_last(len(access.indices), axis), copy)):
                return False
    order = (*(n for n in nest.names if n != loop), loop)
    return trial.take(
        *(Regroup(n, term) for n in reversed(terms[: terms.index(term)])),
        Reorder(order),
        Divide(term, order[0], sums),
        Permute(sums, (*range(1, len(order) + 1), 0)),
        Reorder((*order, term)),
        Flatten(loop, term, trial.fresh(f"{loop}_{term}")),
    )
