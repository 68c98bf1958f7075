"""Sorts of rows by several loops, one after the other: threads share the rows.

    parallel b: find the last of the first k, bit by bit; keep those before it; merge runs

Values decide which element moves to which position, so lanes go along one row.  The counts within a row are nests of
their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.machine import Machine
from opgen.schedule.auto.plan import Plan
from opgen.schedule.auto.site import Site


@dataclass(frozen=True)
class Sorts:
    name: str = "sorts"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        nest = site.nest
        in_order = any(s.kind == "ordered" for s in nest.loops)
        if not in_order and (nest.extent(nest.names[0]) or machine.cores) >= machine.cores:
            yield Plan(self.name, threads=nest.names[:1])
