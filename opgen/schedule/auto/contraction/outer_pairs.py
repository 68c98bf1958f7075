"""Sums of outer products of bfloat16, two places at a time by the dot product of pairs: each place adds the product of
two rows to a table of results.

    for parts of the places: for blocks of pairs: copy the pairs; for tiles of the table: for pairs: scalars by vectors

The two elements of a pair lie a row apart, so that both operands are copied, pair by pair: a block at a time, which the
second cache holds beside the table, while the next one is prefetched.  Places are joined: no row has an odd last one.
Each part has a table of its own, so that threads meet once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.dtypes import BFLOAT16
from opgen.loop.nodes import Load
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import is_contiguous, read_bytes
from opgen.schedule.cost.calibration import (
    BLOCK_PAIRS,
    KEPT,
    PAIR_BYTES,
    PAIR_SCALARS,
    PAIR_VECTORS,
    PAIRS_WAITING,
    PARTS,
    TABLE_PAIRS,
)
from opgen.schedule.split import Tail
from opgen.schedule.steps import (
    Carry,
    ComputeAt,
    Divide,
    Pair,
    Parallel,
    Prefetch,
    Reorder,
    Split,
    Step,
    Unroll,
    Vectorize,
)


@dataclass(frozen=True)
class OuterPairs(LaneNest):
    @cached_property
    def _loop(self) -> str:
        """The loop over scalars."""
        return next((n for n in self.nest.names if n != self.vector), "")

    @cached_property
    def _reads(self) -> tuple[Load, ...]:
        """What lanes read, and the scalars; empty if there is anything else."""
        roles, rows = self.roles, self.roles.pair
        if rows is None or len(roles.positions) != 1 or any(e.dtype != BFLOAT16 for e in rows):
            return ()
        along = all(roles.along(e, n) for e, n in zip(rows, (self.vector, self._loop), strict=True))
        return rows if along and not roles.batch else ()

    @property
    def legal(self) -> bool:
        """Whether the nest is such a sum, of whole tiles."""
        nest = self.nest
        if (
            not self.machine.pairs
            or not self._reads
            or nest.conditions
            or len(nest.results) != 1
            or not nest.inner_loops
            or nest.phases
        ):
            return False
        if any(constant_extent(s) is None for s in nest.inner_loops):
            return False
        tiled = self.width % (PAIR_VECTORS * self.lanes) == 0 and self._extent(self._loop) % PAIR_SCALARS == 0
        return tiled and is_contiguous(nest.results[0], self.vector, nest.shapes)

    @property
    def proven(self) -> bool:
        """Whether the table is small, and the second cache does not hold the operands."""
        second = self.machine.l2.size
        near = PAIR_BYTES * self.width * self._extent(self._loop) <= TABLE_PAIRS * second
        return near and read_bytes(self.nest) > second

    def take(self) -> bool:
        """With one loop over all places."""
        count = prod(constant_extent(s) or 1 for s in self.nest.inner_loops)
        place, *others = self.trial.joined([s.var for s in self.nest.inner_loops])
        parts = next((n for n in range(self._most_parts, 1, -1) if count % (2 * n) == 0), 0)
        block = self._block(count // (2 * parts)) if parts else 0
        return not others and block >= PAIRS_WAITING and self._tiled(place, count // parts, block)

    @property
    def _most_parts(self) -> int:
        return max(2, min(self.machine.cores, PARTS))

    def _block(self, pairs: int) -> int:
        """How many pairs make a block."""
        panel = KEPT * self.machine.l1.size / (PAIR_VECTORS * self.lanes + PAIR_SCALARS)
        copies = BLOCK_PAIRS * self.machine.l2.size / (self.width + self._extent(self._loop))
        most = int(min(panel, copies)) // PAIR_BYTES
        return max((n for n in range(1, min(most, pairs) + 1) if pairs % n == 0), default=0)

    def _tiled(self, place: str, size: int, block: int) -> bool:
        trial, (first, *_) = self.trial, self.nest.names
        part, rest, sums = trial.fresh(f"{place}_p"), trial.fresh(f"{place}_r"), trial.fresh("sums")
        copies = [trial.fresh(f"{e.buffer}_pairs") for e in self._reads]
        around, within = trial.fresh(f"{place}_o"), trial.fresh(f"{place}_i")
        tiles, scalar = trial.fresh(f"{self._loop}_o"), trial.fresh(f"{self._loop}_i")
        blocks, inside, across, lane = (trial.fresh(f"{self.vector}_{n}") for n in "oivl")
        outer = (blocks, tiles) if first == self.vector else (tiles, blocks)
        steps: list[Step] = [
            Split(place, size, "exact", part, rest),
            Divide(part, first, sums),
            Pair(rest, *self._in_order(copies)),
            Split(self._loop, PAIR_SCALARS, "exact", tiles, scalar),
            Split(self.vector, PAIR_VECTORS * self.lanes, "exact", blocks, inside),
            Split(inside, self.lanes, "exact", across, lane),
            Split(rest, block, "exact", around, within),
            Reorder((*outer, scalar, across, lane)),
            Carry(around, outer[0]),
            Reorder((*outer, within, scalar, across, lane)),
            *(Unroll(n) for n in (scalar, across)),
            Vectorize(lane),
            *(ComputeAt(copy, around) for copy in copies),
            *(Prefetch(e.buffer, around, within) for e in self._reads),
            Parallel(part),
            *self._in_lanes(f"{copies[0]}_{len(self._reads[0].indices) - 1}", self.width),
            *self._in_lanes(f"{copies[1]}_{len(self._reads[1].indices) - 1}", self._extent(self._loop)),
            *self._in_lanes(f"{sums}_{self.vector}", self.width),
            Parallel(f"{sums}_{first}"),
        ]
        return trial.take(*steps)

    def _in_order(self, copies: list[str]) -> tuple[str, str]:
        """The copies in the order in which their sources are multiplied."""
        first, second = copies if self.nest.summed[0] == self._reads[0] else reversed(copies)
        return first, second

    def _in_lanes(self, loop: str, extent: int) -> list[Step]:
        """Whole vectors, the last of which may overlap, or shorter ones."""
        lanes = min(self.lanes, 1 << extent.bit_length() - 1)
        tail: Tail = "exact" if extent % lanes == 0 else "overlap"
        return [Split(loop, lanes, tail, f"{loop}_o", f"{loop}_l"), Vectorize(f"{loop}_l")]
