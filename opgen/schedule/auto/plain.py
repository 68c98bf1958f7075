"""Threads without lanes, for loop nests of no kind.

parallel i, j: y[i, j] = f(x[places[i], j])
"""

from __future__ import annotations

from math import prod

from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies.prepare import split_phases
from opgen.schedule.auto.nests import Nest, places_read
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import PARALLEL, UNROLLED
from opgen.schedule.steps import Parallel, Unroll


def plain(nest: Nest, trial: Trial) -> None:
    """Share a loop nest among threads, with its outermost loops fused."""
    quotients = _decided(nest, trial)
    names = nest.names[:-1] if places_read(nest) and len(nest.names) > 1 else nest.names
    trial.fused_prefix([quotients.get(n, n) for n in names[:PARALLEL]], Parallel)


def _decided(nest: Nest, trial: Trial) -> dict[str, str]:
    """Decide conditions on remainders without lanes, by unrolling phases and taps if they are few.

    Return the outer part of each loop that was split.
    """
    known = [(s.var, constant_extent(s)) for s in nest.inner_loops]
    taps = [(n, e) for n, e in known if e is not None]
    steps = prod(nest.phases.values())
    if steps == 1 or len(taps) < len(known) or steps * prod(e for _, e in taps) > UNROLLED:
        return {}
    phases = split_phases(nest, trial)
    trial.take(*(Unroll(n) for n in (*phases.remainders, *(n for n, _ in taps))))
    return phases.quotients
