"""Finding a faster schedule by measuring, within a time.

Candidates are what the automatic scheduler makes of machines like this one (fewer registers, smaller caches, narrower
vectors), then variations of the best schedules so far, one step at a time, in an order that a seed decides.  Each is
checked by its primitives and the verifier, built, compared with the results of the default schedule, and timed in turn
with it.
"""

from __future__ import annotations

import heapq
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from opgen.diagnostics import OpgenError
from opgen.loop.nodes import Kernel
from opgen.passes.legalize import legalize
from opgen.runtime.address import address
from opgen.runtime.buffers import AnyArray, empty_aligned, poison
from opgen.runtime.kernel import BoundKernel, compile_kernel
from opgen.runtime.run import buffer_shape
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import Schedule, apply
from opgen.schedule.variations import copies, variations

if TYPE_CHECKING:
    from ctypes import c_int64

    from opgen.codegen.llvm.target import Target
    from opgen.machine import Machine

LARGEST = 2000
"""Most stores of an unrolled candidate: more take seconds to build."""
STRETCH = 0.002
"""Seconds that one timing takes at least."""
GAIN = 0.97
"""A candidate is better if it takes this part of the time."""
EXACT = 16
"""How many units of the last place of the largest result a candidate may differ by."""


@dataclass(frozen=True)
class Found:
    """The outcome of a search: times are seconds of one run; `schedule` is the default one if none was better."""

    schedule: Schedule
    default: float
    best: float
    tried: int

    @property
    def better(self) -> bool:
        return self.best < self.default * GAIN


class Runner:
    """Runs schedules of one kernel on the same arrays."""

    def __init__(self, kernel: Kernel, parameters: Sequence[SupportsIndex | float], target: Target, seed: int) -> None:
        self._parameters, self._target = parameters, target
        source = np.random.default_rng(seed)
        self._inputs = [_fill(source, empty_aligned(buffer_shape(b, {}), b.dtype)) for b in kernel.inputs]
        self._outputs = [empty_aligned(buffer_shape(b, {}), b.dtype) for b in kernel.outputs]
        self._addresses: list[c_int64 | int] = [address(a) for a in (*self._inputs, *self._outputs)]

    def build(self, kernel: Kernel) -> Candidate:
        """A scheduled kernel, ready to be timed."""
        compiled = compile_kernel(legalize(kernel), self._target)
        return Candidate(compiled.bind(self._parameters), self._addresses)

    def results(self, candidate: Candidate) -> list[AnyArray]:
        """What a candidate computes."""
        for output in self._outputs:
            poison(output)
        candidate.run()
        return [output.copy() for output in self._outputs]


class Candidate:
    """A kernel on its arrays."""

    def __init__(self, bound: BoundKernel, addresses: list[c_int64 | int]) -> None:
        self._bound, self._addresses = bound, addresses
        self._runs = 1

    def run(self) -> None:
        self._bound([*self._addresses])

    def seconds(self) -> float:
        """The time of one run, over as many as make a stretch."""
        while True:
            begin = time.perf_counter()
            for _ in range(self._runs):
                self.run()
            taken = time.perf_counter() - begin
            if taken >= STRETCH or self._runs > 1 << 20:
                return taken / self._runs
            self._runs *= 2


def tune(
    kernel: Kernel, parameters: Sequence[SupportsIndex | float], target: Target, seconds: float, seed: int = 0
) -> Found:
    """The best schedule that is found for a (simplified) kernel of known sizes within a time."""
    until = time.perf_counter() + seconds
    runner = Runner(kernel, parameters, target, seed)
    schedule, fast = scheduled(kernel, "cpu", target.machine)
    default = runner.build(fast)
    right = runner.results(default)
    best, ratio, tried = schedule, 1.0, 0
    search = _Search(kernel, target.machine, schedule, seed)
    while (proposal := search.next(until)) is not None:
        candidate = _built(runner, proposal[1])
        if candidate is None or not _alike(runner.results(candidate), right):
            continue
        tried += 1
        found = _ratio(candidate, default, 3)
        search.keep(proposal[0], found)
        if found < ratio * GAIN and (found := _ratio(candidate, default, 7)) < ratio * GAIN:
            best, ratio = proposal[0], found
            search.around()
    usual = min(default.seconds() for _ in range(5))
    return Found(best, usual, usual * ratio, tried)


def _built(runner: Runner, kernel: Kernel) -> Candidate | None:
    try:
        return runner.build(kernel)
    except OpgenError:
        return None


def _ratio(candidate: Candidate, default: Candidate, rounds: int) -> float:
    """The candidate's time to the default's: the median of timings in turn."""
    return statistics.median(candidate.seconds() / default.seconds() for _ in range(rounds))


class _Search:
    """Legal schedules, each once: those near the best of all that have been kept come first."""

    def __init__(self, kernel: Kernel, machine: Machine, schedule: Schedule, seed: int) -> None:
        self._kernel = kernel
        self._random = random.Random(seed)
        self._seen = {str(schedule)}
        self._left: Iterator[Schedule] = (scheduled(kernel, "cpu", m)[0] for m in _machines(machine))
        self._kept: list[tuple[float, int, Schedule]] = []
        self.keep(schedule, 1.0)

    def keep(self, schedule: Schedule, ratio: float) -> None:
        """Remember a schedule and how long it takes, as one to vary later."""
        heapq.heappush(self._kept, (ratio, len(self._seen), schedule))

    def around(self) -> None:
        """Leave what is being varied for what is better."""
        self._left = iter(())

    def next(self, until: float) -> tuple[Schedule, Kernel] | None:
        """The next schedule, and the kernel after it; None if there are no more, or it is later than `until`."""
        while time.perf_counter() < until:
            schedule = next(self._left, None)
            if schedule is None:
                if not self._kept:
                    return None
                near = list(variations(heapq.heappop(self._kept)[2]))
                self._random.shuffle(near)
                self._left = iter(near)
                continue
            if str(schedule) in self._seen:
                continue
            self._seen.add(str(schedule))
            try:
                kernel = apply(self._kernel, schedule)
            except OpgenError:
                continue
            if copies(kernel.body) <= LARGEST:
                return schedule, kernel
        return None


def _machines(machine: Machine) -> Iterator[Machine]:
    """Machines like one, for which the scheduler may decide otherwise."""
    yield replace(machine, registers=max(8, machine.registers // 2))
    yield replace(machine, registers=machine.registers * 2)
    yield replace(machine, vector_bytes=max(16, machine.vector_bytes // 2))
    yield replace(machine, latency=machine.latency * 2)
    yield replace(machine, latency=max(1, machine.latency // 2))
    for scale in (4, 2):
        smaller = replace(machine.l1, size=machine.l1.size // scale)
        yield replace(machine, l1=smaller)
        yield replace(machine, l1=smaller, l2=replace(machine.l2, size=machine.l2.size // scale))


def _alike(found: Sequence[AnyArray], right: Sequence[AnyArray]) -> bool:
    return all(_close(a, b) for a, b in zip(found, right, strict=True))


def _close(found: AnyArray, right: AnyArray) -> bool:
    if found.tobytes() == right.tobytes():
        return True
    if found.dtype.kind in "iub":
        return False
    a, b = found.astype(np.float64), right.astype(np.float64)
    largest = float(np.max(np.abs(b), initial=0.0))
    allowed = EXACT * _unit(found) * largest
    return bool(np.all(np.abs(a - b) <= allowed))


def _unit(a: AnyArray) -> float:
    """A unit in the last place of 1."""
    return {2: 2.0**-7, 4: 2.0**-23, 8: 2.0**-52}[a.dtype.itemsize]


def _fill(source: np.random.Generator, target: AnyArray) -> AnyArray:
    """The array, filled with numbers of ordinary size."""
    shape = target.shape
    if target.dtype.kind == "b":
        target[...] = source.integers(0, 2, shape)
    elif target.dtype.kind in "iu":
        target[...] = source.integers(-8, 9, shape)
    else:
        target[...] = source.standard_normal(shape)
    return target
