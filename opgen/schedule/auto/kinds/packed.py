"""Lanes along results, what they would read with strides packed before.

x_packed = x with the dimension of c last; parallel n, y: for c.o: vector for c.l: y[n, y, c] = f(x_packed[n, y, c])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.packed import Packed
from opgen.schedule.auto.site import Site


@dataclass(frozen=True)
class PackedRows:
    name: str = "packed"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        vector, trial = site.roles.lanes, site.trial.fork()
        if vector is not None:
            yield Design(self.name, trial, partial(Packed(site.nest, trial, machine).along, vector))
