"""The machine's limits, measured with opgen's own loops: multiply-adds and reads a second.

Its best is measured by itself, the least time of several turns.  Its rates while a case was measured are measured in
that case's turns (`pace`): where others use the machine the two differ.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from opgen.compiler import toolchain
from opgen.machine import Machine
from opgen.runtime.measuring import rates as own
from tools.bench.layers import Case

VARIANTS = ("multiply-adds", "last cache")
"""Of the worker that does `Loops.multiply` and `Loops.read`."""
ROUNDS = 400_000
"""Of the multiply-add loop: about a millisecond."""
TURNS = 9


@dataclass(frozen=True)
class Limits:
    """The highest rates of this many threads.

    `flops` are float32 operations a second; `bytes` a second are read from the last level of cache, which holds `cache`
    bytes, and `memory` a second from memory.
    """

    threads: int
    flops: float
    bytes: float
    cache: int = 0
    memory: float = 0.0

    def seconds(self, case: Case) -> float:
        """Return the least time of a case: its multiply-adds, or, if depthwise, its bytes through the last cache.

        float64 has half as many lanes.  bfloat16 and half are compared with the float32 rate.
        """
        computing = case.flops / self.flops * (2 if case.dtype == "float64" else 1)
        return computing if case.kind == "dense" else max(computing, case.bytes / self.bytes)

    def seconds_in_memory(self, case: Case) -> float | None:
        """Return the least time of a depthwise case whose tensors the last cache cannot hold from call to call."""
        if case.kind == "dense" or not 0 < self.cache < case.bytes:
            return None
        return max(self.seconds(case), case.bytes / self.memory)


def measure(threads: int) -> Limits:
    """Return the limits of that many threads together."""
    loops, machine = Loops(threads), toolchain.host().machine
    at_best = pace(threads, {VARIANTS[0]: _least(loops.multiply), VARIANTS[1]: _least(loops.read)})
    size = min(2 * machine.l3.size, own.LARGEST)
    far = threads * size / _least(Loops(threads, size).read)
    return Limits(threads, at_best.flops, at_best.bytes, machine.l3.size, far)


def pace(threads: int, seconds: dict[str, float]) -> Limits:
    """Return the rates of threads that took `seconds` for each of the `VARIANTS`."""
    machine = toolchain.host().machine
    lanes = machine.vector_bytes // 4
    multiply, read = (seconds[name] for name in VARIANTS)
    flops = threads * ROUNDS * own.CHAINS * lanes * 2
    return Limits(threads, flops / multiply, threads * _near(machine) / read)


def _near(machine: Machine) -> int:
    """Return the size of an array that fits in the last level of cache and not in the one before."""
    return max(machine.l3.size // 8, 2 * machine.l2.size)


class Loops:
    """The loops on that many threads at once; each has an array of its own, of `size` bytes."""

    def __init__(self, threads: int, size: int | None = None) -> None:
        machine = toolchain.host().machine
        self._threads = threads
        self._multiply = own.fma_loop(machine.vector_bytes // 4)
        self._read = own.read_loop(machine.vector_bytes)
        self._size = size or _near(machine)
        self._arrays = [own.Array(self._size) for _ in range(threads)]

    def multiply(self) -> float:
        """ROUNDS of multiply-adds on each thread; the seconds that they took."""
        return self._together(lambda _: self._multiply(ROUNDS))

    def read(self) -> float:
        """Let each thread read its array once; return the seconds that they took."""
        return self._together(lambda number: self._read(self._arrays[number].address, self._size, 1))

    def _together(self, work: Callable[[int], object]) -> float:
        """Return the seconds in which all threads, started at once, do their work (which releases Python's lock)."""
        gate = threading.Barrier(self._threads)
        spans: list[tuple[float, float]] = []

        def turn(number: int) -> None:
            gate.wait()
            begin = time.perf_counter()
            work(number)
            spans.append((begin, time.perf_counter()))

        others = [threading.Thread(target=turn, args=(i,)) for i in range(1, self._threads)]
        for other in others:
            other.start()
        turn(0)
        for other in others:
            other.join()
        return max(end for _, end in spans) - min(begin for begin, _ in spans)


def _least(run: Callable[[], float]) -> float:
    return min(run() for _ in range(TURNS))  # a limit is what the machine can do, not what it usually does
