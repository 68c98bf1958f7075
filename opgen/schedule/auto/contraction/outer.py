"""Sums of outer products: each place of a map adds the product of two rows to a table of results.

There may be one table for each tap.  A tile of six scalars by four vectors has the fewest loads for its arithmetic.
All results stay in the second cache from block to block of places.  The vectors' rows of each block are copied into
panels that stay in the first cache for all tiles of scalars.  Meanwhile the operands of the next block are prefetched.
If places are few they are one block, and no partial sum is spilled.  The last tile of scalars is shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from opgen.locks import cached_property
from opgen.schedule.auto.contraction.blocked import Blocked, Blocks
from opgen.schedule.cost.calibration import (
    KEPT,
    LINE,
    PANEL_STREAMED,
    PLACES_WAITING,
    PRODUCT_POSITIONS,
    PRODUCT_VECTORS,
    TILES_OF_PANEL,
)


@dataclass(frozen=True)
class OuterProducts(Blocked):
    @property
    def legal(self) -> bool:
        """Return True if the loop nest is such a sum, of whole tiles along the lanes."""
        nest, roles = self.nest, self.roles
        if not self.reads or not self.loop or not all(roles.counts.values()) or nest.phases:
            return False
        if roles.columns != (self.vector,) or roles.batch or not roles.along(self.reads[0], self.vector):
            return False
        if not nest.borders.isdisjoint((self.vector, self.loop)):
            return False
        return nest.sums_wait and roles.stores_vectors and self.fills_tiles

    @property
    def proven(self) -> bool:
        """Return True if tiles pay for panels and, with several tables, the cost of entering a tile is hidden.

        For the latter, operands must be kernel inputs, and threads share all tables.
        """
        given = {e.buffer for e in self.reads} <= {b.name for b in self.trial.kernel.inputs}
        long = self.block * self._row >= PLACES_WAITING and given and self.even
        return self._extent(self.loop) >= TILES_OF_PANEL * PRODUCT_POSITIONS and (long or not self._tables)

    def take(self) -> bool:
        """Take all steps, or none; with one loop over all places, blocks may have any size."""
        return self.trial.attempt(self._joined) or (self._comes_apart and self.trial.attempt(self._tiled))

    def _joined(self) -> bool:
        if len(self.trial.joined(self.roles.terms)) > 1:
            return False
        nest = replace(self, nest=self.trial.nest(self.vector))
        return len(self.roles.terms) > 1 and nest.legal and nest.proven and nest._enough and nest._tiled()

    def _tiled(self) -> bool:
        """Take all steps, with the loops over places unchanged."""
        places, tables, ahead = self.roles.terms, tuple(self._tables), tuple(e.buffer for e in self.reads)
        if self.block == self._rows and len(places) < 3 and not tables:  # one block: no sum is spilled
            return self.made("outer", Blocks(self.loop, places))
        images, terms = places[:-2], places[-2:]
        return self.made("outer", Blocks(self.loop, terms, tables, images, self.block, ahead))

    # Structure --------------------------------------------------------------------------------------

    @cached_property
    def loop(self) -> str:
        """Return the loop over contiguous scalars; empty if there is none."""
        scalars = self.roles.scalars
        along = [n for n in self.nest.names if all(self.roles.along(e, n) for e in scalars)]
        return along[0] if scalars and len(along) == 1 and along[0] != self.vector else ""

    @property
    def _tables(self) -> list[str]:
        """Return the loops over tables: the lanes' operand serves all of them."""
        return [n for n in self.nest.names if n not in (self.vector, self.loop)]

    # Blocks of places -----------------------------------------------------------------------------------

    @cached_property
    def block(self) -> int:
        """Return the iterations of the loop over rows (the last but one, or the only one) in a block; 0 if rows are too
        long.

        A panel and the lines of the scalars stay in the first cache.  If arithmetic hides loads, the panel may stay in
        a part of the second instead.
        """
        return max((d for d in range(1, self._rows + 1) if self._rows % d == 0 and d <= self._most), default=0)

    @property
    def _most(self) -> int:
        """Return the maximum number of iterations of a block."""
        vectors = PRODUCT_VECTORS * self.lanes * self.element
        near = int(KEPT * self.machine.l1.size) // (vectors + LINE)
        second = self.memory.usable(2, PANEL_STREAMED) if self.execution.hides_loads else 0
        return max(near, int(second) // vectors) // self._row

    @property
    def _rows(self) -> int:
        return [*self.roles.counts.values()][-2:][0]

    @property
    def _row(self) -> int:
        """Return the number of places of a row."""
        return prod([*self.roles.counts.values()][-2:][1:])

    @property
    def _enough(self) -> bool:
        """Return True if a block is not much smaller than the caches allow."""
        return 2 * self.block > min(self._most, self._rows)

    @property
    def _comes_apart(self) -> bool:
        """Return True if there are blocks of places: the only loop over them may have a prime number."""
        return self.block > 0 and (self._enough or len(self.roles.terms) > 1)
