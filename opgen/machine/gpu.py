"""Numbers of a CUDA device, for its limits."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.machine.model import KIB, MIB


@dataclass(frozen=True)
class Gpu:
    """A CUDA device: float32 multiply-adds, and bytes that come from the second cache and from memory, a second; the
    bytes that the first cache of a multiprocessor and the second cache hold.
    """

    name: str
    fma_per_second: float
    l1: int
    l2: int
    l2_bytes_per_second: float
    memory_bytes_per_second: float


ASSUMED = Gpu("an A100 with 40 GiB, by its data sheet", 9.75e12, 192 * KIB, 40 * MIB, 5e12, 1.555e12)
"""The device that is assumed of compute capability 8.0, for which CUDA C is emitted where there is no device."""
