"""Contractions: a register tile of positions by vectors, the reduction inside.

parallel n, y: for k.o, x.o: for r, s, c: all x.i: vectors of k: y[x, k] += a[y + r, x + s, c] * b[r, s, c, k]

The order of the loops around the tile, and which of the reductions are carried outside of them, is what is estimated
to fetch least (`contraction/orders.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.contraction.nest import tiled, tiled_in_wide_panels
from opgen.schedule.auto.contraction.prepared import Prepared, packed, wide_sums
from opgen.schedule.auto.copies.panel import panelled_vectors
from opgen.schedule.auto.copies.prepare import elements, widen_reused
from opgen.schedule.auto.copies.results import transposed_results
from opgen.schedule.auto.copies.row_panel import panelled_rows
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds.contracted import finished, prepared_for
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Site
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.memory import Memory
from opgen.schedule.steps import Carry


@dataclass(frozen=True)
class Tiled:
    name: str = "nest"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for on, late in prepared_for(site, machine, (wide_sums,)):
            take = partial(_carried, on, machine)
            yield Design(self.name, on.trial, take, f"lanes along {on.loop}, wide sums", late)
        for on, late in prepared_for(site, machine, (packed,)):
            if _panels_are_enough(on, machine):
                trial = site.trial.fork()
                take = partial(_in_wide_panels, on, trial, machine)
                yield Design(self.name, trial, take, f"lanes along {on.loop}, wide panels", late)
            yield Design(self.name, on.trial, partial(_plain, on, machine), f"lanes along {on.loop}", late)


def _carried(on: Prepared, machine: Machine) -> bool:
    """Rows are read from panels, and sums wait in the results."""
    start = len(on.trial.steps)
    if not tiled_in_wide_panels(on.trial, on.loop, on.lanes, machine):
        return False
    if not any(isinstance(s, Carry) for s in on.trial.steps[start:]):
        return False
    on.finished()
    finished(on, machine)
    return True


def _panels_are_enough(on: Prepared, machine: Machine) -> bool:
    """Whether rows have wide copies, one of which fills the second cache: panels of what a block reads do not."""
    if not on.marks.before == on.marks.packed < on.marks.ready:
        return False
    nest = on.site.nest
    sizes = [elements(nest, e.buffer) * e.dtype.compute_type.bytes for e in Roles.of(nest, on.loop).vectors]
    return any(size >= Memory(machine).usable(2) for size in sizes)


def _in_wide_panels(on: Prepared, trial: Trial, machine: Machine) -> bool:
    nest = on.site.nest
    for copy in widen_reused(nest, on.loop, trial, Roles.of(nest, on.loop).scalars):
        on.site.schedule(trial, trial.nest(copy))
    if not tiled_in_wide_panels(trial, on.loop, on.lanes, machine):
        return False
    finished(on, machine, trial)
    return True


def _plain(on: Prepared, machine: Machine) -> bool:
    trial, nest = on.trial, on.nest
    if not tiled(trial, on.loop, on.lanes, machine):
        return False
    transposed_results(trial, on.marks, on.loop, machine)
    panelled_vectors(trial, on.marks, on.loop, machine)
    panelled_rows(trial, on.marks, nest, on.loop, machine)
    finished(on, machine)
    return True
