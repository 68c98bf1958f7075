"""Running sums, products, minima and maxima along what lies consecutively: vectors of steps, summed in registers.

    parallel b: ordered t.o: p = 16 of x[b, t]; log2(16) times p = p + p some places on; up[b, t + 1] = p + what was

Each vector waits for one addition of the one before, not for 16 of them.  The order of the terms is another one, as in
all sums in lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.machine import Machine
from opgen.schedule.auto.nests import is_contiguous
from opgen.schedule.auto.plan import Plan, Running
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import PARALLEL


@dataclass(frozen=True)
class Scans:
    name: str = "scans"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        nest, step = site.nest, site.nest.loops[-1]
        if step.kind != "ordered" or not all(is_contiguous(s, step.var, nest.shapes) for s in nest.results):
            return
        lanes = lanes_of(nest, machine, nest.extent(step.var), step.var)
        if lanes > 1:
            yield Plan(self.name, running=(Running(step.var, lanes),), threads=nest.names[:-1][:PARALLEL])
