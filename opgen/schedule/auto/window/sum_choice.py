"""Whether sums of windows wait in memory between tiles, in which tiles, and how many vectors are done together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.machine import Machine
from opgen.schedule.auto.cuts import Cut, largest_divisor, sizes
from opgen.schedule.auto.nests import Nest, read_bytes
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.walks import Walk
from opgen.schedule.cost.calibration import (
    KEPT_SUMS,
    KEPT_WINDOW,
    NEIGHBOURS,
    STREAMS,
    SUM_OPERANDS,
    SUM_REGISTERS,
    SUM_TERMS,
    SUM_TERMS_NEAR,
    TURNS,
)
from opgen.schedule.cost.memory import Memory


@dataclass(frozen=True)
class SumChoice:
    nest: Nest
    machine: Machine
    vector: str
    lanes: int
    row: Walk
    column: Walk

    @property
    def terms(self) -> Mapping[str, int]:
        return Roles.of(self.nest).counts

    @cached_property
    def kept(self) -> int:
        return self._extent(self.row.result) * self._extent(self.column.result)

    @cached_property
    def far(self) -> bool:
        """Whether what is read lies beyond the second cache, or fills it and tiles are full; where registers are short
        for a tile, whether it also takes longer to come, in pieces, than the arithmetic.
        """
        size, l2 = read_bytes(self.nest), self.machine.l2.size
        high, wide = self._best(SUM_TERMS)
        terms = high.size * wide.size
        if (
            size <= (KEPT_WINDOW if terms < SUM_TERMS else KEPT_SUMS) * l2
            or self.kept * self._width > self.machine.l1.size
        ):
            return False
        if self.kept + terms + SUM_OPERANDS <= self.machine.registers:
            return True
        return size > KEPT_WINDOW * l2 and NEIGHBOURS * Memory(self.machine).seconds(size) > self._arithmetic

    @cached_property
    def block(self) -> int:
        """How many vectors are done together where all is near; 0 where the sums of one vector had better stay in
        registers, as the first cache holds one vector of all places, or as lines evict each other.
        """
        if self.far or not Memory(self.machine).holds(read_bytes(self.nest), 2, KEPT_WINDOW):
            return 0
        lines = self.machine.l1.lines_at(self.column.stride(self.nest))
        high, wide = self._best(SUM_TERMS_NEAR)
        terms = high.size * wide.size
        read = self._read(high, wide) + terms
        down, across = (self.terms[w.term] for w in (self.row, self.column))
        if self._read(Cut(down, down), Cut(across, across)) <= lines or read > lines:
            return 0
        if self.kept + terms + SUM_OPERANDS > self.machine.registers:
            return 0
        vectors, each = self._extent(self.vector) // self.lanes, (read + self.kept) * self.machine.vector_bytes
        most = min(vectors // min(self.machine.cores, TURNS), int(Memory(self.machine).usable(1)) // each)
        found = largest_divisor(vectors, max(1, most))
        return found if found > 1 else 0

    @cached_property
    def tile(self) -> tuple[Cut, Cut]:
        """Rows and columns of a tile."""
        return self._best(SUM_TERMS if self.far else SUM_TERMS_NEAR)

    def _best(self, most: int) -> tuple[Cut, Cut]:
        """Those that load and store least for each term; of equals the most rows, or, for tiles of many terms, columns,
        as those have fewer bodies at the border.
        """
        down, across = self.terms[self.row.term], self.terms[self.column.term]
        room = max(1, most * min(self.machine.registers, SUM_REGISTERS) // SUM_REGISTERS)
        tiles = [
            (Cut(down, h), Cut(across, w))
            for h in sizes(down, 1, room)
            for w in sizes(across, 1, 1 if self._streamed else room)
            if h * w <= room and (h == 1 or not self._streamed or self._rows(h) <= STREAMS)
        ]
        return min(tiles, key=lambda t: (self._cost(*t), -t[most > SUM_TERMS].size))

    def _cost(self, high: Cut, wide: Cut) -> float:
        terms = high.size * wide.size
        return (self._read(high, wide) + terms + 2 * self.kept) / terms * high.waste * wide.waste

    def _read(self, high: Cut, wide: Cut) -> int:
        """How many places of the map a tile reads."""
        return self._rows(high.size) * self.column.places(self._extent(self.column.result), wide.size)

    def _rows(self, high: int) -> int:
        """How many rows of the map a tile reads."""
        return self.row.places(self._extent(self.row.result), high)

    @cached_property
    def _streamed(self) -> bool:
        """Whether what is read comes from memory, and had better be read as it lies: one column after the other."""
        return Memory(self.machine).is_far(read_bytes(self.nest))

    @property
    def _arithmetic(self) -> float:
        """The seconds that the sums take."""
        vectors = self.kept * self._width / self.machine.vector_bytes
        return prod(self.terms.values()) * vectors / self.machine.fma_per_second

    @cached_property
    def _width(self) -> int:
        """The bytes of one sum for all lanes."""
        return self._extent(self.vector) * self.nest.allocations[0].dtype.bytes

    def _extent(self, loop: str) -> int:
        return Roles.of(self.nest).extents[loop]
