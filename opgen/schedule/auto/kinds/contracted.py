"""Kinds of contractions, told by the code that takes their steps, on operands as they are given or prepared before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.contraction.prepared import Prepared, Way, as_given, loops_for_lanes
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.non_temporal import store_non_temporally
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Site
from opgen.schedule.auto.trial import Trial
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
                yield design(self.name, prepared, made, late)


def prepared_for(site: Site, machine: Machine, ways: tuple[Way, ...]) -> Iterator[tuple[Prepared, bool]]:
    """A contraction, if the nest is one, prepared in each way for lanes along each loop, and whether for want of
    others.
    """
    for loop, late in loops_for_lanes(site, machine) if site.roles.is_sum else ():
        if Roles.of(site.nest, loop).is_window or (late and not site.wanted(late)):
            continue
        for way in ways:
            prepared = way(site, machine, loop)
            if prepared is not None:
                yield prepared.forked(), late


def design(kind: str, prepared: Prepared, made: LaneNest, late: bool = False) -> Design:
    """The design of a nest that is prepared, in the trial of which `made` takes its steps."""
    about = f"lanes along {prepared.loop}{', ' if prepared.about else ''}{prepared.about}"
    return Design(kind, prepared.trial, partial(_taken, prepared, made), about, late or not made.proven)


def _taken(prepared: Prepared, made: LaneNest) -> bool:
    if not made.take():
        return False
    prepared.finished()
    finished(prepared, made.machine)
    return True


def finished(prepared: Prepared, machine: Machine, trial: Trial | None = None) -> None:
    """Non-temporal stores of the results of a contraction, if they are too many to be kept; not of a part, whose rows
    are no whole lines.
    """
    if prepared.site.along is None:
        store_non_temporally(prepared.site.nest, prepared.loop, trial or prepared.trial, machine, FOUND_SUMS)
