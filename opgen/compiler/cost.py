"""Limits of a kernel: the least time that each resource of a machine takes for the kernel's work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opgen.loop.analysis.movement import ON_CHIP, Executed, Movement
from opgen.loop.nodes import Kernel
from opgen.machine import Machine
from opgen.machine.gpu import Gpu


@dataclass(frozen=True)
class Limit:
    """A resource, the amount of it that a kernel uses, and the amount available per second."""

    name: str
    amount: float
    unit: str
    rate: float

    @property
    def seconds(self) -> float:
        """The least time."""
        return self.amount / self.rate


def nearest(limits: Sequence[Limit]) -> Limit:
    """Return the limit that takes longest."""
    return max(limits, key=lambda limit: limit.seconds)


def on_cpu(kernel: Kernel, machine: Machine, threads: int) -> tuple[Limit, ...]:
    """Return the limits of a legal kernel whose sizes are numbers, run by threads that have a core each."""
    return of_work(Movement(kernel, machine.vector_bytes), machine, threads)


def of_work(movement: Movement, machine: Machine, threads: int) -> tuple[Limit, ...]:
    """Return the limits of a kernel by its work.  Each thread has a core and its caches; all threads share memory."""
    executed = movement.executed()
    lanes = machine.vector_bytes / max(4, movement.element_bytes)
    accesses = machine.l1.bytes_per_second / machine.vector_bytes
    l1, l2, l3 = machine.l1, machine.l2, machine.l3
    return (
        Limit("multiply-adds", issued(executed, machine), "multiply-adds", threads * machine.fma_per_second * lanes),
        Limit("arithmetic", executed.instructions, "vectors", threads * machine.fma_per_second),
        Limit("loads and stores", executed.accesses, "accesses", threads * accesses),
        Limit("past the first cache", movement.between(l1.size), "bytes", threads * l2.bytes_per_second),
        Limit("past the second cache", movement.between(l2.size), "bytes", threads * l3.bytes_per_second),
        Limit("past the last cache", movement.between(l3.size), "bytes", machine.memory_bytes_per_second),
    )


def issued(executed: Executed, machine: Machine) -> float:
    """Return the multiply-adds that take time: one of each dot-product pair, and none that a matrix unit runs."""
    single = executed.multiply_adds - (executed.paired / 2 if machine.pairs else 0)
    return single - (executed.tiled if machine.tiles else 0)


def on_gpu(kernel: Kernel, gpu: Gpu) -> tuple[Limit, ...]:
    """Return the limits of a legal kernel whose sizes are numbers, on a CUDA device."""
    movement = Movement(kernel, vector_bytes=1 << 20, near=ON_CHIP)
    executed = movement.executed()
    slower = max(4, movement.element_bytes) / 4
    return (
        Limit("multiply-adds", executed.multiply_adds, "multiply-adds", gpu.fma_per_second / slower),
        Limit("arithmetic", executed.instructions, "operations", gpu.fma_per_second / slower),
        Limit("past the first caches", movement.between(gpu.l1), "bytes", gpu.l2_bytes_per_second),
        Limit("past the last cache", movement.between(gpu.l2), "bytes", gpu.memory_bytes_per_second),
    )
