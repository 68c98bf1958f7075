"""Numbers of a CUDA device, for its limits."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.machine.model import KIB, MIB


@dataclass(frozen=True)
class Gpu:
    """A CUDA device.

    `fma_per_second` counts float32 multiply-adds, and the two bandwidths are those of the L2 cache and of memory.  `l1`
    and `l2` are sizes in bytes: the L1 cache of one multiprocessor, and the L2 cache.
    """

    name: str
    fma_per_second: float
    l1: int
    l2: int
    l2_bytes_per_second: float
    memory_bytes_per_second: float


ASSUMED = Gpu("an A100 with 40 GiB, by its data sheet", 9.75e12, 192 * KIB, 40 * MIB, 5e12, 1.555e12)
"""The device assumed for compute capability 8.0, for which CUDA C is emitted where no device is present."""
