"""Model of a CPU for schedules."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Cache:
    """One level of cache as one core sees it.

    `bytes_per_second` is the rate at which one core reads from it data that does not fit any nearer level.
    """

    size: int
    ways: int
    line: int
    bytes_per_second: float

    @property
    def sets(self) -> int:
        return max(1, self.size // (self.ways * self.line))

    def lines_at(self, stride: int) -> int:
        """Return the number of lines, `stride` bytes apart, that it holds at once: a power of two maps to few sets."""
        return self.sets // gcd(self.sets, max(1, stride // self.line)) * self.ways


@dataclass(frozen=True)
class Machine:
    """A CPU.

    `fma_per_second` counts vector fused multiply-adds of float32 on one core.  `latency` is their latency in units of 1
    / fma_per_second: that many must be in flight at once.  `memory_bytes_per_second` is the rate at which one core
    reads from memory.
    """

    vector_bytes: int
    registers: int
    fma_per_second: float
    latency: int
    l1: Cache
    l2: Cache
    l3: Cache
    memory_bytes_per_second: float
    cores: int
    pairs: bool = False
    """True if it has a dot product of bfloat16 pairs (AVX512_BF16) that takes less than two multiply-adds."""
    quads: bool = False
    """True if it has a dot product of four bytes, unsigned by signed ones (AVX512_VNNI, AVX_VNNI)."""
    tiles: bool = False
    """True if it has a matrix unit for tiles of bfloat16 pairs (AMX), and the system lets this process use it."""

    @property
    def flops(self) -> float:
        """Float32 peak of one core, in operations a second: a multiply-add is two."""
        return 2 * self.fma_per_second * (self.vector_bytes // 4)


def typical(vector_bytes: int = 64) -> Machine:
    """Return a server CPU of 2022 with vectors of that size: the assumption where no data can be read."""
    return Machine(
        vector_bytes=vector_bytes,
        registers=32 if vector_bytes in (16, 64) else 16,
        fma_per_second=3.7e9 * (1 if vector_bytes == 64 else 2),
        latency=4 if vector_bytes == 64 else 8,
        l1=Cache(32 * KIB, 8, 64, 220e9),
        l2=Cache(1 * MIB, 8, 64, 118e9),
        l3=Cache(32 * MIB, 16, 64, 96e9),
        memory_bytes_per_second=26e9,
        cores=2,
    )
