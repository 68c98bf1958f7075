"""Products of matrices with few places and a large table whose rows lie along the sum: lanes along the places.

    for blocks of results: for tiles of results: for places: for k: results by vectors of places

Elsewhere lanes go along the results of a place, for which a table that lies along the sum is transposed.  Where the
table is larger than all else together, what the places read is transposed instead, once, and their results, block by
block.  The table is read as scalars, where it is and in the order in which it lies, while the next rows of it are
prefetched. Places that fill no vector have lanes along the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.nodes import Load, Store
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends
from opgen.schedule.auto.partial import in_partial_sums
from opgen.schedule.cost.calibration import (
    BLOCKS_TRANSPOSED,
    CHAINS,
    EXPOSED_ROWS,
    FOUND,
    LEFT_OVER_PLACES,
    OPERANDS,
    SCALAR_ROW_TILES,
    TABLE_LARGER,
    TURNS,
)
from opgen.schedule.steps import (
    Pack,
    Partition,
    Pitch,
    Prefetch,
    Reorder,
    Split,
    Unroll,
    Vectorize,
)


@dataclass(frozen=True)
class ScalarRows(LaneNest):
    """`vector` is the loop along which results lie; lanes go along the places."""

    @cached_property
    def _places(self) -> int:
        return prod(self._extent(n) for n in self.roles.positions)

    @property
    def _sum(self) -> str:
        return self.roles.terms[0]

    @property
    def _terms(self) -> int:
        return self.roles.counts[self._sum]

    @cached_property
    def _reads(self) -> tuple[Load, ...]:
        """The table, and what places read; empty if there is anything else."""
        loads = self.roles.pair
        if loads is None or any(e.dtype != e.dtype.compute_type for e in loads):
            return ()
        apart = not any(depends(loads[0].indices, n) for n in self.roles.positions)
        along = all(self.roles.along(e, self._sum) for e in loads)
        return loads if apart and along else ()

    @cached_property
    def _tile(self) -> tuple[int, int]:
        """Vectors and results of a tile; none if no tile fits the registers, and its rows the first cache's sets."""
        vectors, room = self._places // self.lanes, self.machine.registers - OPERANDS
        rows = self.machine.l1.lines_at(self._terms * self._reads[0].dtype.bytes) - 1
        fitting = (t for t in SCALAR_ROW_TILES if prod(t) <= room and vectors % t[0] == 0 and self.width % t[1] == 0)
        return next((t for t in fitting if t[1] <= rows), (0, 0)) if vectors else (0, 0)

    @cached_property
    def _block(self) -> int:
        """Results of a block: whole tiles, and enough blocks for all threads; none if there is no such number."""
        high, least = self._tile[1], TURNS * self.machine.cores
        whole = (n for n in BLOCKS_TRANSPOSED if high and n % high == 0 and self.width % n == 0)
        return next((n for n in whole if self.width >= least * n), 0)

    @property
    def legal(self) -> bool:
        """Whether the nest is such a product, of whole tiles."""
        nest = self.nest
        if len(nest.inner_loops) != 1 or nest.conditions or not self.roles.positions or not self._reads:
            return False
        return len(nest.results) == 1 and self.roles.stores_vectors and self._block > 0

    @property
    def proven(self) -> bool:
        """Whether the table from beyond the second cache is what is large, and lanes are few that stay empty."""
        if self._places % self.lanes > LEFT_OVER_PLACES * self._places:
            return False
        m, element = self.machine, self._reads[0].dtype.bytes
        table, others = self._terms * self.width * element, self._places * (self._terms + self.width) * element
        arithmetic = self._terms * self.width * self._places / self.lanes / m.fma_per_second
        memory = self.memory
        exposed = memory.exposed(memory.seconds(table), arithmetic, EXPOSED_ROWS)
        return (
            exposed
            and table > max(m.l2.size, TABLE_LARGER * others)
            and memory.holds(self._places * self._terms * element, 2, FOUND)
        )

    def take(self) -> bool:
        trial, place = self.trial, self._joined()
        if place is None:
            return False
        vectors, high = self._tile
        left = self._places % self.lanes
        f = trial.fresh
        blocks, part, outer, inner = (f(f"{self.vector}_{n}") for n in "broi")
        tiles, within, across, lane = (f(f"{place}_{n}") for n in "oivl")
        term, step = f(f"{self._sum}_o"), f(f"{self._sum}_i")
        skip = max(1, self.machine.l1.line // (high * self._reads[0].dtype.bytes))
        transposed, kept = f(f"{self._reads[1].buffer}_transposed"), f(f"{self.nest.results[0].buffer}_transposed")
        into, back = _transposed(self._reads[1]), _transposed(self.nest.results[0])
        if not trial.take(
            Reorder((self.vector, place)),
            Split(self.vector, self._block, "exact", blocks, part),
            Pack(self.nest.results[0].buffer, back, kept, blocks),
            Split(part, high, "exact", outer, inner),
            Reorder((outer, place, inner)),
            *([Partition(place, (-left,), "left")] if left else []),
            Split(place, vectors * self.lanes, "exact", tiles, within),
            Split(within, self.lanes, "exact", across, lane),
            Split(self._sum, skip, "exact", term, step),
            Reorder((tiles, inner, across, lane)),
            Reorder((tiles, term, step, inner, across, lane)),
            *(Unroll(n) for n in (step, inner, across)),
            Vectorize(lane),
            Prefetch(self._reads[0].buffer, outer, term),
            Pack(self._reads[1].buffer, into, transposed, loop=tiles),
        ):
            return False
        if left:
            sums = f"{self.nest.allocations[0].name}_left"
            if not in_partial_sums(trial, f"{self._sum}_left", self._terms, f(f"{sums}_partial"), self.lanes, CHAINS):
                return False
        room = -(-self._places // self.lanes) * self.lanes
        transposed_blocks(trial, transposed, self.machine.vector_bytes)
        shared = transposed_blocks(trial, kept, self.machine.vector_bytes, [blocks])
        return shared and trial.take(Pitch(transposed, len(into) - 1, room), Pitch(kept, len(back) - 1, room))

    def _joined(self) -> str | None:
        """All places as one loop; none if they do not lie one after the other."""
        if self.nest.names[-1] != self.vector and not self.trial.take(Reorder((*self.roles.positions, self.vector))):
            return None
        place, *others = self.trial.joined(self.roles.positions)
        return None if others else place


def _transposed(e: Load | Store) -> tuple[int, ...]:
    """The order of dimensions in which the last two change places."""
    rank = len(e.indices)
    return (*range(rank - 2), rank - 1, rank - 2)
