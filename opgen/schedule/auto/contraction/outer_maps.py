"""Sums of outer products over the maps of images: each place of a map adds the product of two columns, of all rows of
one map and of the other, to a table of results.

    for blocks of vectors: for images: for blocks of places: for tiles of scalars: for places: scalars by vectors

The rows of both operands are maps, which lie far apart and consecutively along their places.  A block's places of some
vectors are transposed into a panel, scalars are read where they are; the table waits in the results.  Places are
joined, so that blocks may be of any size, and while one is done the next is prefetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from opgen.loop.nodes import Load
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.contraction.products import apart, balanced
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import own_axis, read_bytes, with_last
from opgen.schedule.cost.calibration import ALL, OPERANDS_OUTER, OUTER_MAP_TILES, PANEL_MAPS, PLACES_WAITING
from opgen.schedule.steps import Carry, Pack, Prefetch, Reorder, Split, Step, Unroll, Vectorize


@dataclass(frozen=True)
class OuterMaps(LaneNest):
    @cached_property
    def _reads(self) -> tuple[Load, ...]:
        """What lanes read, and the scalars; empty if there is anything else."""
        roles, rows = self.roles, self.roles.pair
        if rows is None or len(roles.positions) != 1 or not roles.terms:
            return ()
        if roles.batch or any(e.dtype != e.dtype.compute_type for e in rows):
            return ()
        own = all(own_axis(e, n) is not None for e, n in zip(rows, (self.vector, self._loop), strict=True))
        return rows if own and all(roles.along(e, roles.terms[-1]) for e in rows) else ()

    @property
    def _loop(self) -> str:
        """The loop over scalars."""
        return next((n for n in self.nest.names if n != self.vector), "")

    @property
    def proven(self) -> bool:
        """Whether one unit multiplies and adds, and operands do not stay in the second cache."""
        return self.execution.hides_loads and not self.memory.holds(read_bytes(self.nest), 2, ALL)

    @property
    def legal(self) -> bool:
        """Whether the nest is such a sum, of tiles that threads can share."""
        nest = self.nest
        if not self._reads or any(constant_extent(s) is None for s in nest.inner_loops) or nest.conditions:
            return False
        kept = nest.sums_wait and self.roles.stores_vectors
        return kept and not nest.phases and self._tile is not None

    @cached_property
    def _tile(self) -> tuple[int, int] | None:
        """Vectors and scalars: as many vectors as leave blocks of them that threads can share."""
        width, scalars = self.nest.extent(self.vector) or 0, self.nest.extent(self._loop) or 0
        for vectors, most in OUTER_MAP_TILES:
            shared = width % (self.machine.cores * vectors * self.lanes) == 0
            if shared and scalars >= most and vectors * most + OPERANDS_OUTER <= self.machine.registers:
                return vectors, balanced(scalars, most)
        return None

    def take(self) -> bool:
        """With one loop over the places of a map, of those loops over places that lie one after the other."""
        places = self.trial.joined([s.var for s in self.nest.inner_loops])
        return replace(self, nest=self.trial.nest(self.vector))._tiled(places)

    def _tiled(self, places: Sequence[str]) -> bool:
        *images, place = places
        extent = constant_extent(self.nest.inner_loops[-1]) or 1
        block = self._block(extent)
        if block < PLACES_WAITING or not (images or block < extent):
            return False
        trial, (vectors, scalars) = self.trial, self._tile or (1, 1)
        blocks, part, across, lane = (trial.fresh(f"{self.vector}_{n}") for n in "oivl")
        outer, inner = trial.fresh(f"{self._loop}_o"), trial.fresh(f"{self._loop}_i")
        around = images[-1] if images else ""
        steps: list[Step] = [
            Split(self.vector, vectors * self.lanes, "exact", blocks, part),
            Reorder((blocks, self._loop, part)),
        ]
        if block < extent:
            around, within = trial.fresh(f"{place}_o"), trial.fresh(f"{place}_i")
            steps += [Split(place, block, "exact", around, within)]
            images, place = [*images, around], within
        steps += [
            *(Carry(n, blocks) for n in images),
            *apart(self._loop, self.nest.extent(self._loop) or 1, scalars, outer, inner),
            Split(part, self.lanes, "exact", across, lane),
            Reorder((outer, inner, across, lane)),
            Reorder((outer, place, inner, across, lane)),
            *(Unroll(n) for n in (inner, across)),
            Vectorize(lane),
            *(Prefetch(e.buffer, around, place) for e in reversed(self._reads)),
        ]
        return trial.take(*steps) and self._panel(blocks)

    def _block(self, extent: int) -> int:
        """Places of a block: as many as leave a panel in its share of the second cache."""
        vectors, _ = self._tile or (1, 1)
        row = vectors * self.lanes * self._reads[0].dtype.bytes
        most = min(extent, int(PANEL_MAPS * self.machine.l2.size) // row)
        return max((d for d in range(1, most + 1) if extent % d == 0), default=0)

    def _panel(self, blocks: str) -> bool:
        """A block's places of some vectors, transposed, by the thread that uses them."""
        rows = self._reads[0]
        axis = own_axis(rows, self.vector)
        if axis is None:
            return False
        name = self.trial.fresh(f"{rows.buffer}_panel")
        packed = self.trial.take(Pack(rows.buffer, with_last(len(rows.indices), axis), name, blocks))
        return packed and transposed_blocks(self.trial, name, self.machine.vector_bytes, [blocks])
