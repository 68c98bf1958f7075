"""Kinds of contractions whose steps are taken by code, on operands as provided or prepared before."""

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
    """Kind of contraction whose steps `made` takes.

    `ways` are the ways to prepare the operands; each gives a plan of its own.
    """

    name: str
    made: type[LaneNest]
    ways: tuple[Way, ...] = (as_given,)

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for prepared, late in prepared_for(site, machine, self.ways):
            made = self.made(prepared.nest, prepared.trial, prepared.loop, prepared.lanes, machine)
            if made.legal:
                yield design(self.name, prepared, made.take, machine, late or not made.proven)


def prepared_for(site: Site, machine: Machine, ways: tuple[Way, ...]) -> Iterator[tuple[Prepared, bool]]:
    """Yield a contraction prepared in each way, for lanes along each loop, and True if it is only a fallback.

    A nest that is not a contraction yields nothing.
    """
    for loop, late in loops_for_lanes(site, machine) if site.roles.is_sum else ():
        if late and not site.wanted(late):
            continue
        for way in ways:
            prepared = way(site, machine, loop)
            if prepared is not None:
                yield prepared.forked(), late


def design(kind: str, on: Prepared, take: Callable[[], bool], machine: Machine, late: bool = False) -> Design:
    """Return the design of a prepared nest; `take` takes the steps in its trial."""
    about = f"lanes along {on.loop}{', ' if on.about else ''}{on.about}"
    return Design(kind, on.trial, partial(_taken, on, take, machine), about, late)


def _taken(on: Prepared, take: Callable[[], bool], machine: Machine) -> bool:
    """Take the steps and return True if they were legal.

    Results that are too large to be kept in cache are then stored non-temporally.  The results of a part of a nest are
    not, as their rows are not whole cache lines.
    """
    if not take():
        return False
    on.finished()
    if on.site.along is None:
        store_non_temporally(on.site.nest, on.loop, on.trial, machine, FOUND_SUMS)
    return True
