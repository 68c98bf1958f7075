"""Contractions whose results fill no whole number of tiles along the lanes.

parallel tiles of c in 0..192: a product of whole tiles; parallel c in 192..200: what is left over, by itself
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.contraction.prepared import as_given, wide_scalars
from opgen.schedule.auto.contraction.ragged import Ragged
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds.contracted import design, prepared_for
from opgen.schedule.auto.site import Site


@dataclass(frozen=True)
class InParts:
    name: str = "ragged"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for on, late in prepared_for(site, machine, (as_given, wide_scalars)):
            made = Ragged(on.nest, on.trial, on.loop, on.lanes, machine, partial(site.schedule, on.trial))
            if made.legal:
                yield design(self.name, on, made, late)
