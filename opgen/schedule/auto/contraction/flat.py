"""Products of matrices whose rows are the maps of images: lanes along all positions of a map, rows after rows.

    for images: for blocks of positions: for tiles of results: for tiles of positions: for c: results by vectors

The rows lie so far apart that each is in a page of its own, and a tile's piece of each is too short to be fetched
ahead: a block's positions of all rows are copied side by side first.  Results are stored in runs as long as a block.
Where one unit multiplies and adds, which hides the pages, a tile's pieces are read in place by all tiles of results,
one after the other, while those of the next tile are prefetched.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.loop.nodes import Load
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies.prepare import pack_last
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import Nest, depends, is_contiguous, own_axis, reduces, width_in_bytes
from opgen.schedule.auto.non_temporal import store_non_temporally
from opgen.schedule.auto.roles import Roles
from opgen.schedule.cost.calibration import (
    FLAT_TURNS,
    FOUND_SUMS,
    LEFT_OVER_MAPS,
    MAP_TILES,
    OPERANDS,
    ROWS_OF_MAPS,
)
from opgen.schedule.steps import Flatten, Parallel, Partition, Prefetch, Reorder, Split, Stage, Unroll, Vectorize


@dataclass(frozen=True)
class Flat(LaneNest):
    """`vector`: the loop along which results lie consecutively, rows of which are read and stored as a whole."""

    @property
    def legal(self) -> bool:
        """Whether the nest may be such a product."""
        simple = reduces(self.nest) and len(self.nest.inner_loops) == 1 and not self.nest.conditions
        sizes = all(self.nest.extent(n) is not None for n in self.nest.names)
        alone = len(self.nest.allocations) == len(self.nest.results) == 1
        return sizes and self.nest.names.index(self.vector) > 0 and simple and alone

    def take(self) -> bool:
        """All steps; some may have been taken if the nest is no such product."""
        at = self.nest.names.index(self.vector)
        flat = self.trial.fresh(f"{self.nest.names[at - 1]}_{self.vector}")
        if not self.trial.take(Flatten(self.nest.names[at - 1], self.vector, flat)):
            return False
        nest = self.trial.nest(flat)
        found = _operands(nest, flat)
        return found is not None and self._tiled(nest, flat, *found)

    def _tiled(self, nest: Nest, flat: str, rows: Load, scalars: Load, across: str) -> bool:
        """The nest over the flat loop; `across`: the loop over results that `scalars` follow."""
        (term,) = nest.inner_loops
        size, terms = nest.extent(flat) or 0, constant_extent(term) or 0
        vectors, high = next((t for t in MAP_TILES if prod(t) + OPERANDS <= self.machine.registers), (0, 1))
        wide = vectors * self.lanes
        others = [n for n in nest.names if n not in (flat, across)]
        images = prod(nest.extent(n) or 1 for n in others)
        if not wide or size % self.lanes or (nest.extent(across) or 1) % high:
            return False
        block = self._block(size, wide, terms, images)
        axis = own_axis(scalars, term.var)
        if block is None or axis is None:
            return False
        if not is_contiguous(scalars, term.var, nest.shapes) and not pack_last(
            scalars, axis, self.trial, self.machine.vector_bytes
        ):
            return False
        f, names = self.trial.fresh, {n: self.trial.fresh(f"{flat}_{n}") for n in "bropvli"}
        k_o, k_i = f(f"{across}_o"), f(f"{across}_i")
        tiles = (names["o"], k_o) if self.execution.hides_loads else (k_o, names["o"])
        order = (names["b"], *tiles, term.var, k_i, names["v"], names["l"])
        left = size % block
        first = (flat, *others, across)
        tiled = self.trial.take(
            *([Reorder(first)] if first != nest.names else []),
            *([Partition(flat, (-left,))] if left else []),
            Split(flat, block, "min" if left else "exact", names["b"], names["r"]),
            Split(names["r"], wide, "guard" if left else "exact", names["o"], names["i"]),
            Split(names["i"], self.lanes, "exact", names["v"], names["l"]),
            Split(across, high, "exact", k_o, k_i),
            Reorder((*others, *order)),
            Unroll(k_i),
            Unroll(names["v"]),
            Vectorize(names["l"]),
        )
        if not tiled:
            return False
        ahead = Prefetch(rows.buffer, names["o"], term.var)
        if not (self.trial.take(ahead) if self.execution.hides_loads else self._copied(rows, flat, names["b"])):
            return False
        store_non_temporally(nest, flat, self.trial, self.machine, FOUND_SUMS)
        return self.trial.fused_prefix([*others, names["b"]][-2:], Parallel)

    def _copied(self, rows: Load, flat: str, block: str) -> bool:
        """A block of all rows side by side."""
        copy = self.trial.fresh(f"{rows.buffer}_block")
        last = f"{copy}_{next(d for d, e in enumerate(rows.indices) if depends(e, flat))}"
        return self.trial.take(
            Stage(rows.buffer, block, "heap", False, copy),
            Split(last, self.lanes, "exact", f"{last}_o", f"{last}_l"),
            Vectorize(f"{last}_l"),
        )

    def _block(self, size: int, wide: int, terms: int, images: int) -> int | None:
        """Positions of a block: as many tiles as room is for, if they are copied, of which threads have enough, and few
        are left over.
        """
        tiles, cores = size // wide, self.machine.cores
        row = terms * wide * width_in_bytes(self.nest)
        room = tiles if self.execution.hides_loads else self.machine.l2.size // ROWS_OF_MAPS // row
        most = min(room, tiles * images // (FLAT_TURNS * cores), tiles)
        for count in range(most, 0, -1):
            even = images >= FLAT_TURNS * cores or (tiles // count) % cores == 0
            if even and size % (count * wide) <= LEFT_OVER_MAPS * size:
                return count * wide
        return None


def _operands(nest: Nest, flat: str) -> tuple[Load, Load, str] | None:
    """What lanes along the flat loop read, what is the same for all of them, and the loop over results that this
    follows; None if the nest is not a product of these two.
    """
    roles = Roles.of(nest, flat)
    if roles.pair is None or not roles.along(roles.pair[0], flat):
        return None
    if any(e.dtype != e.dtype.compute_type for e in roles.pair) or len(roles.rows) != 1 or roles.batch:
        return None
    return *roles.pair, roles.rows[0]
