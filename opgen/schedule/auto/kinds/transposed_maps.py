"""Contractions over maps whose scalars and results lie apart: images and results are transposed, or results alone.

    for k: for y, x: out[k, y, x] = sum(r, s, c) image[c, y + r, x + s] * taps[r, s, c, k]

With lanes along `k` results would be stored apart, and the scalars of one sum, along `c`, each lie in a line of their
own.  Where the arithmetic takes much longer than copies of both, with `c` and with `k` last, the nest between the
copies is the one of maps that lie so, and all that is known of that applies.  Where one unit multiplies and adds, lines
of scalars come as fast as it uses them: nothing is transposed, but where places take turns, so that results of a tile
are not side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

from opgen.loop.nodes import Load, Store
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.copies.prepare import elements
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import (
    Nest,
    coefficient,
    count_of_terms,
    depends,
    is_contiguous,
    loop_across,
    loops_instead,
    own_axis,
    width_in_bytes,
    with_last,
)
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import WORTH_MAPS
from opgen.schedule.cost.execution import Execution
from opgen.schedule.steps import Flatten, Pack, Reorder


@dataclass(frozen=True)
class OnTransposedMaps:
    name: str = "transposed_maps"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        nest = site.nest
        if Execution(machine).hides_loads and not nest.phases:
            return
        across = loop_across(nest, lanes_of(nest, machine, None))
        instead = [] if site.roles.lanes is None else [n for n in loops_instead(nest) if n != across]
        for loop in [*([] if across is None else [across]), *(instead if site.wanted(True) else [])]:
            trial = site.trial.fork()
            lanes = lanes_of(nest, machine, nest.extent(loop))
            made = TransposedMaps(nest, trial, loop, lanes, machine, partial(site.schedule, trial))
            if made.legal:
                late = loop != across or not made.proven
                yield Design(self.name, trial, made.take, f"lanes along {loop}", otherwise=late)


@dataclass(frozen=True)
class TransposedMaps(LaneNest):
    """`vector`: the loop that lanes shall follow; `alone` schedules the nest between the copies, and says whether it is
    of a kind: without one, they are for nothing.
    """

    alone: Callable[[Nest], bool]

    @property
    def legal(self) -> bool:
        """Whether there is something to transpose."""
        return self.roles.is_sum and bool(self._moved)

    @property
    def proven(self) -> bool:
        """Whether the arithmetic takes much longer than the copies, or results would be stored one by one."""
        return bool(self.nest.phases) or self._arithmetic >= WORTH_MAPS * self._copying

    def take(self) -> bool:
        """All steps; after False some may have been taken."""
        self._flatten()
        copies = [self._pack(access.buffer, loop) for access, loop in self._moved]
        if not all(copies):
            return False
        nest = self.trial.nest(self.vector)
        order = (*(n for n in nest.names if n != self.vector), self.vector)
        if order != nest.names and not self.trial.take(Reorder(order)):
            return False
        for name in copies:
            transposed_blocks(self.trial, name, self.machine.vector_bytes)
        return self.alone(self.trial.nest(self.vector))

    def _flatten(self) -> None:
        """Rows of maps joined where nothing stands in the way: what is transposed is transposed in larger blocks."""
        maps = [n for n in self.nest.names if n != self.vector]
        if len(maps) > 1:
            self.trial.take(Flatten(maps[-2], maps[-1], self.trial.fresh("_".join(maps[-2:]))))

    def _pack(self, buffer: str, loop: str) -> str:
        """A copy of an argument with the dimension of a loop last; its name, none if that is refused."""
        nest = self.trial.nest(self.vector)
        accesses: tuple[Load | Store, ...] = (*nest.summed, *nest.results)
        access = next(a for a in accesses if a.buffer == buffer)
        axis, name = own_axis(access, loop), self.trial.fresh(f"{buffer}_transposed")
        if axis is None or not self.trial.take(Pack(buffer, with_last(len(access.indices), axis), name)):
            return ""
        return name

    # What there is ----------------------------------------------------------------------------------

    @cached_property
    def _moved(self) -> list[tuple[Load | Store, str]]:
        """What is transposed, each with the loop whose dimension is last then; nothing if the nest is none of these."""
        result, scalars = self._result, self._scalars
        if result is None or scalars is None:
            return []
        return [(scalars, self._term), (result, self.vector)]

    @cached_property
    def _result(self) -> Store | None:
        """The store, if lanes would store apart."""
        results = self.nest.results
        if len(results) != 1 or own_axis(results[0], self.vector) is None:
            return None
        return None if is_contiguous(results[0], self.vector, self.nest.shapes) else results[0]

    @cached_property
    def _scalars(self) -> Load | None:
        """The scalars, if those of one sum lie apart."""
        found = self.roles.scalars
        given = {i.name for i in self.trial.kernel.inputs}
        if len(found) != 1 or found[0].buffer not in given or not self._term:
            return None
        if any(e.dtype != e.dtype.compute_type for e in self.nest.summed):
            return None  # narrow ones are copied in another way
        if not all(map(self._in_steps_of_one, dict.fromkeys(self.nest.summed))):
            return None  # lanes would read with strides whatever is transposed
        apart = own_axis(found[0], self._term) is not None
        return found[0] if apart and not is_contiguous(found[0], self._term, self.nest.shapes) else None

    def _in_steps_of_one(self, load: Load) -> bool:
        """Whether lanes read elements of a dimension one after the other, or all the same one."""
        axis = own_axis(load, self.vector)
        if axis is None:
            return not depends(load.indices, self.vector)
        return coefficient(load.indices[axis], self.vector) == 1

    @cached_property
    def _term(self) -> str:
        """The longest loop of the sum."""
        extents = {s.var: constant_extent(s) or 0 for s in self.nest.inner_loops}
        return max(extents, key=lambda n: extents[n], default="")

    @property
    def _arithmetic(self) -> float:
        """The seconds that all multiply-adds take."""
        lanes = max(1, self.machine.vector_bytes // width_in_bytes(self.nest))
        return count_of_terms(self.nest) / lanes / self.machine.fma_per_second

    @property
    def _copying(self) -> float:
        """The seconds that all copies take: each element is moved between registers, read and written."""
        m, width = self.machine, width_in_bytes(self.nest)
        size = sum(elements(self.nest, access.buffer) * _element(access) for access, _ in self._moved)
        rounds = (m.vector_bytes // width).bit_length() - 1
        return 2 * self.memory.seconds(size) + rounds * size / m.vector_bytes / (m.fma_per_second / 2)


def _element(access: Load | Store) -> int:
    """The bytes of what is read or written."""
    return access.value.type.dtype.bytes if isinstance(access, Store) else access.dtype.bytes
