"""Measuring the machine: how fast one core multiplies and adds, and reads from each level of its memory.

Takes well under a second.  Each figure is the best of several turns: what the machine can do, not what it does while
others use it.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from opgen.machine.fields import Number
from opgen.machine.model import Machine
from opgen.runtime import machines, probes, toolchain
from opgen.runtime.library import load_library

if TYPE_CHECKING:
    from pathlib import Path

    from opgen.runtime.library import Library

CHAINS = 12
"""Independent sums: more than latency times units on current CPUs, fewer than their vector registers."""
TURNS = 7
TURN_SECONDS = 0.004
LARGEST = 256 << 20
"""The most memory that is read to measure memory, in bytes."""

FmaLoop = Callable[[int], object]
"""Called with a number of rounds, each CHAINS (or as many as there are) multiply-adds of vectors."""


class Array:
    """Memory of its own, page-aligned, written to (pages that never were are all the same one)."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._memory = mmap.mmap(-1, size)
        self._held = ctypes.c_char.from_buffer(self._memory)
        self.address = ctypes.addressof(self._held)
        ctypes.memset(self.address, 0, size)


ReadLoop = Callable[[Array, int], object]
"""Called with an array and how many times to read it whole."""


def measure_and_keep() -> tuple[dict[str, Number], Path | None]:
    """Measure this machine's rates and keep them; from now on this process goes by them too."""
    values = measure(toolchain.host().machine)
    path = machines.keep(toolchain.host(), values)
    toolchain.host.cache_clear()
    return values, path


def measure(machine: Machine) -> dict[str, Number]:
    """The rates of one core (`machines.MEASURED`), of a machine whose vectors and cache sizes are known."""
    lanes = machine.vector_bytes // 4
    rate, slowest = _fma_rate(lanes, CHAINS), _fma_rate(lanes, 1)
    read = read_loop(machine.vector_bytes)
    sizes = {
        "l1.bytes_per_second": machine.l1.size // 2,
        "l2.bytes_per_second": machine.l2.size // 2,
        "l3.bytes_per_second": max(machine.l3.size // 8, 2 * machine.l2.size),
        "memory_bytes_per_second": min(2 * machine.l3.size, LARGEST),
    }
    reads = {name: _read_rate(read, size) for name, size in sizes.items()}
    return {"fma_per_second": _rounded(rate), "latency": max(1, round(rate / slowest)), **reads}


def fma_loop(lanes: int, chains: int = CHAINS) -> FmaLoop:
    """The loop of that many independent chains."""
    name = f"probe_fma_{chains}"
    library = load_library(_code(probes.fma_loop(name, lanes, chains)), name)
    function = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(library.address(name))

    def run(rounds: int, _keep: Library = library) -> object:
        return function(rounds)

    return run


def read_loop(vector_bytes: int) -> ReadLoop:
    """The loop that reads consecutive vectors; it leaves out the end of an array that is less than STREAMS of them."""
    library = load_library(_code(probes.read_loop("probe_read", vector_bytes // 4)), "probe_read")
    signature = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function = signature(library.address("probe_read"))
    step = probes.STREAMS * vector_bytes

    def run(array: Array, rounds: int, _keep: Library = library) -> object:
        return function(array.address, array.size // step * probes.STREAMS, rounds)

    return run


def _fma_rate(lanes: int, chains: int) -> float:
    """Vector multiply-adds a second on one core."""
    rounds, seconds = _best(fma_loop(lanes, chains))
    return rounds * chains / seconds


def _read_rate(read: ReadLoop, size: int) -> float:
    array = Array(size)
    rounds, seconds = _best(lambda n: read(array, n))
    return _rounded(rounds * size / seconds)


def _best(work: Callable[[int], object]) -> tuple[int, float]:
    """So many rounds that they take a turn's time, and the least time that they took."""
    rounds, seconds = 1, _time(work, 1)
    while seconds < TURN_SECONDS:
        rounds *= 4 if seconds < TURN_SECONDS / 4 else 2
        seconds = _time(work, rounds)
    return rounds, min(_time(work, rounds) for _ in range(TURNS))


def _time(work: Callable[[int], object], rounds: int) -> float:
    begin = time.perf_counter()
    work(rounds)
    return time.perf_counter() - begin


def _rounded(rate: float) -> float:
    """To three digits: the rest is noise."""
    return float(f"{rate:.3g}")


def _code(ir: str) -> bytes:
    return toolchain.object_code(ir, toolchain.host())
