"""Products of matrices: each place of a map multiplies a row of scalars by a table of vectors.

A tile of six places by four vectors loads least for what it computes; rows are joined where they lie one after the
other, so that only the last tile of all is shorter.  Vectors are outermost: what four of them read is copied by the
first tile while it computes, or transposed before, into a panel that lies together in the second cache for all places,
and meanwhile what the next tile or row of places reads is prefetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.nodes import Load
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.copies.panel import widened
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends, is_contiguous, own_axis, with_last
from opgen.schedule.cost.calibration import ALL, PRODUCT_POSITIONS, PRODUCT_VECTORS, TURNS, USES_OF_PANEL
from opgen.schedule.steps import (
    Fill,
    Pack,
    Parallel,
    Partition,
    Prefetch,
    Reorder,
    Split,
    Step,
    Unroll,
    Vectorize,
)


def balanced(extent: int, most: int) -> int:
    """The least size of a tile with which there are as few tiles as with the largest."""
    tiles = -(-extent // most)
    return -(-extent // tiles)


def apart(loop: str, extent: int, size: int, outer: str, inner: str, first: bool = False) -> list[Step]:
    """A loop in tiles, the last of which may be shorter and is then a loop of its own; so is the first if that is
    prefetched.
    """
    even = extent % size == 0
    cuts = (*((1,) if first else ()), *(() if even else (-1,)))
    split = Split(loop, size, "exact" if even else "min", outer, inner)
    return [split, Partition(outer, cuts)] if cuts else [split]


@dataclass(frozen=True)
class Products(LaneNest):
    @cached_property
    def _reads(self) -> tuple[Load, ...]:
        """What lanes read, and the scalars; empty if there is anything else."""
        rows = self.roles.pair
        if rows is None or rows[1].dtype != rows[1].dtype.compute_type:
            return ()
        if any(depends(rows[0].indices, n) for n in self.roles.positions):
            return ()
        along = (self._sum, *self.roles.positions[-1:]) if self.execution.hides_loads else (self._sum,)
        return rows if any(is_contiguous(rows[1], n, self.nest.shapes) for n in along) else ()

    @property
    def _sum(self) -> str:
        return self.roles.terms[0]

    @property
    def _terms(self) -> int:
        return self.roles.counts[self._sum]

    @cached_property
    def _extents(self) -> list[int]:
        """Of the loops over places."""
        return [self._extent(n) for n in self.roles.positions]

    @property
    def legal(self) -> bool:
        """Whether the nest is such a product, of whole tiles along the lanes."""
        nest = self.nest
        if len(nest.inner_loops) != 1 or nest.conditions or not self.roles.positions or not self._reads:
            return False
        rows = self.roles.stores_vectors or self._crosswise
        enough = self.machine.registers > PRODUCT_POSITIONS * PRODUCT_VECTORS + PRODUCT_VECTORS + 1
        return rows and enough and self._terms > 0 and self.width % (PRODUCT_VECTORS * self.lanes) == 0

    @property
    def proven(self) -> bool:
        """Whether places are enough for panels, which the second cache holds."""
        large = prod(self._extents[-2:]) >= USES_OF_PANEL and self._extents[-1] >= 2 * PRODUCT_POSITIONS
        panel = self._terms * PRODUCT_VECTORS * self.lanes * self._reads[0].dtype.compute_type.bytes
        return large and self.memory.holds(panel, 2)

    @property
    def _crosswise(self) -> bool:
        """Whether results lie along places: those of some vectors are kept, and transposed as they are copied out."""
        along = all(is_contiguous(s, self.roles.positions[-1], self.nest.shapes) for s in self.nest.results)
        return self.execution.hides_loads and len(self.nest.results) == 1 and along

    @cached_property
    def _blocks(self) -> int:
        return self.width // (PRODUCT_VECTORS * self.lanes)

    def take(self) -> bool:
        trial, (*others, loop) = self.trial, self._joined()
        whole = len(others) == self._apart
        filled = whole and self._axis == len(self._reads[0].indices) - 1
        places = prod(self._extents) // prod(self.nest.extent(n) or 1 for n in others)
        size = PRODUCT_POSITIONS if whole else balanced(places, PRODUCT_POSITIONS)
        outer, inner = trial.fresh(f"{loop}_o"), trial.fresh(f"{loop}_i")
        blocks, part = trial.fresh(f"{self.vector}_o"), trial.fresh(f"{self.vector}_i")
        across, lane = trial.fresh(f"{self.vector}_v"), trial.fresh(f"{self.vector}_l")
        around = (*others[: self._apart], blocks, *others[self._apart :])
        if not trial.take(
            Split(self.vector, PRODUCT_VECTORS * self.lanes, "exact", blocks, part), Reorder((*around, loop, part))
        ):
            return False
        if self._crosswise and not self._transposed(around[-1]):
            return False
        steps: list[Step] = [
            *apart(loop, places, size, outer, inner, first=filled),
            Split(part, self.lanes, "exact", across, lane),
            Reorder((outer, inner, across, lane)),
            Reorder((outer, self._sum, inner, across, lane)),
            *(Unroll(n) for n in (inner, across)),
            Vectorize(lane),
        ]
        if not trial.take(*steps):
            return False
        if not self.memory.holds(self._bytes, 2):
            trial.take(Prefetch(self._reads[1].buffer, outer if whole else others[-1], self._sum))
        return self._panel(blocks, others, filled)

    def _transposed(self, at: str) -> bool:
        """Results of some vectors side by side, transposed at the end of each iteration of a loop."""
        (result,) = self.nest.results
        axis = own_axis(result, self.vector)
        if axis is None:
            return False
        order = with_last(len(result.indices), axis)
        name = self.trial.fresh(f"{result.buffer}_rows")
        kept = self.trial.take(Pack(result.buffer, order, name, at))
        return kept and transposed_blocks(self.trial, name, self.machine.vector_bytes, ())

    def _joined(self) -> tuple[str, ...]:
        """The loops over places, those within the vectors' joined where they can be and threads share none of them:
        only the last tile of all is shorter then.
        """
        apart = self._apart if self._shares_vectors else len(self.roles.positions) - 1
        return (*self.roles.positions[:apart], *self.trial.joined(self.roles.positions[apart:]))

    @property
    def _bytes(self) -> int:
        """Of the scalars."""
        return self._terms * prod(self._extents) * self._reads[1].dtype.bytes

    @property
    def _apart(self) -> int:
        """How many loops stand outside of the vectors': the images, where all are too many to come again for each."""
        return int(len(self.roles.positions) > 2 and self._blocks > 1 and not self.memory.holds(self._bytes, 2, ALL))

    @property
    def _shares_vectors(self) -> bool:
        """Whether threads share blocks of vectors, or what is outside of them, rather than rows of places."""
        cores = self.machine.cores
        alone = bool(self._apart) or len(self.roles.positions) == 1
        return alone or self._blocks >= TURNS * cores or self._blocks % cores == 0

    @cached_property
    def _axis(self) -> int | None:
        """The dimension along which vectors lie in what they read."""
        return own_axis(self._reads[0], self.vector)

    def _panel(self, blocks: str, others: Sequence[str], filled: bool) -> bool:
        """The panel of some vectors, by the thread that uses it: `filled` by the first tile, unless it is transposed;
        where vectors are few, threads share rows of places.
        """
        rows, trial, axis = self._reads[0], self.trial, self._axis
        last = len(rows.indices) - 1
        if axis is None:
            return False
        order = with_last(last + 1, axis)
        name = trial.fresh(f"{rows.buffer}_panel")
        shared = others[0] if self._apart else blocks if self._shares_vectors else others[-1]
        if not trial.take(Pack(rows.buffer, order, name, blocks)):
            return False
        if axis != last:
            transposed = transposed_blocks(trial, name, self.machine.vector_bytes, [shared])
            return transposed and trial.take(*widened(trial, rows, name, [])[1])
        row = f"{name}_{last}"
        vectors: list[Step] = [
            Split(row, self.lanes, "exact", f"{row}_o", f"{row}_l"),
            Unroll(f"{row}_o"),
            Vectorize(f"{row}_l"),
        ]
        name, copied = widened(trial, rows, name, vectors)
        if not trial.take(*copied):
            return False
        if filled:
            trial.take(Fill(name, self._sum))
        return trial.take(Parallel(shared))
