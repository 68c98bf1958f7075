"""Kinds of nests that get lanes along a loop, told by the code that takes their steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from opgen.machine import Machine
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.site import Site, lanes_of


def along_results(site: Site, machine: Machine) -> Iterator[str]:
    """The loop along which results lie."""
    yield from [] if site.roles.lanes is None else [site.roles.lanes]


@dataclass(frozen=True)
class InLanes:
    """`made` takes the steps; `loops`: those of a nest that lanes may go along.  Lanes are no more than the loop has
    iterations, unless vectors are `full` in any case.
    """

    name: str
    made: type[LaneNest]
    loops: Callable[[Site, Machine], Iterator[str]]
    full: bool = False

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for loop in self.loops(site, machine):
            lanes = lanes_of(site.nest, machine, None if self.full else site.nest.extent(loop))
            made = self.made(site.nest, site.trial.fork(), loop, lanes, machine)
            if made.legal:
                yield Design(self.name, made.trial, made.take, f"lanes along {loop}", otherwise=not made.proven)
