"""Images and results of a contraction transposed as a whole, where that takes little beside the arithmetic.

transposed = image with c last; out_transposed = the contraction of maps that lie so; out = out_transposed with k first
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.contraction.transposed_maps import TransposedMaps
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.nests import loop_across, loops_instead
from opgen.schedule.auto.site import Site, lanes_of


@dataclass(frozen=True)
class OnTransposedMaps:
    name: str = "transposed_maps"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        nest = site.nest
        across = loop_across(nest, lanes_of(nest, machine, None))
        instead = [] if site.roles.lanes is None else [n for n in loops_instead(nest) if n != across]
        for loop in [*([] if across is None else [across]), *(instead if site.wanted(True) else [])]:
            trial = site.trial.fork()
            lanes = lanes_of(nest, machine, nest.extent(loop))
            made = TransposedMaps(nest, trial, loop, lanes, machine, partial(site.schedule, trial))
            if made.legal:
                late = loop != across or not made.proven
                yield Design(self.name, trial, made.take, f"lanes along {loop}", otherwise=late)
