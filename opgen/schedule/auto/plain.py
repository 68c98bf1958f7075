"""Threads, and no lanes: what is left for nests of no kind.

parallel i, j: y[i, j] = f(x[places[i], j])
"""

from __future__ import annotations

from opgen.schedule.auto.nests import Nest, places_read
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import PARALLEL
from opgen.schedule.steps import Parallel


def plain(nest: Nest, trial: Trial) -> None:
    """Share a nest among threads, its outermost loops made one."""
    names = nest.names[:-1] if places_read(nest) and len(nest.names) > 1 else nest.names
    trial.fused_prefix(names[:PARALLEL], Parallel)
