"""Adjacent terms of a sum, added up last.

    y[x, c] = sum[s, q](u[x + s, c*4 + q] * v[s, c*4 + q])

is first `z[x, j] = sum[s](u[x + s, j] * v[s, j])`, with lanes along all of `j`, and then `y[x, c] = sum[q](z[x, c*4 +
q])`.  Examples are gradients of windows with several results a channel, and means over places and groups of channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from opgen.loop.nodes import Load, Store
from opgen.schedule.auto.accesses import strides_of
from opgen.schedule.auto.nests import Nest, conditional_loops, depends, is_contiguous, nests, own_axis, with_last
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import (
    NEIGHBOURS,
    NEIGHBOURS_IN_ROWS,
    ROWS_OF_NEIGHBOURS,
    TERMS_BESIDE_NEIGHBOURS,
)
from opgen.schedule.steps import Divide, Flatten, Pack, Permute, Regroup, Reorder, Tabulate


def neighbours_last(trial: Trial) -> None:
    """Hoist such terms out of the sums of all loop nests."""
    seldom = conditional_loops(trial.kernel)
    for nest in nests(trial.kernel):
        found = None if nest.names[0] in seldom else _neighbours(nest)
        if found is not None:
            trial.attempt(partial(_apart, nest, *found, trial))


def _neighbours(nest: Nest) -> tuple[str, str] | None:
    """Return a loop over results and a loop of the sum whose terms are adjacent; None if the sum has few others.

    In all factors that follow that loop, its terms are between those of one result and those of the next.
    """
    if len(nest.results) != 1:
        return None
    counts = Roles.of(nest).counts
    for term, count in counts.items():
        following = [e for e in nest.summed if depends(e.indices, term)]
        loops = [n for n in nest.names if all(_between(e, n, term, count, nest) for e in following)]
        few = loops and following and count > 1 and _are_few(nest, term, count, prod(counts.values()), following)
        if few and (count > 2 or _along(nest.results[0], loops[0], nest)):  # two are not worth transposing
            return loops[0], term
    return None


def _are_few(nest: Nest, term: str, count: int, terms: int, following: Sequence[Load]) -> bool:
    """Return True if neighbours are few beside the other terms.

    They are products of factors that all follow them, or adjacent elements in rows that the sum does not take whole.
    """
    if 1 < len(following) == len(nest.summed) and count <= NEIGHBOURS and terms >= count * TERMS_BESIDE_NEIGHBOURS:
        return True
    side_by_side = all(is_contiguous(e, term, nest.shapes) for e in following)
    return side_by_side and count <= NEIGHBOURS_IN_ROWS and terms >= count * ROWS_OF_NEIGHBOURS


def _between(access: Load, loop: str, term: str, count: int, nest: Nest) -> bool:
    strides = strides_of(access, [loop, term], nest.shapes) or {}
    return strides.get(term, 0) > 0 and strides.get(loop) == count * strides[term]


def _along(access: Load | Store, loop: str, nest: Nest) -> bool:
    return is_contiguous(access, loop, nest.shapes)


def _apart(nest: Nest, loop: str, term: str, trial: Trial) -> bool:
    """Sum over the neighbours last, with one loop over results and neighbours.

    Results and factors are transposed if these are not contiguous.
    """
    terms, sums = [s.var for s in nest.inner_loops], trial.fresh(f"{nest.results[0].buffer}_{term}")
    following = [e for e in nest.summed if depends(e.indices, term)]
    shared = {e.buffer: e for e in nest.summed if e not in following and depends(e.indices, loop)}
    for name, read in shared.items():  # rows of neighbours, like the other reads
        around = [n for n in nest.names if n != loop and depends(read.indices, n)]
        if not trial.take(Tabulate(name, (*around, loop, term), trial.fresh(f"{name}_{term}"), join=True)):
            return False
    moved: list[tuple[Load | Store, str]] = [*((e, term) for e in following), (nest.results[0], loop)]
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
