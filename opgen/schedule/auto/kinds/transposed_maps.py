"""Contractions over maps with strided scalars and results: images and results are transposed.

    for k: for y, x: out[k, y, x] = sum(r, s, c) image[c, y + r, x + s] * taps[r, s, c, k]

With lanes along `k`, results would be stored with a stride.  The scalars of one sum, along `c`, would each be in a
cache line of their own.  If the arithmetic takes much longer than copies of both, with `c` and with `k` last, both are
copied.  The nest between the copies then has the usual layout of maps, and is scheduled like any such nest.

If one unit multiplies and adds, lines of scalars come as fast as it uses them, and nothing is transposed.  Nests with
phases are the exception, as the results of a tile are not contiguous in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.locks import cached_property
from opgen.loop.nodes import Load, Store
from opgen.machine import Machine
from opgen.schedule.auto.copies.prepare import elements
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import (
    coefficient,
    count_of_terms,
    depends,
    loop_across,
    own_axis,
    width_in_bytes,
    with_last,
)
from opgen.schedule.auto.plan import Operand, Plan
from opgen.schedule.auto.site import Schedule, Site, lanes_of
from opgen.schedule.cost.calibration import WORTH_MAPS
from opgen.schedule.cost.execution import Execution


@dataclass(frozen=True)
class OnTransposedMaps:
    name: str = "transposed_maps"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        loop = loop_across(site.nest, lanes_of(site.nest, machine, None))
        if loop is None or (Execution(machine).hides_loads and not site.nest.phases):
            return
        trial, lanes = site.trial.fork(), lanes_of(site.nest, machine, site.nest.extent(loop))
        maps = TransposedMaps(site.nest, trial, loop, lanes, machine, site.schedule)
        if maps.legal and maps.proven:
            yield Design(self.name, trial, maps.take, f"lanes along {loop}")


@dataclass(frozen=True)
class TransposedMaps(LaneNest):
    """Contraction with lanes along `vector`; `schedule` is for the nest between the copies."""

    schedule: Schedule

    @property
    def legal(self) -> bool:
        """True if there is something to transpose."""
        return self.roles.is_sum and bool(self._moved)

    @property
    def proven(self) -> bool:
        """True if the arithmetic takes much longer than the copies, or results would be stored one by one.

        A copy reads and writes each element, and moves it between registers.
        """
        if self.nest.phases:
            return True
        m, width = self.machine, width_in_bytes(self.nest)
        vectors = count_of_terms(self.nest) * width / m.vector_bytes
        size = sum(elements(self.nest, access.buffer) * width for access, _ in self._moved)
        rounds = (m.vector_bytes // width).bit_length() - 1
        copying = 2 * self.memory.seconds(size) + rounds * size / m.vector_bytes / (m.fma_per_second / 2)
        return vectors / m.fma_per_second >= WORTH_MAPS * copying

    def take(self) -> bool:
        """Copy and schedule the nest between the copies.

        The copies have no use without a kind for that nest, so the result is then False.
        """
        order = (*self.roles.positions, self.vector)
        copies = tuple(self._copy(access, loop) for access, loop in self._moved)
        return self.realised(Plan("transposed_maps", order=order, operands=copies)) and self.schedule(
            self.trial, self.trial.nest(self.vector)
        )

    def _copy(self, access: Load | Store, loop: str) -> Operand:
        axis = own_axis(access, loop) or 0
        return Operand(access.buffer, "copy", with_last(len(access.indices), axis), ending="transposed")

    @cached_property
    def _moved(self) -> list[tuple[Load | Store, str]]:
        """Accesses to transpose, each with the loop whose dimension is last then; empty for other nests.

        They are the scalars, which must be strided within one sum, and the result, which lanes must store with a
        stride.
        """
        results, scalars, term = self.nest.results, self.roles.scalars, max(self.roles.terms, key=self._extent)
        given = {i.name for i in self.trial.kernel.inputs}
        if len(results) != 1 or len(scalars) != 1 or scalars[0].buffer not in given:
            return []
        if any(e.dtype != e.dtype.compute_type or not self._in_steps_of_one(e) for e in self.roles.operands):
            return []  # narrow ones are copied in another way; larger steps stay strided when transposed
        moved: list[tuple[Load | Store, str]] = [(scalars[0], term), (results[0], self.vector)]
        return moved if all(self._apart(access, loop) for access, loop in moved) else []

    def _apart(self, access: Load | Store, loop: str) -> bool:
        """Return True if a loop alone indexes a dimension, and that is not the contiguous one."""
        return own_axis(access, loop) is not None and not self.roles.along(access, loop)

    def _in_steps_of_one(self, load: Load) -> bool:
        """Return True if lanes read consecutive elements of a dimension, or all the same one."""
        axis = own_axis(load, self.vector)
        if axis is None:
            return not depends(load.indices, self.vector)
        return coefficient(load.indices[axis], self.vector) == 1
