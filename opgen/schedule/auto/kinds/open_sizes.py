"""Nests of unknown sizes: versions for calls of typical sizes, each with a register tile.

if the sizes match: for n, h: tiles of w: ...; else: the nest as any other
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.generic.nest import GenericNest
from opgen.schedule.auto.nests import nest_of, reduces
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.steps import Version


@dataclass(frozen=True)
class OpenSizes:
    """Kind that makes versions of a nest; calls that match none of them run the loops that remain."""

    name: str = "open_tiles"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        nest, vector = site.nest, site.roles.lanes
        made_before = any(isinstance(s, Version) and s.loop == nest.names[0] for s in site.trial.steps)
        if vector is None or site.roles.known or made_before or not reduces(nest) or len(nest.allocations) != 1:
            return
        made = GenericNest(nest, site.trial.fork(), vector, lanes_of(nest, machine, None), machine)
        if made.legal:
            yield Design(self.name, made.trial, partial(_take, made, site), f"lanes along {vector}")


def _take(made: GenericNest, site: Site) -> bool:
    if not made.take():
        return False
    site.schedule(made.trial, nest_of(made.trial.kernel, *site.nest.names))
    return True
