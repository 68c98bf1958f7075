"""Products of tiles of bfloat16 pairs by a matrix unit.

for rows.o: for columns.o: tiles of sums += tiles of pairs of rows @ tiles of pairs of columns
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.contraction.tile_products import TileProducts
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.site import Site


@dataclass(frozen=True)
class OnTiles:
    name: str = "tile_products"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        vector = site.roles.lanes
        if not machine.tiles or vector is None or not site.roles.is_sum:
            return
        for columns in (vector, *(n for n in reversed(site.nest.names) if n != vector)):
            trial = site.trial.fork()
            made = TileProducts(site.nest, trial, vector, columns, machine, partial(site.schedule, trial))
            yield Design(self.name, trial, made.run, f"columns along {columns}")
