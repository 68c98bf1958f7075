"""Running sums, products, minima and maxima along contiguous elements: vectors of steps, scanned in registers.

    parallel b: ordered t.o: p = 16 of x[b, t]; log2(16) times p = p + shifted p; up[b, t + 1] = p + sum before
    parallel k: sums of blocks; ordered k: all before each; parallel t.o: ordered t: as above, in each block

Each vector waits for one addition of the one before, not for 16 of them.  One long row is a blocked scan if there are
enough cores, although that reads it twice.  The order of the terms changes, as in all sums in lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.machine import Machine
from opgen.schedule.auto.nests import is_contiguous
from opgen.schedule.auto.plan import Plan, Running
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import PARALLEL, SCANNED, STEP_CORES


@dataclass(frozen=True)
class Scans:
    name: str = "scans"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        nest, step = site.nest, site.nest.loops[-1]
        if step.kind != "ordered" or not all(is_contiguous(s, step.var, nest.shapes) for s in nest.results):
            return
        lanes, around = lanes_of(nest, machine, nest.extent(step.var), step.var), nest.names[:-1][:PARALLEL]
        if lanes < 2:
            return
        in_blocks = not around and (nest.extent(step.var) or 0) > machine.cores * SCANNED
        shared = in_blocks and machine.cores >= STEP_CORES
        yield Plan(self.name, running=(Running(step.var, lanes),), threads=around, otherwise=shared)
        if in_blocks:
            running = (Running(step.var, lanes, SCANNED + 1),)
            yield Plan(self.name, running=running, threads=(f"{step.var}.o",), otherwise=not shared)
