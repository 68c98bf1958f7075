"""Kinds of nests that get lanes along a loop, by code that takes their steps."""

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
    """Yield the loop along which results are contiguous."""
    yield from [] if site.roles.lanes is None else [site.roles.lanes]


def along_terms(site: Site, machine: Machine) -> Iterator[str]:
    """Yield the innermost loop of a sum."""
    yield from site.roles.terms[-1:]


def along_slices(site: Site, machine: Machine) -> Iterator[str]:
    """Yield the loop along which slices are independent windows."""
    loop = sliced_loop(site.nest) if site.roles.is_sum else None
    yield from [] if loop is None else [loop]


def along_steps(site: Site, machine: Machine) -> Iterator[str]:
    """Yield the loop that all accesses follow with a stride of a few elements."""
    loop = stepped_loop(site.nest) if site.roles.is_sum else None
    yield from [] if loop is None else [loop]


@dataclass(frozen=True)
class InLanes:
    """Kind of nest whose steps `made` takes, with lanes along one of its `loops`.

    There are at most as many lanes as the loop has iterations, unless vectors are `masked`.  Masked vectors keep their
    width while more than half of their lanes are at work, as masks cost less than a second vector.
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
