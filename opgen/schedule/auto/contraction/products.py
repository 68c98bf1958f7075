"""Products of matrices: each place of a map multiplies a row of scalars by a table of vectors.

A tile of six places by four vectors loads least for what it computes; rows are joined where they lie one after the
other, so that only the last tile of all is shorter.  Vectors are outermost: what four of them read is copied by the
first tile while it computes, or transposed before, into a panel that lies together in the second cache for all places,
and meanwhile what the next tile or row of places reads is prefetched.
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
        """Whether the nest is such a product, of whole tiles along the lanes."""
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
        """Whether places are enough for panels, which the second cache holds."""
        uses = USES_OF_FAR_PANEL if self._far else USES_OF_PANEL
        large = self._uses >= uses and self._extents[-1] >= 2 * PRODUCT_POSITIONS
        return large and self.memory.holds(self._terms * PRODUCT_VECTORS * self.lanes * self.element, 2)

    def take(self) -> bool:
        *others, x = self._joined()
        rows, scalars = self.reads
        if self._far and self._uses < USES_OF_PANEL:  # few tiles hide what a panel takes to come
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
        """Of the loops over places."""
        return [self._extent(n) for n in self.roles.positions]

    @property
    def _crosswise(self) -> bool:
        """Whether results lie along places: those of some vectors are kept, and transposed as they are copied out."""
        results = self.nest.results
        along = all(
            self.roles.along(s, self.roles.positions[-1]) and own_axis(s, self.vector) is not None for s in results
        )
        return self.execution.hides_loads and len(results) == 1 and along

    def _joined(self) -> tuple[str, ...]:
        """The loops over places, joined where they can be and threads share none of them:
        only the last tile of all is shorter then.
        """
        apart = 0 if self.even else len(self.roles.positions) - 1
        return (*self.roles.positions[:apart], *self.trial.joined(self.roles.positions[apart:]))

    @property
    def _far(self) -> bool:
        """Whether what lanes read comes from beyond the second cache."""
        return not self.memory.holds(self._terms * self.width * self.reads[0].dtype.bytes, 2)

    @property
    def _uses(self) -> int:
        """The places of a map, or of a row of maps."""
        return prod(self._extents[-2:])
