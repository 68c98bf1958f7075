"""Sums over the places of a map of products with few neighbouring scalars: the taps of a row, and what lies at each.

    for r: for s in 0..7: for c in 0..3: for k: f[r, s, c, k] = sum(y, x) x[2*y + r, 2*x + s, c] * g[y, x, k]

All scalars of a row in one vector each would take a load for each multiply-add.  A tile of some of them by two or four
vectors takes fewer; the last tile is shorter.  All results wait in the second cache while blocks of rows go by, of each
of which the vectors are copied into a panel that stays in the first cache for all taps and begins at a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.nodes import For, Load
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.accesses import accesses
from opgen.schedule.auto.ends import decided
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import is_contiguous, loops_of_reuse
from opgen.schedule.auto.plan import Ahead, Carried, Cut, Ends, Operand, Plan
from opgen.schedule.cost.calibration import KEPT, OPERANDS, POSITIONS, TAP_VECTORS, TURNS, USES_OF_TAPS
from opgen.schedule.cost.traffic import Access, Loop, region


@dataclass(frozen=True)
class Taps(LaneNest):
    @cached_property
    def _held(self) -> tuple[str, ...]:
        """The loops over the scalars of a row, the outer one first; none if these do not lie together."""
        reuse = loops_of_reuse(self.nest, self.vector)[:2]
        near = any(all(self.roles.along(e, n) for e in self.roles.scalars) for n in reuse)
        return tuple(reversed(reuse)) if len(reuse) == 2 and near else ()

    @cached_property
    def _rows(self) -> Load | None:
        """What lanes read."""
        return self.roles.vectors[0] if len(self.roles.vectors) == 1 else None

    @cached_property
    def _places(self) -> tuple[For, ...]:
        return self.nest.inner_loops

    @cached_property
    def _extents(self) -> tuple[int, int]:
        """Of the loops over the scalars of a row."""
        first, second = (self.nest.extent(n) or 0 for n in self._held)
        return first, second

    @property
    def legal(self) -> bool:
        """Whether the nest is such a sum: of as many scalars as one vector each leaves registers for."""
        nest = self.nest
        if not self._held or self._rows is None or nest.phases or len(self._places) < 2:
            return False
        kept = nest.sums_wait and self.roles.stores_vectors
        known = all(constant_extent(s) is not None for s in self._places)
        few = POSITIONS < prod(self._extents) <= self.machine.registers - OPERANDS
        along = is_contiguous(self._rows, self.vector, nest.shapes)
        return kept and known and few and along and self._tile[1] > 1 and self._block > 0

    @cached_property
    def _tile(self) -> tuple[int, int]:
        """Iterations of the outer loop over scalars, and vectors, for the fewest loads; a load takes as long as a
        multiply-add, one of a vector that lies across two lines as two.
        """
        most, each = self._extents
        room = self.machine.registers - OPERANDS
        width = (self.nest.extent(self.vector) or 0) / self.lanes

        def cost(tile: tuple[int, int]) -> tuple[float, int]:
            size, vectors = tile
            sizes = [min(size, most - at) for at in range(0, most, size)]
            taken = sum(max(n * each * vectors, n * each + 2 * vectors) for n in sizes) / vectors
            return taken, -sizes[-1] * vectors

        tiles = [(n, v) for v in TAP_VECTORS if width % v == 0 for n in range(1, most + 1) if n * each * v <= room]
        return min(tiles, key=cost, default=(0, 0))

    @cached_property
    def _block(self) -> int:
        """How many rows a block has, so that a panel stays in the first cache, or else two blocks in the second; none
        if a row is too long.
        """
        found = accesses(self.nest)
        rows, row = (constant_extent(s) or 1 for s in self._places[-2:])
        if found is None:
            return 0
        sizes = [d for d in range(1, rows + 1) if rows % d == 0]
        if self._in_panels:
            return max(d for d in sizes if self.memory.holds(d * row * self._place, 1, KEPT))
        return max((d for d in sizes if self.memory.holds(2 * self._bytes(found, d), 2, KEPT)), default=0)

    @property
    def _place(self) -> int:
        """Bytes of the vectors that a tile reads at a place."""
        rows = self._rows
        return 0 if rows is None else self._tile[1] * self.lanes * rows.dtype.bytes

    @cached_property
    def _in_panels(self) -> bool:
        """Whether a panel of a row leaves room in the first cache, is read often enough, and threads share the blocks
        of vectors.
        """
        m, row = self.machine, constant_extent(self._places[-1]) or 1
        blocks = (self.nest.extent(self.vector) or 0) // (self._tile[1] * self.lanes)
        even = blocks >= TURNS * m.cores or blocks % m.cores == 0
        scalars = prod(self.nest.extent(n) or 1 for n in self.nest.names if n != self.vector)
        return even and scalars >= USES_OF_TAPS and self.memory.holds(row * self._place, 1, KEPT)

    def _bytes(self, found: tuple[Access, ...], rows: int) -> int:
        """What so many rows of places read, for all results."""
        results = [Loop(n, self.nest.extent(n) or 1) for n in self.nest.names]
        row = self._places[-1]
        places = [Loop(self._places[-2].var, rows), Loop(row.var, constant_extent(row) or 1)]
        read = {e.buffer for e in self.nest.summed}
        return sum(region(a, [*results, *places]).bytes for a in found if a.buffer in read)

    def take(self) -> bool:
        assert self._rows is not None
        k, (first, second), (size, vectors), rows = self.vector, self._held, self._tile, self._rows
        *images, last, row = (s.var for s in self._places)
        others = tuple(n for n in self.nest.names if n not in (k, first, second))
        at = (*others, f"{first}.o")[0] if self._in_panels else f"{k}.o"  # then threads meet once
        panel = Operand.in_rows(rows.buffer, len(rows.indices), f"{last}.o", self.lanes)
        ends = decided(row, self._extent(row), self.nest.conditions, self._inside)
        return self.realised(
            Plan(
                "taps",
                f"{k}.l",
                cuts=(
                    Cut(k, vectors * self.lanes, f"{k}.o", f"{k}.i"),
                    Cut(last, self._block, f"{last}.o", f"{last}.i"),
                    Cut.even(first, self._extents[0], size),
                    Cut(f"{k}.i", self.lanes, f"{k}.v", f"{k}.l"),
                ),
                order=(f"{k}.o", *others, f"{first}.o"),
                carried=tuple(Carried(n, at) for n in (*images, f"{last}.o")),
                terms=(f"{last}.i", row),
                tile=(f"{first}.i", second, f"{k}.v"),
                ahead=(Ahead(rows.buffer, f"{last}.o", row),),
                operands=(panel,) if self._in_panels else (),
                threads=(f"{k}.o",) if self._in_panels else (f"{k}.o", *others),
                ends=(Ends(row, ends),) if ends else (),
            )
        )

    @property
    def _inside(self) -> dict[str, int]:
        return dict(zip(self._held, self._extents, strict=True))
