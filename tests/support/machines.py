"""Machines with small caches."""

from __future__ import annotations

from dataclasses import replace

from opgen.machine import Machine, typical
from opgen.machine.model import Cache

SMALL = Cache(1 << 14, 8, 64, 1e11)
MACHINES = {
    "512 bits": typical(64),
    "256 bits": typical(32),
    "small caches": replace(typical(64), l1=replace(SMALL, size=1 << 12), l2=SMALL, cores=4),
}


def small_caches(size: int) -> Machine:
    """A machine of which everything beyond its tiny second cache is slow, so that small kernels are made in blocks."""
    usual = typical()
    l3 = replace(usual.l3, bytes_per_second=1e4)
    return replace(usual, l2=replace(usual.l2, size=size), l3=l3, memory_bytes_per_second=1e4)


def tiny_caches() -> Machine:
    """Caches so small that small arrays come from afar."""
    usual = typical()
    return replace(usual, l1=Cache(1 << 13, 8, 64, 220e9), l2=Cache(1 << 14, 8, 64, 118e9))
