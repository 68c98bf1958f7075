"""Measuring the machine: the rates at which one core multiplies and adds, and reads from each level of its memory.

A measurement takes well under a second.  Each figure is the best of several turns: the machine's capability, not its
speed while others use it.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from opgen.compiler import machines, toolchain
from opgen.machine.fields import Number, flatten, is_rate
from opgen.machine.model import Machine
from opgen.machine.system import read_system
from opgen.runtime.measuring import probes
from opgen.runtime.native.library import load_library

if TYPE_CHECKING:
    from pathlib import Path

    from opgen.runtime.native.library import Library

CHAINS = 12
"""Independent sums: more than latency times units on current CPUs, fewer than their vector registers."""
TURNS = 25
TURN_SECONDS = 0.001
"""Seconds of a turn: short, so that on a busy machine some turns are not interrupted."""
GAIN = 1.2
"""Minimum speed-up of a dot product of pairs over two multiply-adds: copies in pairs cost something."""
PIECES, PASSES = 16, 3
LARGEST = 256 << 20
"""Size in bytes of the largest array that is read to measure memory."""

FmaLoop = Callable[[int], object]
"""A function of a number of rounds, each CHAINS (or as many as there are) multiply-adds of vectors."""


class Array:
    """Page-aligned memory that has been written to: pages never written would all map to the same one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._memory = mmap.mmap(-1, size)
        self._held = ctypes.c_char.from_buffer(self._memory)
        self.address = ctypes.addressof(self._held)
        ctypes.memset(self.address, 0, size)


ReadLoop = Callable[[int, int, int], object]
"""A function of an address, a size in bytes and the number of times to read that memory."""


def measure_and_keep() -> tuple[dict[str, Number], Path | None]:
    """Measure this machine's rates and keep them; this process uses them from now on, too."""
    host = toolchain.host()
    values = measure(host.machine)
    if host.has_pairs:
        values["pairs"] = pairs_pay(host.vector_bits // 32)
    path = machines.keep(host, values)
    toolchain.host.cache_clear()
    return values, path


def observed() -> dict[str, tuple[float, float]]:
    """Return each rate of this machine that schedules assume: the assumed one, and the true one.

    It is measured once a machine, and kept apart from the schedules' rates, which do not change.
    """
    host = toolchain.host()
    described = machines.describe(host)
    rates = [name for name in machines.MEASURED if is_rate(name) and described.sources.get(name) == "assumed"]
    if not rates:
        return {}
    found = machines.measured(host, read_system(), OBSERVED)
    if not found:
        found = measure(host.machine)
        machines.keep(host, found, OBSERVED)
    assumed = flatten(host.machine)
    return {name: (float(assumed[name]), float(found[name])) for name in rates if name in found}


OBSERVED = "observed"
"""The kind of file with measurements that are only shown."""


def measure(machine: Machine) -> dict[str, Number]:
    """Return the rates of one core (`machines.MEASURED`), of a machine whose vectors and cache sizes are known."""
    lanes = machine.vector_bytes // 4
    rate, slowest = _fma_rate(lanes, CHAINS), _fma_rate(lanes, 1)
    read = read_loop(machine.vector_bytes)
    sizes = {
        "l1.bytes_per_second": machine.l1.size // 2,
        "l2.bytes_per_second": machine.l2.size // 2,
        "l3.bytes_per_second": max(machine.l3.size // 8, 2 * machine.l2.size),
    }
    reads = {name: _read_rate(read, size) for name, size in sizes.items()}
    reads["memory_bytes_per_second"] = _memory_rate(read, min(2 * machine.l3.size, LARGEST))
    return {"fma_per_second": _rounded(rate), "latency": max(1, round(rate / slowest)), **reads}


def pairs_pay(lanes: int) -> bool:
    """Return True if a dot product of bfloat16 pairs is clearly faster than the two multiply-adds that it replaces."""
    name = "probe_pairs"
    rounds, seconds = _best(_chains(probes.pair_loop(name, lanes, CHAINS), name))
    return GAIN * seconds < 2 * rounds * CHAINS / _fma_rate(lanes, CHAINS)


def fma_loop(lanes: int, chains: int = CHAINS) -> FmaLoop:
    """Return the loop of that many independent chains."""
    name = f"probe_fma_{chains}"
    return _chains(probes.fma_loop(name, lanes, chains), name)


def _chains(ir: str, name: str) -> FmaLoop:
    """Return a loop of independent chains, loaded."""
    library = load_library(_code(ir), name)
    function = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(library.address(name))

    def run(rounds: int, _keep: Library = library) -> object:
        return function(rounds)

    return run


def read_loop(vector_bytes: int) -> ReadLoop:
    """Return the loop that reads consecutive vectors; it omits a rest of fewer than STREAMS of them."""
    library = load_library(_code(probes.read_loop("probe_read", vector_bytes // 4)), "probe_read")
    signature = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function = signature(library.address("probe_read"))
    step = probes.STREAMS * vector_bytes

    def run(address: int, size: int, rounds: int, _keep: Library = library) -> object:
        return function(address, size // step * probes.STREAMS, rounds)

    return run


def _fma_rate(lanes: int, chains: int) -> float:
    """Return vector multiply-adds a second on one core."""
    rounds, seconds = _best(fma_loop(lanes, chains))
    return rounds * chains / seconds


def _read_rate(read: ReadLoop, size: int) -> float:
    array = Array(size)
    rounds, seconds = _best(lambda n: read(array.address, size, n))
    return _rounded(rounds * size / seconds)


def _memory_rate(read: ReadLoop, size: int) -> float:
    """Return the rate of an array beyond the caches, read by pieces: the median, as a cache may still hold some."""
    array = Array(size)
    piece = size // PIECES
    starts = [array.address + i * piece for i in range(PIECES)] * PASSES
    return _rounded(piece / statistics.median(_least(functools.partial(read, at, piece), 1, 1) for at in starts))


def _best(work: Callable[[int], object]) -> tuple[int, float]:
    """Return a number of rounds that takes a turn's time, and the least time that they took."""
    rounds, seconds = 1, _least(work, 1, 3)
    while seconds < TURN_SECONDS:
        rounds *= 4 if seconds < TURN_SECONDS / 4 else 2
        seconds = _least(work, rounds, 3)
    return rounds, min(seconds, _least(work, rounds, TURNS))


def _least(work: Callable[[int], object], rounds: int, turns: int) -> float:
    """Return the least seconds of `turns` turns of `rounds` rounds."""
    times = []
    for _ in range(turns):
        begin = time.perf_counter()
        work(rounds)
        times.append(time.perf_counter() - begin)
    return min(times)


def _rounded(rate: float) -> float:
    """Round to three digits: the rest is noise."""
    return float(f"{rate:.3g}")


def _code(ir: str) -> bytes:
    return toolchain.object_code(ir, toolchain.host())
