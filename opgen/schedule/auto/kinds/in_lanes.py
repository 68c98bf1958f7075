"""Kinds of nests that get lanes along a loop, told by the code that takes their steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from opgen.machine import Machine
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.auto.window.nest import stepped_loop
from opgen.schedule.auto.window.slices import sliced_loop


def along_results(site: Site, machine: Machine) -> Iterator[str]:
    """The loop along which results lie."""
    yield from [] if site.roles.lanes is None else [site.roles.lanes]


def along_terms(site: Site, machine: Machine) -> Iterator[str]:
    """The innermost loop of a sum."""
    yield from site.roles.terms[-1:]


def along_slices(site: Site, machine: Machine) -> Iterator[str]:
    """The loop along which slices are independent windows."""
    loop = sliced_loop(site.nest) if site.roles.is_sum else None
    yield from [] if loop is None else [loop]


def along_steps(site: Site, machine: Machine) -> Iterator[str]:
    """The loop that all that is accessed follows in steps of a few elements."""
    loop = stepped_loop(site.nest) if site.roles.is_sum else None
    yield from [] if loop is None else [loop]


@dataclass(frozen=True)
class InLanes:
    """`made` takes the steps; `loops`: those of a nest that lanes may go along.  Lanes are no more than the loop has
    iterations, unless vectors are `masked`: as long as half of them and more are at work, as masks cost less than a
    second vector.
    """

    name: str
    made: type[LaneNest]
    loops: Callable[[Site, Machine], Iterator[str]]
    masked: bool = False

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for loop in self.loops(site, machine):
            lanes = lanes_of(site.nest, machine, None if self.masked else site.nest.extent(loop), loop)
            while self.masked and lanes >= 2 * max(1, site.roles.extents[loop] // site.roles.phases.get(loop, 1)):
                lanes //= 2
            made = self.made(site.nest, site.trial.fork(), loop, lanes, machine)
            if made.legal:
                yield Design(self.name, made.trial, made.take, f"lanes along {loop}", otherwise=not made.proven)
