"""Kinds of contractions, told by the code that takes their steps, on operands as they are given or prepared before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.contraction.prepared import Prepared, Way, as_given, loops_for_lanes
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.non_temporal import store_non_temporally
from opgen.schedule.auto.site import Site
from opgen.schedule.cost.calibration import FOUND_SUMS


@dataclass(frozen=True)
class Contracted:
    """`made` takes the steps; `ways`: to prepare the operands, each of which is another plan."""

    name: str
    made: type[LaneNest]
    ways: tuple[Way, ...] = (as_given,)

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for prepared, late in prepared_for(site, machine, self.ways):
            made = self.made(prepared.nest, prepared.trial, prepared.loop, prepared.lanes, machine)
            if made.legal:
                yield design(self.name, prepared, made.take, machine, late or not made.proven)


def prepared_for(site: Site, machine: Machine, ways: tuple[Way, ...]) -> Iterator[tuple[Prepared, bool]]:
    """A contraction, if the nest is one, prepared in each way for lanes along each loop, and whether for want of
    others.
    """
    for loop, late in loops_for_lanes(site, machine) if site.roles.is_sum else ():
        if late and not site.wanted(late):
            continue
        for way in ways:
            prepared = way(site, machine, loop)
            if prepared is not None:
                yield prepared.forked(), late


def design(kind: str, on: Prepared, take: Callable[[], bool], machine: Machine, late: bool = False) -> Design:
    """The design of a nest that is prepared, in the trial of which `take` takes the steps."""
    about = f"lanes along {on.loop}{', ' if on.about else ''}{on.about}"
    return Design(kind, on.trial, partial(_taken, on, take, machine), about, late)


def _taken(on: Prepared, take: Callable[[], bool], machine: Machine) -> bool:
    """Whether the steps were legal; then non-temporal stores of the results, if they are too many to be kept, but of a
    part, whose rows are no whole lines.
    """
    if not take():
        return False
    on.finished()
    if on.site.along is None:
        store_non_temporally(on.site.nest, on.loop, on.trial, machine, FOUND_SUMS)
    return True
