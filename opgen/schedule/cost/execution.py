"""What a core computes in a second."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.machine import Machine
from opgen.schedule.cost.calibration import STEPS


@dataclass(frozen=True)
class Execution:
    """The rates of one core of a machine, in vectors: `units` multiply-adds begin in a cycle."""

    machine: Machine

    @property
    def units(self) -> int:
        """How many units multiply and add: as many as `latency` multiply-adds under way are for."""
        return max(1, self.machine.latency // STEPS)

    @property
    def multiply_adds(self) -> float:
        """Vectors of float32 multiplied and added in a second."""
        return self.machine.fma_per_second

    @property
    def loads(self) -> float:
        """Vectors loaded from the first cache in a second."""
        return self.machine.l1.bytes_per_second / self.machine.vector_bytes

    @property
    def hides_loads(self) -> bool:
        """Whether arithmetic hides vectors that a tile loads from the second cache: one unit multiplies and adds, so
        that a multiply-add takes as long as a load; of two, loads bound the tile.
        """
        return self.units == 1

    def seconds(self, multiply_adds: float, lanes: int = 1) -> float:
        """The time of so many multiply-adds of elements, in vectors of so many lanes."""
        return multiply_adds / lanes / self.multiply_adds
