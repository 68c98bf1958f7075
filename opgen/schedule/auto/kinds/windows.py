"""Windows and rows, told by the code that takes their steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.columns import Columns
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.nests import reduces
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.auto.window.row_sums import RowSums
from opgen.schedule.auto.window.rows import RowTile
from opgen.schedule.auto.window.slices import Slices, sliced_loop


@dataclass(frozen=True)
class WindowRows:
    """Lanes along the rows of a map over which a window walks."""

    name: str = "window_rows"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        nest, vector = site.nest, site.roles.lanes
        if vector is None or not reduces(nest) or not site.roles.known or len(nest.allocations) != 1:
            return
        extent, lanes = nest.extent(vector), lanes_of(nest, machine, None)
        phases = nest.phases.get(vector, 1)
        while extent is not None and lanes >= 2 * max(1, extent // phases):
            lanes //= 2  # a vector that a row does not fill needs masks, which cost less than a second vector
        if lanes > 1:
            trial = site.trial.fork()
            yield Design(self.name, trial, RowTile(nest, trial, vector, lanes, machine).take)


@dataclass(frozen=True)
class WindowRowSums:
    """Partial sums along the rows of a map, where few results take terms from all of it."""

    name: str = "row_sums"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        lanes = lanes_of(site.nest, machine, None)
        terms = constant_extent(site.nest.inner_loops[-1]) if site.nest.inner_loops else None
        while terms is not None and lanes >= 2 * max(1, terms):
            lanes //= 2
        if lanes > 1 and site.roles.is_sum:
            trial = site.trial.fork()
            yield Design(self.name, trial, RowSums(site.nest, trial, lanes, machine).run)


@dataclass(frozen=True)
class WindowSlices:
    """Lanes along maps that are windows each by itself, a slice of them turned at a time."""

    name: str = "slices"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        nest = site.nest
        loop = sliced_loop(nest) if site.roles.is_sum else None
        if loop is not None:
            lanes, trial = lanes_of(nest, machine, nest.extent(loop)), site.trial.fork()
            if 2 * lanes >= lanes_of(nest, machine, None):
                yield Design(self.name, trial, Slices(nest, trial, loop, lanes, machine).run)


@dataclass(frozen=True)
class ColumnSums:
    """Sums of rows that share nothing, lanes along the rows."""

    name: str = "columns"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        nest, vector = site.nest, site.roles.lanes
        if vector is None or not reduces(nest):
            return
        lanes, extent = lanes_of(nest, machine, None), nest.extent(vector) or 0
        while lanes > 1 and lanes >= 2 * max(1, extent):
            lanes //= 2
        if lanes > 1:
            trial = site.trial.fork()
            yield Design(self.name, trial, Columns(nest, trial, vector, lanes, machine).run)
