"""Sums of outer products: each place of a map adds the product of two rows to a table of results, or to one of several
for each tap.

A tile of six scalars by four vectors loads least for what it computes.  All results wait in the second cache while
blocks of places go by: of each block the vectors' rows are copied into panels that stay in the first cache for all
tiles of scalars, and meanwhile, if it comes from afar, what the next block reads is prefetched.  Few places are one
block: no result waits, and there may be many.  The last tile of scalars is shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from opgen.loop.nodes import For, Load
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.contraction.blocked import Blocked, Blocks
from opgen.schedule.cost.calibration import (
    ALL,
    EXPOSED_ROWS,
    FOUND_SUMS,
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
    def take(self) -> bool:
        """All steps, or none; one loop over all places has blocks of any size."""
        return self.trial.attempt(self._joined) or (self._comes_apart and self.trial.attempt(self.tiled))

    @property
    def _comes_apart(self) -> bool:
        """Whether there are blocks of places: the only loop over them may have a prime number."""
        return self.block > 0 and (self.enough or len(self.places) > 1)

    def _joined(self) -> bool:
        if len(self.trial.joined([s.var for s in self.places])) > 1:
            return False
        nest = replace(self, nest=self.trial.nest(self.vector))
        return len(self.places) > 1 and nest.legal and nest.proven and nest.enough and nest.tiled()

    def tiled(self) -> bool:
        """All steps, with the loops over places as they are."""
        places = [s.var for s in self.places]
        *images, last = [n for n in places if len(places) == 1 or n != places[-1]]
        blocks = Blocks(
            self.loop,
            tuple(places) if self.whole else (last, *places[1:][-1:]),
            between=tuple(self.others),
            carried=() if self.whole else tuple(images),
            block=0 if self.whole else self.block,
            ahead=() if self.whole or not self.late else tuple(e.buffer for e in self.reads),
        )
        return self.made("outer", blocks)

    # What there is --------------------------------------------------------------------------------------

    @cached_property
    def loop(self) -> str:
        """The loop over scalars that lie together; empty if there is none."""
        scalars = self.roles.scalars
        along = [n for n in self.nest.names if all(self.roles.along(e, n) for e in scalars)]
        return along[0] if scalars and len(along) == 1 and along[0] != self.vector else ""

    @cached_property
    def others(self) -> list[str]:
        """The loops over tables: what lanes read serves all of them."""
        return [n for n in self.nest.names if n not in (self.vector, self.loop)]

    @cached_property
    def places(self) -> tuple[For, ...]:
        return self.nest.inner_loops

    @property
    def legal(self) -> bool:
        """Whether the nest is such a sum, of whole tiles along the lanes."""
        nest = self.nest
        if not self.reads or not self.loop or any(constant_extent(s) is None for s in self.places) or nest.phases:
            return False
        if self.roles.columns != (self.vector,) or self.roles.batch or not self.roles.along(self.reads[0], self.vector):
            return False
        if not nest.borders.isdisjoint((self.vector, self.loop)):
            return False
        return nest.sums_wait and self.roles.stores_vectors and self.fills_tiles

    @property
    def proven(self) -> bool:
        """Whether results wait near enough if at all, and tiles pay for panels."""
        return self.scalars >= TILES_OF_PANEL * PRODUCT_POSITIONS and self.near

    @property
    def near(self) -> bool:
        """Whether entering a tile, and fetching its results, is hidden.  Of several tables operands are as they were
        given, and threads share all tables.
        """
        if self.whole or not self.others:
            return True
        given = {e.buffer for e in self.reads} <= {b.name for b in self.trial.kernel.inputs}
        return self.block * self.row >= PLACES_WAITING and given and self.even

    @property
    def products(self) -> int:
        """How many results there are."""
        return prod(self.nest.extent(n) or 0 for n in self.nest.names)

    @property
    def scalars(self) -> int:
        return self._extent(self.loop)

    # Blocks of places -----------------------------------------------------------------------------------

    @cached_property
    def block(self) -> int:
        """How many iterations of the loop over `rows` a block has, so that a panel and the lines of the scalars stay in
        the first cache; none if a row is too long.
        """
        rows = (constant_extent(self.rows) or 1) if self.places else 0
        return max((d for d in range(1, rows + 1) if rows % d == 0 and d <= self._most), default=0)

    @property
    def enough(self) -> bool:
        """Whether a block is not much smaller than the first cache would let it be."""
        return 2 * self.block > min(self._most, constant_extent(self.rows) or 1)

    @property
    def _most(self) -> int:
        """The most iterations of a block."""
        vectors = PRODUCT_VECTORS * self.lanes * self.element
        near = int(KEPT * self.machine.l1.size) // (vectors + LINE)
        return max(near, self._streamed // vectors) // self.row

    @property
    def _streamed(self) -> int:
        """Bytes of a panel in the second cache, if that serves: half as many where operands come from afar, and there
        is no room for those of two blocks and the results.
        """
        most = int(self.memory.usable(2, PANEL_STREAMED))
        if not self.execution.hides_loads:
            return 0
        places = most // (PRODUCT_VECTORS * self.lanes * self.element)
        held = 2 * places * (self.scalars + self.width) + self.products
        return most // 2 if self.afar and not self.memory.holds(held * self.element, 2, ALL) else most

    @property
    def rows(self) -> For:
        """The loop over places that comes in blocks: the last but one, or the only one."""
        return self.places[-2:][0]

    @property
    def row(self) -> int:
        """The places of one of its iterations."""
        return constant_extent(self.places[-1]) or 1 if len(self.places) > 1 else 1

    @property
    def whole(self) -> bool:
        """Whether all places are one block, so that sums never wait: they stay in the first cache."""
        count = prod(constant_extent(s) or 1 for s in self.places) // self.row
        return self.block in (0, count) and self.block > 0 and not self.others

    @cached_property
    def late(self) -> bool:
        """Whether fetching both operands from where they lie takes long beside the arithmetic."""
        size, m = sum(map(self.bytes, self.reads)), self.machine
        rate = m.memory_bytes_per_second if self.afar else m.l3.bytes_per_second
        places = prod(constant_extent(s) or 1 for s in self.places)
        arithmetic = places * self.products / self.lanes / m.fma_per_second
        return not self.memory.holds(2 * size, 2, KEPT) and size / rate > EXPOSED_ROWS * arithmetic

    @cached_property
    def afar(self) -> bool:
        """Whether the operands come from beyond the caches."""
        return not self.memory.holds(sum(map(self.bytes, self.reads)), 3, FOUND_SUMS)

    def bytes(self, e: Load) -> int:
        width = self.width if e is self.roles.vectors[0] else self.scalars
        return width * e.dtype.bytes * prod(constant_extent(s) or 1 for s in self.places)
