"""Sums of products over several indices, one index after the other if that takes fewer multiplications.

    y[i, j] = sum[r, s](u[i, r] * v[j, s] * x[p[i, r], q[j, s]])

is first `z[a, j] = sum[s](v[j, s] * x[a, q[j, s]])`, then `y[i, j] = sum[r](u[i, r] * z[p[i, r], j])`.  Examples are
images of another size, products of several matrices, and filters that are products.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from opgen.loop.nodes import Const, Expr, For, Kernel, Load
from opgen.loop.walk import walk_expr
from opgen.schedule.auto.nests import conditional_loops, depends, is_contiguous, nests
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import GATHERED, SEPARATE
from opgen.schedule.errors import ScheduleError
from opgen.schedule.separate import Parted, parted
from opgen.schedule.steps import Separate


def separated(trial: Trial) -> None:
    """Separate one index of each sum as long as that saves enough multiplications."""
    refused: set[str] = set()
    while (found := _best(trial.kernel, refused)) is not None:
        refused.add(found.loop.var)
        first = trial.fresh(f"{found.store.buffer}_{found.loop.var}")
        _attempted(trial, Separate(found.loop.var, first))


def _attempted(trial: Trial, step: Separate) -> None:
    trial.attempt(lambda: trial.take(step))


def _best(kernel: Kernel, refused: set[str]) -> Parted | None:
    """Return the index that saves most multiplications, of the first loop nest in which one saves enough."""
    seldom = conditional_loops(kernel)
    for nest in nests(kernel):
        loops = [s.var for s in nest.inner_loops if s.var not in refused]
        if len(nest.inner_loops) < 2 or nest.names[0] in seldom:
            continue
        found = [part for part in (_parted(kernel, n) for n in loops) if part is not None]
        best = max(found, key=_saved, default=None)
        if best is not None and _saved(best) >= SEPARATE:
            return best
    return None


def _parted(kernel: Kernel, loop: str) -> Parted | None:
    try:
        return parted(kernel, loop)
    except ScheduleError:
        return None


def _saved(found: Parted) -> float:
    """Return how many times longer the multiplications take without separation; 0 if a size is not known."""
    read = found.read("")
    results, along = [s.var for s in found.around], [n for n, _, _ in found.along]
    one = [s.stop for s in found.around]
    before = _seconds(one, found.terms, (*found.inner, *found.outer), results)
    first = _seconds([size for _, size, _ in found.along], [found.loop], found.inner, along)
    others = [s for s in found.terms if s is not found.loop]
    then = _seconds(one, others, (*found.outer, read), results)
    return before / max(first + then, 1)


def _seconds(results: Sequence[Expr], terms: Sequence[For], factors: Sequence[Expr], loops: Sequence[str]) -> float:
    """Return the time of a nest's products in units of one, its last loop in lanes; more if lanes gather.

    It is 0 if a size is not known.
    """
    sizes = [*results, *(s.stop for s in terms)]
    count = prod(int(size.value) if isinstance(size, Const) else 0 for size in sizes) * (len(factors) - 1)
    read = [n for f in factors for n in walk_expr(f) if isinstance(n, Load)]
    lanes = loops[-1:]
    scattered = any(depends(e.indices, n) and not is_contiguous(e, n, {}) for n in lanes for e in read)
    return count * (GATHERED if scattered else 1)
