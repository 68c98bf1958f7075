"""Search for a faster schedule by measuring, within a time limit.

The first candidates are results of the automatic scheduler with one decision changed: another plan (as `opgen inspect
--stage why` shows them), another tile or order of loops, no copy.  If that helps, a second decision is changed, too.
Then come variations of the best schedules so far, one step at a time, in an order that a seed decides.  A schedule
written by hand is tried first.  Each candidate is checked by its primitives and the verifier, built, compared with the
results of the default schedule, and timed in turn with it.
"""

from __future__ import annotations

import heapq
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

import numpy as np

from opgen.compiler.sharing import is_for_one
from opgen.diagnostics import OpgenError
from opgen.loop.nodes import Kernel
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.kernel import BoundKernel, compile_kernel
from opgen.runtime.kernels.run import buffer_shape
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import AnyArray, empty_aligned, poison
from opgen.schedule.auto.decisions import Decisions
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import Schedule, apply
from opgen.schedule.variations import copies, variations

if TYPE_CHECKING:
    from ctypes import c_int64

    from opgen.codegen.llvm.target import Target
    from opgen.machine import Machine

LARGEST = 2000
"""Largest number of stores of an unrolled candidate: more take seconds to build."""
STRETCH = 0.002
"""Shortest timing in seconds."""
GAIN = 0.97
"""A candidate is better if it takes this fraction of the time."""
CONFIRMED = 15
"""Number of final timings of the best candidate, in turn with the default, before it is accepted."""
STEADY = 1.5
"""Ratio of longer timings of a schedule to the shortest one that an idle machine does not exceed."""
EXACT = 16
"""Tolerance of a candidate, in units of the last place of the largest result."""


@dataclass(frozen=True)
class Found:
    """The outcome of a search; times are seconds of one run.

    `schedule` is the default one if none was better, `given` the time of the schedule passed to the search.  `slow` is
    an upper bound of most timings of the default.
    """

    schedule: Schedule
    default: float
    best: float
    tried: int
    given: float | None = None
    slow: float = 0.0

    @property
    def steady(self) -> bool:
        """False if timings of the same schedule were far apart, as on a machine that others use."""
        return self.slow <= STEADY * self.default

    @property
    def better(self) -> bool:
        return self.best < self.default * GAIN


class Runner:
    """Runner of schedules of one kernel on the same arrays, by as many threads as calls will use."""

    def __init__(self, kernel: Kernel, parameters: Sequence[SupportsIndex | float], target: Target, seed: int) -> None:
        self._parameters, self._target = parameters, target
        self._alone = is_for_one(kernel, target.machine)
        source = np.random.default_rng(seed)
        self._inputs = [_fill(source, empty_aligned(buffer_shape(b, {}), b.dtype)) for b in kernel.inputs]
        self._outputs = [empty_aligned(buffer_shape(b, {}), b.dtype) for b in kernel.outputs]
        self._addresses: list[c_int64 | int] = [address(a) for a in (*self._inputs, *self._outputs)]

    def build(self, kernel: Kernel) -> Candidate:
        """Return a scheduled kernel, ready to be timed."""
        compiled = compile_kernel(legalize(kernel), self._target, self._alone)
        return Candidate(compiled.bind(self._parameters), self._addresses)

    def try_to_build(self, kernel: Kernel) -> Candidate | None:
        """Return a scheduled kernel, or None if it cannot be built."""
        try:
            return self.build(kernel)
        except OpgenError:
            return None

    def results(self, candidate: Candidate) -> list[AnyArray]:
        """Return the results that a candidate computes."""
        for output in self._outputs:
            poison(output)
        candidate.run()
        return [output.copy() for output in self._outputs]


class Candidate:
    """A kernel on its arrays."""

    def __init__(self, bound: BoundKernel, addresses: list[c_int64 | int]) -> None:
        self._bound, self._addresses = bound, addresses
        self._runs = 1
        self.timings: list[float] = []

    def run(self) -> None:
        self._bound([*self._addresses])

    def seconds(self) -> float:
        """Return the time of one run, averaged over enough runs for a stretch."""
        while True:
            begin = time.perf_counter()
            for _ in range(self._runs):
                self.run()
            taken = time.perf_counter() - begin
            if taken >= STRETCH or self._runs > 1 << 20:
                self.timings.append(taken / self._runs)
                return self.timings[-1]
            self._runs *= 2


Told: TypeAlias = "Callable[[int, float, float], None]"
"""A function of the number of timed candidates, the default schedule's seconds, and the best candidate's fraction."""


def tune(
    kernel: Kernel,
    parameters: Sequence[SupportsIndex | float],
    target: Target,
    seconds: float,
    seed: int = 0,
    given: Schedule | None = None,
    told: Told | None = None,
) -> Found:
    """Return the best schedule found for a (simplified) kernel of known sizes within a time limit.

    A `given` schedule is timed in any case.  Raises ScheduleError if it is not legal for the kernel, and any error of
    its build.  `told` is called after each candidate.
    """
    until = time.perf_counter() + seconds
    runner = Runner(kernel, parameters, target, seed)
    own = decided(kernel, target.machine, Decisions(thorough=True))
    default = runner.build(own.kernel)
    right = runner.results(default)
    best, fastest, ratio, tried = own.schedule, default, 1.0, 0
    search = _Search(kernel, target.machine, own, seed)
    by_hand = [] if given is None else [Proposal(given, apply(kernel, given))]
    hand = None
    for proposal in chain(by_hand, iter(lambda: search.next(until), None)):
        candidate = (runner.build if proposal.schedule is given else runner.try_to_build)(proposal.kernel)
        if candidate is None or not _alike(runner.results(candidate), right):
            continue
        tried += 1
        found = _ratio(candidate, default, 3)
        search.keep(proposal, found)
        if proposal.schedule is given:
            hand = found
        if found < ratio * GAIN and (found := _ratio(candidate, default, 7)) < ratio * GAIN:
            best, fastest, ratio = proposal.schedule, candidate, found
            search.around()
        if told is not None:
            told(tried, min(default.timings), ratio)
    if fastest is not default and (ratio := _ratio(fastest, default, CONFIRMED)) >= GAIN:
        best, ratio = own.schedule, 1.0  # the best of many candidates may just be lucky
    for _ in range(5):
        default.seconds()
    usual, slow = min(default.timings), statistics.quantiles(default.timings, n=10)[-1]
    return Found(best, usual, usual * ratio, tried, None if hand is None else usual * hand, slow)


def _ratio(candidate: Candidate, default: Candidate, rounds: int) -> float:
    """Return the ratio of the candidate's time to the default's: the median of timings in turn."""
    return statistics.median(candidate.seconds() / default.seconds() for _ in range(rounds))


@dataclass(frozen=True)
class Proposal:
    """A schedule, and the kernel after it; `decisions` are the scheduler's, if it found the schedule."""

    schedule: Schedule
    kernel: Kernel
    decisions: Decisions | None = None


def decided(kernel: Kernel, machine: Machine, decisions: Decisions) -> Proposal:
    """Return the scheduler's result with these decisions."""
    return Proposal(*scheduled(kernel, "cpu", machine, decisions), decisions)


class _Search:
    """Legal schedules, each once: those near the best of all kept ones come first."""

    def __init__(self, kernel: Kernel, machine: Machine, first: Proposal, seed: int) -> None:
        self._kernel, self._machine = kernel, machine
        self._random = random.Random(seed)
        self._seen: set[str] = set()
        self._order = count()
        self._left: Iterator[Proposal | None] = iter(())
        self._kept: list[tuple[float, int, Proposal]] = []
        self.keep(first, 1.0)

    def keep(self, proposal: Proposal, ratio: float) -> None:
        """Remember a schedule and its time, as one to vary later."""
        self._seen.add(str(proposal.schedule))
        heapq.heappush(self._kept, (ratio, next(self._order), proposal))

    def around(self) -> None:
        """Stop varying the current schedule, so that a better one comes next."""
        self._left = iter(())

    def next(self, until: float) -> Proposal | None:
        """Return the next schedule that can be built in time; None after the last one, or after `until`."""
        while time.perf_counter() < until:
            for proposal in self._left:
                if proposal is not None and copies(proposal.kernel.body) <= LARGEST:
                    return proposal
                break
            else:
                if not self._kept:
                    return None
                self._left = self._near(heapq.heappop(self._kept)[2])
        return None

    def _near(self, proposal: Proposal) -> Iterator[Proposal | None]:
        """Yield new schedules: one more decision changed, then one step changed; None for a failed attempt."""
        for path in () if proposal.decisions is None else proposal.decisions.others():
            other = decided(self._kernel, self._machine, Decisions(path, thorough=True))
            yield other if self._new(other.schedule) else None
        near = list(variations(proposal.schedule))
        self._random.shuffle(near)
        for schedule in filter(self._new, near):
            try:
                after = apply(self._kernel, schedule)
            except OpgenError:
                yield None
                continue
            yield Proposal(schedule, after)

    def _new(self, schedule: Schedule) -> bool:
        text = str(schedule)
        new = text not in self._seen
        self._seen.add(text)
        return new


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
    """Return a unit in the last place of 1."""
    return {2: 2.0**-7, 4: 2.0**-23, 8: 2.0**-52}[a.dtype.itemsize]


def _fill(source: np.random.Generator, target: AnyArray) -> AnyArray:
    """Return the array, filled with numbers of ordinary size."""
    shape = target.shape
    if target.dtype.kind == "b":
        target[...] = source.integers(0, 2, shape)
    elif target.dtype.kind in "iu":
        target[...] = source.integers(-8, 9, shape)
    else:
        target[...] = source.standard_normal(shape)
    return target
