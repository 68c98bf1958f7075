"""Products of matrices: each place of a map multiplies a row of scalars by a table of vectors.

A tile of six places by four vectors has the fewest loads for its arithmetic.  Consecutive rows are joined, so that only
the last tile of all is shorter.  Vectors are outermost.  The operands of four of them are copied into a panel that is
contiguous in the second cache for all places: the first tile fills it while it computes, or it is transposed before.
Meanwhile the operands of the next tile or row of places are prefetched.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.locks import cached_property
from opgen.schedule.auto.contraction.blocked import Blocked, Blocks
from opgen.schedule.auto.nests import depends, own_axis
from opgen.schedule.cost.calibration import PRODUCT_POSITIONS, PRODUCT_VECTORS, USES_OF_FAR_PANEL, USES_OF_PANEL


@dataclass(frozen=True)
class Products(Blocked):
    @property
    def legal(self) -> bool:
        """Return True if the loop nest is such a product, of whole tiles along the lanes."""
        nest, positions = self.nest, self.roles.positions
        if len(nest.inner_loops) != 1 or nest.conditions or not positions or not self.reads:
            return False
        rows, scalars = self.reads
        along = (self._sum, *positions[-1:]) if self.execution.hides_loads else (self._sum,)
        if own_axis(rows, self.vector) is None or any(depends(rows.indices, n) for n in positions):
            return False
        if not any(self.roles.along(scalars, n) for n in along):
            return False
        return self.fills_tiles and self._terms > 0 and (self.roles.stores_vectors or self._crosswise)

    @property
    def proven(self) -> bool:
        """Return True if there are enough places for panels, and the second cache holds these."""
        uses = USES_OF_FAR_PANEL if self._far else USES_OF_PANEL
        large = self._uses >= uses and self._extents[-1] >= 2 * PRODUCT_POSITIONS
        return large and self.memory.holds(self._terms * PRODUCT_VECTORS * self.lanes * self.element, 2)

    def take(self) -> bool:
        *others, x = self._joined()
        rows, scalars = self.reads
        if self._far and self._uses < USES_OF_PANEL:  # few tiles hide the latency of fetching a panel
            ahead = [rows]
        else:
            ahead = [] if self.memory.holds(self._terms * prod(self._extents) * scalars.dtype.bytes, 2) else [scalars]
        early = tuple(e.buffer for e in ahead)
        return self.made("products", Blocks(x, (self._sum,), tuple(others), ahead=early, crosswise=self._crosswise))

    @property
    def _sum(self) -> str:
        return self.roles.terms[0]

    @property
    def _terms(self) -> int:
        return self.roles.counts[self._sum]

    @cached_property
    def _extents(self) -> list[int]:
        """Return the extents of the loops over places."""
        return [self._extent(n) for n in self.roles.positions]

    @property
    def _crosswise(self) -> bool:
        """Return True if results are contiguous along places.

        Those of some vectors are then kept, and transposed as they are copied out.
        """
        results = self.nest.results
        along = all(
            self.roles.along(s, self.roles.positions[-1]) and own_axis(s, self.vector) is not None for s in results
        )
        return self.execution.hides_loads and len(results) == 1 and along

    def _joined(self) -> tuple[str, ...]:
        """Return the loops over places, joined if possible and if threads share none of them.

        Only the last tile of all is shorter then.
        """
        apart = 0 if self.even else len(self.roles.positions) - 1
        return (*self.roles.positions[:apart], *self.trial.joined(self.roles.positions[apart:]))

    @property
    def _far(self) -> bool:
        """Return True if the lanes' operand comes from beyond the second cache."""
        return not self.memory.holds(self._terms * self.width * self.reads[0].dtype.bytes, 2)

    @property
    def _uses(self) -> int:
        """Return the number of places of a map, or of a row of maps."""
        return prod(self._extents[-2:])
