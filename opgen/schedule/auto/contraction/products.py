"""Products of matrices: each place of a map multiplies a row of scalars by a table of vectors.

A tile of six places by four vectors loads least for what it computes; rows are joined where they lie one after the
other, so that only the last tile of all is shorter.  Vectors are outermost: what four of them read is copied by the
first tile while it computes, or transposed before, into a panel that lies together in the second cache for all places,
and meanwhile what the next tile or row of places reads is prefetched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.nodes import Load
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends, is_contiguous, own_axis, with_last
from opgen.schedule.auto.plan import Ahead, Cut, Operand, Plan, Result
from opgen.schedule.cost.calibration import ALL, PRODUCT_POSITIONS, PRODUCT_VECTORS, TURNS, USES_OF_PANEL


def balanced(extent: int, most: int) -> int:
    """The least size of a tile with which there are as few tiles as with the largest."""
    tiles = -(-extent // most)
    return -(-extent // tiles)


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
        results = self.nest.results
        along = all(
            self.roles.along(s, self.roles.positions[-1]) and own_axis(s, self.vector) is not None for s in results
        )
        return self.execution.hides_loads and len(results) == 1 and along

    @cached_property
    def _blocks(self) -> int:
        return self.width // (PRODUCT_VECTORS * self.lanes)

    def take(self) -> bool:
        (*others, x), k, (rows, scalars) = self._joined(), self.vector, self._reads
        whole, axis, rank = len(others) == self._apart, own_axis(rows, k), len(rows.indices)
        if axis is None:
            return False
        filled = whole and axis == rank - 1
        places = prod(self._extents) // prod(self.nest.extent(n) or 1 for n in others)
        size = PRODUCT_POSITIONS if whole else balanced(places, PRODUCT_POSITIONS)
        around = (*others[: self._apart], f"{k}.o", *others[self._apart :])
        panel = Operand(
            rows.buffer,
            "panel",
            with_last(rank, axis),
            f"{k}.o",
            "panel",
            lanes=self.lanes if axis == rank - 1 else 0,
            filled=self._sum if filled else None,
            wide=True,
        )
        far = not self.memory.holds(self._bytes, 2)
        return self.realised(
            Plan(
                "products",
                f"{k}.l",
                cuts=(
                    Cut(k, PRODUCT_VECTORS * self.lanes, f"{k}.o", f"{k}.i"),
                    Cut.even(x, places, size, first=filled),
                    Cut(f"{k}.i", self.lanes, f"{k}.v", f"{k}.l"),
                ),
                order=(*around, f"{x}.o"),
                terms=(self._sum,),
                tile=(f"{x}.i", f"{k}.v"),
                ahead=(Ahead(scalars.buffer, f"{x}.o" if whole else others[-1], self._sum),) if far else (),
                operands=(panel,),
                results=(self._transposed(around[-1]),) if self._crosswise else (),
                threads=(others[0] if self._apart else f"{k}.o" if self._shares_vectors else others[-1],),
            )
        )

    def _transposed(self, at: str) -> Result:
        """Results of some vectors side by side, transposed at the end of each iteration of a loop."""
        (result,) = self.nest.results
        return Result(result.buffer, with_last(len(result.indices), own_axis(result, self.vector) or 0), at)

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
