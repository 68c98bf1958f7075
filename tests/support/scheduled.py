"""Scheduled kernels, compared with the plain ones."""

from __future__ import annotations

import numpy as np

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.machine import Machine
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.schedule import Schedule, apply, parse_schedule
from tests.harness import random_arrays
from tests.schedule.differential import Sizes, assert_same, specialised
from tests.schedule.of_kind import scheduled_as


def assert_right(kernel: Kernel, machine: Machine, seed: int, spoiled: bool = False, kind: str | None = None) -> str:
    """The automatic schedule, with a plan of a `kind` if one is named, gives the interpreter's results with one and two
    threads; gives its text.
    """
    schedule, after = scheduled_as(kind, kernel, machine)
    assert parse_schedule(str(schedule)) == schedule
    legal = legalize(after)
    verify(legal, bounds=True)
    shapes = {b.name: tuple(int(str(e.value)) for e in b.shape) for b in kernel.inputs}
    inputs = random_arrays(shapes, kernel.inputs[0].dtype.name, seed)
    if {"regroup", "rfactor"} & set(str(schedule).split()):  # few bits, so that no order rounds
        inputs = {n: (np.round(np.clip(np.float64(x), -2, 2) * 8) / 8).astype(x.dtype) for n, x in inputs.items()}
    if spoiled:
        for array in inputs.values():
            places = np.random.default_rng(seed).integers(0, array.size, 3)
            array.reshape(-1)[places] = [np.inf, -np.inf, np.nan]
    (expected,) = interpret(kernel, inputs, {}).values()
    for threads in (1, 2):
        (found,) = run_kernel(legal, inputs, {}, threads, guarded=True).values()
        wide = [np.asarray(a, dtype=np.float64) for a in (found, expected)]
        assert np.array_equal(*wide, equal_nan=True), f"seed {seed}\n{schedule}"
    return str(schedule)


def check(kernel: Kernel, schedule: Schedule, sizes: Sizes, seed: int) -> None:
    """The kernel as scheduled, as legalised, and both again with sizes bound before."""
    scheduled = apply(kernel, schedule)
    story = f"{schedule}{print_kernel(scheduled)}"
    assert_same(kernel, scheduled, sizes, seed, story)
    legal = legalize(scheduled)
    assert_same(kernel, legal, sizes, seed, story + print_kernel(legal))
    assert_same(kernel, specialised(legal, sizes), sizes, seed, story)
