"""Contractions: a register tile of positions by vectors, the reduction inside.

parallel n, y: for k.o, x.o: for r, s, c: all x.i: vectors of k: y[x, k] += a[y + r, x + s, c] * b[r, s, c, k]

The loops around the tile have the order that is estimated to fetch least (`contraction/orders.py`).  The same estimate
decides which reductions are carried outside of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.contraction.nest import tiled
from opgen.schedule.auto.contraction.prepared import Prepared, masked, packed, sums_in_rows
from opgen.schedule.auto.copies.panel import panelled_vectors
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds.contracted import design, prepared_for
from opgen.schedule.auto.site import Site
from opgen.schedule.steps import Carry


@dataclass(frozen=True)
class Tiled:
    name: str = "nest"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for on, late in prepared_for(site, machine, (sums_in_rows, masked, packed)):
            yield design(self.name, on, partial(_tiled, on, machine), machine, late)


def _tiled(on: Prepared, machine: Machine) -> bool:
    if not tiled(on.trial, on.loop, on.lanes, machine):
        return False
    if on.waiting and not any(isinstance(s, Carry) for s in on.trial.steps[on.marks.ready :]):  # unused copy
        return False
    panelled_vectors(on.trial, on.marks, on.loop, machine)
    return True
