"""Updates of rows at places that values tell, each row right after what it is at first.

    parallel i: vectors of j: y[i, j] = x[i, j]
                j.o: 4 times: y[i, at[i, j]] = y[i, at[i, j]] + v[i, j]

So a row is still in the first cache.  An update is less work than an iteration of its loop, so some are done at once.
"""

from __future__ import annotations

from itertools import pairwise

from opgen.loop.nodes import Store
from opgen.schedule.auto.cuts import Tiles
from opgen.schedule.auto.nests import Nest, nests, updates
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import UPDATES_UNROLLED
from opgen.schedule.steps import Merge, Partition, Split, Unroll


def updated(trial: Trial) -> None:
    """Merge loops over rows that are updated with those that made the rows, once both have their schedules."""
    for made, nest in pairwise(nests(trial.kernel)):
        same = {s.buffer for s in made.results} & {s.buffer for s in nest.results}
        if same and updates(nest) and trial.take(Merge(made.names[0], nest.names[0])):
            _unrolled(trial, nest)


def _unrolled(trial: Trial, nest: Nest) -> None:
    """Some iterations of the innermost loop at once, those left over in a loop of their own."""
    loop, extent = nest.loops[-1], nest.extent(nest.names[-1])
    if loop.kind != "serial" or not isinstance(nest.core, Store) or extent is None or extent < 2 * UPDATES_UNROLLED:
        return
    cut = Tiles(extent, UPDATES_UNROLLED)
    outer, inner = trial.fresh(f"{loop.var}_o"), trial.fresh(f"{loop.var}_u")
    whole = () if cut.tail == "exact" else (Partition(outer, (-1,)),)
    trial.take(Split(loop.var, cut.size, cut.tail, outer, inner), *whole, Unroll(inner))
