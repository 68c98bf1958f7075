"""Preparation of a loop nest before a contraction is tiled, each way once for all kinds.

Operands are packed so that lanes read them contiguously, narrow ones get wide copies, and sums get wide accumulators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from opgen.dtypes import BFLOAT16
from opgen.loop.nodes import Kernel
from opgen.machine import Machine
from opgen.schedule.auto.copies.panel import Marks
from opgen.schedule.auto.copies.prepare import narrow, pack_strided, strided, widen_reused
from opgen.schedule.auto.nests import (
    Nest,
    is_contiguous,
    loop_across,
    loops_instead,
    own_axis,
    read_bytes,
    with_last,
    worth_lanes,
)
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Schedule, Site, lanes_of
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import ALL, MASKED_BYTES
from opgen.schedule.cost.memory import Memory
from opgen.schedule.steps import Pack, Widen


@dataclass(frozen=True, eq=False)
class Prepared:
    """State of a loop nest after some steps in `trial`, with `lanes` along `loop`.

    `waiting` is the copy of the results, wide or in rows, that is still to be stored.
    """

    site: Site
    trial: Trial
    nest: Nest
    loop: str
    lanes: int
    marks: Marks
    about: str = ""
    waiting: str = ""

    def forked(self) -> Prepared:
        """Return the same state with an independent trial."""
        return replace(self, trial=self.trial.fork())

    def finished(self) -> None:
        """Schedule the stores of sums that were accumulated in a copy of the results."""
        if self.waiting:
            self.site.schedule(self.trial, self.trial.nest(f"{self.waiting}_0"))


Way: TypeAlias = Callable[[Site, Machine, str], Prepared | None]
"""A way to prepare a loop nest for lanes along a loop; None if there is nothing to prepare, or it is refused."""


def loops_for_lanes(site: Site, machine: Machine) -> Sequence[tuple[str, bool]]:
    """Return the loops for a contraction's lanes, the best first, each with True if it is only a late choice."""
    return site.once("lanes", lambda: list(_loops_for_lanes(site, machine)))


def _loops_for_lanes(site: Site, machine: Machine) -> Iterator[tuple[str, bool]]:
    nest, along = site.nest, site.roles.lanes
    first = dict.fromkeys(n for n in (loop_across(nest, lanes_of(nest, machine, None)), along) if n is not None)
    if site.along is not None:
        first = {site.along: None}
    instead = [] if along is None or site.along is not None else [n for n in loops_instead(nest) if n not in first]
    for loop in (*first, *instead):
        if lanes_of(nest, machine, nest.extent(loop)) > 1 and not Roles.of(nest, loop).is_window:
            yield loop, loop not in first


def as_given(site: Site, machine: Machine, loop: str) -> Prepared | None:
    """Return the loop nest without preparation."""
    kernel, start = site.trial.kernel, len(site.trial.steps)
    lanes = lanes_of(site.nest, machine, site.nest.extent(loop))
    return Prepared(site, site.trial, site.nest, loop, lanes, Marks(kernel, start, start, start))


def packed(site: Site, machine: Machine, loop: str) -> Prepared | None:
    """Pack operands with strides and widen narrow ones; return None if too few reads are contiguous then."""
    return site.once(("packed", loop), lambda: _packed(site, machine, loop))


def _packed(site: Site, machine: Machine, loop: str) -> Prepared | None:
    if (given := unpacked(site, machine, loop)) is not None or not site.wanted(False):
        return given
    trial, start = site.trial.fork(), len(site.trial.steps)
    lanes = lanes_of(site.nest, machine, site.nest.extent(loop))
    nest = pack_strided(site.nest, loop, trial, machine.vector_bytes)
    marks = widened_copies(nest, loop, trial, site.schedule, (site.trial.kernel, start))
    nest = site.nest if len(trial.steps) == start else trial.nest(loop)
    return Prepared(site, trial, nest, loop, lanes, marks) if worth_lanes(nest, loop) else None


def masked(site: Site, machine: Machine, loop: str) -> Prepared | None:
    """Prepare as `packed` does, with masked vectors if the lanes would otherwise need two shorter ones."""
    extent, most = site.nest.extent(loop), lanes_of(site.nest, machine, None)
    on = packed(site, machine, loop) if machine.vector_bytes >= MASKED_BYTES else None
    if on is None or extent is None or not on.lanes < extent < 2 * on.lanes <= most:
        return None
    return replace(on, lanes=2 * on.lanes, about="masked")


def unpacked(site: Site, machine: Machine, loop: str) -> Prepared | None:
    """Return the loop nest without preparation, if nothing needs packing or widening; else None."""
    nest = site.nest
    if strided(nest, loop, site.trial) or narrow(nest, loop) or not worth_lanes(nest, loop):
        return None
    return as_given(site, machine, loop)


def wide_scalars(site: Site, machine: Machine, loop: str) -> Prepared | None:
    """Widen narrow scalars in a copy; return None if they are taken in pairs."""
    if machine.pairs and all(e.dtype == BFLOAT16 for e in site.roles.operands):
        return None
    return site.once(("wide scalars", loop), lambda: _widened(site, machine, loop))


def wide_sums(site: Site, machine: Machine, loop: str) -> Prepared | None:
    """Prepare as `wide_scalars` does, and accumulate sums in wide results."""
    return site.once(("wide sums", loop), lambda: _wide_sums(site, machine, loop))


def _widened(site: Site, machine: Machine, loop: str) -> Prepared | None:
    scalars, trial = Roles.of(site.nest, loop).scalars, site.trial.fork()
    if len(scalars) != 1 or len(site.nest.results) != 1 or scalars[0].dtype == scalars[0].dtype.compute_type:
        return None
    if not site.wanted(False):
        return None
    start = len(trial.steps)
    for copy in widen_reused(site.nest, loop, trial, scalars):
        site.schedule(trial, trial.nest(copy))
    lanes = lanes_of(site.nest, machine, site.nest.extent(loop))
    marks = Marks(site.trial.kernel, start, start, len(trial.steps))
    return Prepared(site, trial, trial.nest(loop), loop, lanes, marks, "wide scalars")


def _wide_sums(site: Site, machine: Machine, loop: str) -> Prepared | None:
    scalars = wide_scalars(site, machine, loop)
    return None if scalars is None else waiting(scalars, "wide sums")


def sums_in_rows(site: Site, machine: Machine, loop: str) -> Prepared | None:
    """Store results contiguously in a copy, if lanes would store with a stride, so that it can hold partial sums.

    The second cache must hold the copy, but not the operands.
    """
    return site.once(("sums in rows", loop), lambda: _sums_in_rows(site, machine, loop))


def _sums_in_rows(site: Site, machine: Machine, loop: str) -> Prepared | None:
    nest, memory = site.nest, Memory(machine)
    axis = own_axis(nest.results[0], loop) if len(nest.results) == 1 and nest.sums_wait else None
    if axis is None or is_contiguous(nest.results[0], loop, nest.shapes) or memory.holds(read_bytes(nest), 2, ALL):
        return None
    if not memory.holds(site.roles.bytes(nest.results[0]), 2) or (on := packed(site, machine, loop)) is None:
        return None
    found, result = on.forked(), nest.results[0]
    rows = found.trial.fresh(f"{result.buffer}_rows")
    if not found.trial.take(Pack(result.buffer, with_last(len(result.indices), axis), rows)):
        return None
    return replace(found, nest=found.trial.nest(loop), about="sums in rows", waiting=rows)


def waiting(on: Prepared, about: str) -> Prepared | None:
    """Prepare as in `on`, and accumulate sums in wide results; return None if that is illegal."""
    found, result = on.forked(), on.site.nest.results[0].buffer
    wide = found.trial.fresh(f"{result}_wide")
    if not found.trial.take(Widen(result, wide)):
        return None
    return replace(found, nest=found.trial.nest(on.loop), about=about, waiting=wide)


def widened_copies(nest: Nest, vector: str, trial: Trial, schedule: Schedule, before: tuple[Kernel, int]) -> Marks:
    """Convert narrow inputs once, now that all are packed.

    `before` holds the kernel before the preparation, and the number of steps taken then.
    """
    packed = len(trial.steps)
    for copy in widen_reused(nest, vector, trial):
        schedule(trial, trial.nest(copy))
    return Marks(*before, packed, len(trial.steps))
