"""Contractions over maps whose scalars and results lie apart: images and results are transposed.

    for k: for y, x: out[k, y, x] = sum(r, s, c) image[c, y + r, x + s] * taps[r, s, c, k]

With lanes along `k` results would be stored apart, and the scalars of one sum, along `c`, each lie in a line of their
own.  Where the arithmetic takes much longer than copies of both, with `c` and with `k` last, the nest between the
copies is the one of maps that lie so, and all that is known of that applies.  Where one unit multiplies and adds, lines
of scalars come as fast as it uses them: nothing is transposed, but where places take turns, so that results of a tile
are not side by side.
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
    """`vector`: the loop that lanes shall follow; `schedule` is for the nest between the copies."""

    schedule: Schedule

    @property
    def legal(self) -> bool:
        """Whether there is something to transpose."""
        return self.roles.is_sum and bool(self._moved)

    @property
    def proven(self) -> bool:
        """Whether the arithmetic takes much longer than the copies (of these each element is moved between registers,
        read and written), or results would be stored one by one.
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
        """Without a kind for the nest between them, the copies are for nothing."""
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
        """What is transposed, each with the loop whose dimension is last then; nothing if the nest is none of these:
        the result, if lanes would store apart, and the scalars, if those of one sum lie apart.
        """
        results, scalars, term = self.nest.results, self.roles.scalars, max(self.roles.terms, key=self._extent)
        given = {i.name for i in self.trial.kernel.inputs}
        if len(results) != 1 or len(scalars) != 1 or scalars[0].buffer not in given:
            return []
        if any(e.dtype != e.dtype.compute_type or not self._in_steps_of_one(e) for e in self.roles.operands):
            return []  # narrow ones are copied in another way, and lanes would read with strides whatever is transposed
        moved: list[tuple[Load | Store, str]] = [(scalars[0], term), (results[0], self.vector)]
        return moved if all(self._apart(access, loop) for access, loop in moved) else []

    def _apart(self, access: Load | Store, loop: str) -> bool:
        """Whether a dimension that a loop walks along by itself is not the one whose elements lie side by side."""
        return own_axis(access, loop) is not None and not self.roles.along(access, loop)

    def _in_steps_of_one(self, load: Load) -> bool:
        """Whether lanes read elements of a dimension one after the other, or all the same one."""
        axis = own_axis(load, self.vector)
        if axis is None:
            return not depends(load.indices, self.vector)
        return coefficient(load.indices[axis], self.vector) == 1
