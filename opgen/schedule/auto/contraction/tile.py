"""Register tile of a contraction: number of positions and of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from opgen.locks import cached_property
from opgen.machine import Machine
from opgen.schedule.auto.accesses import accesses
from opgen.schedule.auto.copies.prepare import Phases
from opgen.schedule.auto.nests import Nest, is_contiguous, loops_of_reuse
from opgen.schedule.auto.roles import Roles
from opgen.schedule.cost.calibration import (
    ACCUMULATORS_ALONG,
    OPERANDS,
    POSITIONS,
    POSITIONS_NEAR,
    POSITIONS_SEARCHED,
    POSITIONS_SHORT,
    VECTORS_SEARCHED,
)
from opgen.schedule.cost.traffic import Access


@dataclass(frozen=True)
class TileRule:
    """Rule for a tile of positions along `loop` and vectors of `lanes` along `vector`.

    With `joined`, a short loop may be joined by the next.
    """

    nest: Nest
    loop: str
    vector: str
    lanes: int
    phases: Phases
    machine: Machine
    joined: bool

    @cached_property
    def best(self) -> dict[str, int]:
        """Return the iterations of each loop in a tile, the vector loop last.

        If scalars are contiguous along the tile, all of its registers are used, and no tile overlaps another.  A short
        loop is joined by the next loop of reuse.
        """
        loop, width, length = self.loop, self._extent(self.vector), self._extent(self.loop)
        vectors = 2 if width % (2 * self.lanes) == 0 else 1
        room = self.machine.registers - OPERANDS
        if self.along_scalars(loop) and length % (ACCUMULATORS_ALONG // vectors) == 0 and room >= ACCUMULATORS_ALONG:
            return {loop: ACCUMULATORS_ALONG // vectors, self.vector: vectors * self.lanes}
        others = [n for n in loops_of_reuse(self.nest, self.vector) if n != loop]
        near = self.joined and others and any(self.along_scalars(n) for n in (loop, others[0]))
        if near and POSITIONS < self._extent(others[0]) * length <= room:
            return {others[0]: self._extent(others[0]), loop: length, self.vector: self.lanes}
        if others and (rows := self._rows(length, self._extent(others[0]), vectors)) > 1:
            return {others[0]: rows, loop: length, self.vector: vectors * self.lanes}
        return {loop: _positions(length, vectors), self.vector: vectors * self.lanes}

    @property
    def others(self) -> list[dict[str, int]]:
        """Return other tile shapes that fit the registers and are large enough to hide the latency."""
        width, length, room = self._extent(self.vector), self._extent(self.loop), self.machine.registers - OPERANDS
        found = []
        for vectors, positions in product(VECTORS_SEARCHED, sorted({min(n, length) for n in POSITIONS_SEARCHED})):
            tile = {self.loop: positions, self.vector: vectors * self.lanes}
            if width % (vectors * self.lanes) == 0 and self.machine.latency <= vectors * positions <= room:
                found += [tile] if tile != self.best else []
        return found

    @cached_property
    def accesses(self) -> tuple[Access, ...] | None:
        """Return the accesses of the loop nest; None if one is not affine."""
        return accesses(self.nest)

    @property
    def in_rows(self) -> bool:
        """Return True if results are contiguous along the lanes."""
        return all(is_contiguous(s, self.vector, self.nest.shapes) for s in self.nest.results)

    def along_scalars(self, loop: str) -> bool:
        """Return True if all scalars of a tile are contiguous along a loop of its positions."""
        roles = Roles.of(self.nest, self.vector)
        return all(roles.along(e, loop) for e in roles.scalars) and not self.phases.quotients

    def _extent(self, loop: str) -> int:
        extent = self.nest.extent(loop)
        assert extent is not None
        return extent

    def _rows(self, length: int, count: int, vectors: int) -> int:
        """Return the number of short rows, out of `count` without borders, that make a tile's positions."""
        borders = self.nest.conditions or self.phases.remainders or self.phases.quotients
        if not self.joined or borders or length > POSITIONS_SHORT:
            return 1
        most = min(POSITIONS + 1, (self.machine.registers - OPERANDS) // vectors) // length
        return max((n for n in range(1, most + 1) if count % n == 0), default=1)


def _positions(length: int, vectors: int) -> int:
    """Return the positions of a tile.

    That is the whole loop if it is short, else a divisor near `POSITIONS`, else a size with little overlap of tiles.
    """
    if length <= POSITIONS + 1:
        return length
    most = 2 * POSITIONS // vectors
    even = -(-length // -(-length // most))
    return next((POSITIONS + more for more in POSITIONS_NEAR if length % (POSITIONS + more) == 0), even)
