"""Arithmetic throughput of a core."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.machine import Machine
from opgen.schedule.cost.calibration import STEPS


@dataclass(frozen=True)
class Execution:
    """Rates of one core of a machine, in vectors: `units` multiply-adds begin in a cycle."""

    machine: Machine

    @property
    def units(self) -> int:
        """Return the number of units that multiply and add: enough to keep `latency` multiply-adds in flight."""
        return max(1, self.machine.latency // STEPS)

    @property
    def multiply_adds(self) -> float:
        """Return the vectors of float32 that are multiplied and added in a second."""
        return self.machine.fma_per_second

    @property
    def loads(self) -> float:
        """Return the vectors that are loaded from the first cache in a second."""
        return self.machine.l1.bytes_per_second / self.machine.vector_bytes

    @property
    def hides_loads(self) -> bool:
        """Return True if arithmetic hides the vectors that a tile loads from the second cache.

        With one unit a multiply-add takes as long as a load.  With two units, loads bound the tile.
        """
        return self.units == 1

    def seconds(self, multiply_adds: float, lanes: int = 1) -> float:
        """Return the time of `multiply_adds` multiply-adds of elements, in vectors of `lanes` lanes."""
        return multiply_adds / lanes / self.multiply_adds
