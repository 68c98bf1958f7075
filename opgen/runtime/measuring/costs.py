"""The time of a kernel: estimated, measured on random data, and limited by the machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from opgen.compiler import cost
from opgen.compiler.artifact import Artifact
from opgen.compiler.cost import Limit
from opgen.compiler.make import artifact
from opgen.compiler.request import Cuda
from opgen.diagnostics import OpgenError, UserError
from opgen.loop.analysis.movement import Executed, Movement
from opgen.machine import Machine
from opgen.machine.fields import flatten, unflatten
from opgen.machine.gpu import ASSUMED
from opgen.runtime import threads
from opgen.runtime.kernels.kernel import load
from opgen.runtime.kernels.run import buffer_shape
from opgen.runtime.measuring.random_inputs import drawn
from opgen.runtime.measuring.rates import observed
from opgen.runtime.measuring.tuner import Candidate
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import empty_aligned

LONGEST = 0.3
"""Seconds for which a kernel is run repeatedly."""
TURNS = 25


@dataclass(frozen=True)
class Cost:
    """The work of a kernel, and its times in seconds.

    `limits` are those of `threads` threads of the `machine`; rates of this machine are measured ones.  `estimate` is
    the scheduler's, for one core.  `measured` is the median of runs on random data, or None for the reason in
    `unmeasured`.  `with_first`: it includes the work that a program does once, which limits exclude.
    """

    limits: tuple[Limit, ...]
    executed: Executed
    tensor_bytes: int
    threads: int
    machine: str
    estimate: float | None
    measured: float | None
    unmeasured: str = ""
    with_first: bool = False

    @property
    def nearest(self) -> Limit:
        """The limit that takes longest."""
        return cost.nearest(self.limits)

    @property
    def share(self) -> float | None:
        """The fraction of the nearest limit that is reached; None without a measured time."""
        return None if not self.measured else self.nearest.seconds / self.measured

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def cost_of(made: Artifact) -> Cost:
    """Return the cost of the kernel of an artifact.  Raises UserError if it leaves sizes open."""
    if not made.loop.is_bound:
        raise UserError(f"{made.loop.name} is for all sizes, so its cost is not known: give the shapes of all inputs")
    size = sum(b.dtype.bytes * prod(buffer_shape(b, {})) for b in made.loop.buffers)
    target = made.request.target
    if isinstance(target, Cuda):
        movement, limits = Movement(made.legal), cost.on_gpu(made.legal, ASSUMED)
        reason = "a CUDA device's time is not measured here"
        return Cost(limits, movement.executed(), size, 0, f"assumed: {ASSUMED.name}", None, None, reason)
    count = 1 if made.alone else threads.get_num_threads()
    is_host = target.name == "host"
    machine = as_measured(target.machine) if is_host else target.machine
    movement = Movement(made.legal, machine.vector_bytes)
    limits = cost.of_work(movement, machine, count)
    name = "this machine" if is_host else target.name
    found = Cost(limits, movement.executed(), size, count, name, made.seconds, None)
    if not is_host:
        return replace(found, unmeasured=f"{target.name} may not be this machine")
    try:
        return replace(found, measured=median_seconds(made), with_first=made.first is not None)
    except OpgenError as error:
        return replace(found, unmeasured=f"on random data it fails: {error}")


def as_measured(machine: Machine) -> Machine:
    """Return this machine with its true rates instead of those that schedules assume."""
    rates = {name: true for name, (_, true) in observed().items()}
    return unflatten({**flatten(machine), **rates})


def median_seconds(made: Artifact) -> float:
    """Run the kernel of an artifact on random data, by as many threads as a call, and return the median time.

    A kernel of a program is run with all of its work, and without results in place.
    """
    plain = artifact(replace(made.request, constants=(), in_place=(), memory="malloc"))
    kernel = plain.loop
    inputs = drawn({b.name: (b.dtype, buffer_shape(b, {})) for b in kernel.inputs})
    arrays = [empty_aligned(buffer_shape(b, {}), b.dtype) for b in kernel.buffers]
    for array, given in zip(arrays, inputs.values(), strict=False):
        array[...] = given
    run = Candidate(load(plain).bind(plain.arguments), [address(a) for a in arrays])
    run.seconds()
    end = time.perf_counter() + LONGEST
    found = [run.seconds()]
    while time.perf_counter() < end and len(found) < TURNS:
        found.append(run.seconds())
    return statistics.median(found)


# Text ------------------------------------------------------------------------------------------------------------


def _lines(found: Cost) -> Iterator[str]:
    threads = f"{found.threads} thread{'' if found.threads == 1 else 's'} of {found.machine}"
    work = f"{_amount(found.executed.multiply_adds)} multiply-adds, {_amount(found.tensor_bytes)} bytes of tensors"
    yield f"{work}; {threads if found.threads else found.machine}"
    estimate = "no estimate" if found.estimate is None else f"estimated {duration(found.estimate)} on one core"
    measured = f"not measured ({found.unmeasured})"
    if found.measured is not None:
        more = ", with what runs once" if found.with_first else ""
        measured = f"measured {duration(found.measured)} (median, random data{more})"
    yield f"{estimate}; {measured}"
    yield ""
    head = ("limit", "amount", "a second", "least time", "reached")
    rows = [head, *(_row(limit, found) for limit in sorted(found.limits, key=lambda x: -x.seconds) if limit.amount)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(cells)).rstrip()
    reached = "" if found.share is None else f", {found.share:.0%} of it is reached"
    yield f"nearest limit: {found.nearest.name}{reached}"
    if found.share is not None and found.share > 1:
        yield "more than 100%: rates were measured while others used the machine, or accesses overlap"


def _row(limit: Limit, found: Cost) -> tuple[str, ...]:
    part = "" if not found.measured else f"{limit.seconds / found.measured:.0%}"
    rate = f"{_amount(limit.rate)} {limit.unit}"
    return limit.name, f"{_amount(limit.amount)} {limit.unit}", rate, duration(limit.seconds), part


def _amount(value: float) -> str:
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """Return seconds in the unit that leaves few digits."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{1e6 * seconds:.3g} us"
