"""Contractions whose results do not fill whole tiles along the lanes: the remainder is a nest of its own.

If the results do not fill whole vectors either, the last vector would overlap the one before.  Accumulators could then
not be spilled to the results between K blocks, and rows could not be kept in panels.  Sums of bytes use neither, and
stay whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.contraction.prepared import Prepared, as_given, wide_scalars
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds.contracted import design, prepared_for
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Site
from opgen.schedule.cost.calibration import PRODUCT_VECTORS, WHOLE_TILES
from opgen.schedule.steps import Partition, Reorder


@dataclass(frozen=True)
class InParts:
    name: str = "ragged"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for on, late in prepared_for(site, machine, (as_given, wide_scalars)):
            width = Roles.of(on.nest, on.loop).width
            left = width % (PRODUCT_VECTORS * on.lanes)
            floats = all(e.dtype.is_float for e in on.nest.summed)
            if floats and len(on.nest.names) > 1 and 0 < left < width:
                much = left > (1 - WHOLE_TILES) * width
                yield design(self.name, on, partial(_parted, on, left), machine, late or much)


def _parted(on: Prepared, left: int) -> bool:
    """Schedule whole tiles as a kind of contraction does, and the results that are `left` in any way."""
    trial, loop, schedule = on.trial, on.loop, partial(on.site.schedule, on.trial)
    name, others = trial.fresh(f"{loop}_left"), [n for n in on.nest.names if n != loop]
    if not trial.take(Reorder((loop, *others))):
        return False
    trial.joined(others)
    if not trial.take(Partition(loop, (-left,), name.removeprefix(f"{loop}_"))):
        return False
    if not schedule(trial.nest(loop), "tiles"):
        return False
    if not schedule(trial.nest(name), "tiles"):
        schedule(trial.nest(name))
    return True
