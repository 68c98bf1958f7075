"""The machine's limits, measured here and now with opgen's own loops: multiply-adds and reads a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from opgen.machine import Machine
from opgen.runtime import measure as own
from opgen.runtime import toolchain
from tools.bench.layers import Case

ROUNDS = 400_000
"""Of the multiply-add loop: about a millisecond."""
TURNS = 9


@dataclass(frozen=True)
class Limits:
    """What this many threads can do at most.

    `flops` are float32 operations a second; `bytes` a second are read from the last level of cache, which holds `cache`
    bytes, and `memory` a second from memory.
    """

    threads: int
    flops: float
    bytes: float
    cache: int = 0
    memory: float = 0.0

    def seconds(self, case: Case) -> float:
        """The least time of a case: its multiply-adds, or its bytes through the last level of cache if it is depthwise.

        float64 has half as many lanes.  bfloat16 and half are held against the float32 rate.
        """
        computing = case.flops / self.flops * (2 if case.dtype == "float64" else 1)
        return computing if case.kind == "dense" else max(computing, case.bytes / self.bytes)

    def seconds_in_memory(self, case: Case) -> float | None:
        """The least time of a depthwise case whose tensors the last cache cannot hold from call to call."""
        if case.kind == "dense" or not 0 < self.cache < case.bytes:
            return None
        return max(self.seconds(case), case.bytes / self.memory)


def measure(threads: int) -> Limits:
    """The limits of that many threads together."""
    machine = toolchain.host().machine
    lanes = machine.vector_bytes // 4
    multiply = own.fma_loop(lanes)
    seconds = _together(threads, lambda _: multiply(ROUNDS))
    flops = threads * ROUNDS * own.CHAINS * lanes * 2 / seconds
    near = _read_rate(threads, machine, max(machine.l3.size // 8, 2 * machine.l2.size))
    far = _read_rate(threads, machine, min(2 * machine.l3.size, own.LARGEST))
    return Limits(threads, flops, near, machine.l3.size, far)


def _read_rate(threads: int, machine: Machine, size: int) -> float:
    """Bytes a second that threads with arrays of that size read."""
    arrays = [own.Array(size) for _ in range(threads)]
    read = own.read_loop(machine.vector_bytes)
    return threads * size / _together(threads, lambda i: read(arrays[i].address, size, 1))


def _together(threads: int, work: Callable[[int], object]) -> float:
    """The least time in which all threads, started at once, do their work (which releases Python's lock)."""
    times = []
    for _ in range(TURNS):
        gate = threading.Barrier(threads)
        spans: list[tuple[float, float]] = []

        def turn(number: int, gate: threading.Barrier = gate, spans: list[tuple[float, float]] = spans) -> None:
            gate.wait()
            begin = time.perf_counter()
            work(number)
            spans.append((begin, time.perf_counter()))

        others = [threading.Thread(target=turn, args=(i,)) for i in range(1, threads)]
        for other in others:
            other.start()
        turn(0)
        for other in others:
            other.join()
        times.append(max(end for _, end in spans) - min(begin for begin, _ in spans))
    return min(times)  # a limit is what the machine can do, not what it usually does
