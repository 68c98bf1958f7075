"""Room between the parts of intermediates: made where they would crowd few sets, without an effect on any result."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Const, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import buffers_in
from opgen.machine import Machine, typical
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import apply, parse_schedule
from opgen.schedule.steps import Pitch
from tests.harness import random_arrays

PARTS = 16


def fanned(rows: int, columns: int) -> Kernel:
    """Many parts of an intermediate made at a time, then summed row by row."""
    made = "".join(f"        t[{i}, r, c] = x[r, c] * {i}.0f32\n" for i in range(PARTS))
    return parse_kernel(
        f"kernel fanned(x: float32[{rows}, {columns}], w: float32[{columns}, 32]) "
        f"-> (y: float32[{PARTS}, {rows}, 32]):\n"
        f"  alloc t: float32[{PARTS}, {rows}, {columns}] heap:\n"
        f"    for r in 0..{rows}:\n      for c in 0..{columns}:\n{made}"
        f"    for i in 0..{PARTS}:\n      for n in 0..{rows}:\n        for k in 0..32:\n"
        "          alloc acc: float32[] register\n          acc[] = 0.0f32\n"
        f"          for a in 0..{columns}:\n            acc[] = fma(t[i, n, a], w[a, k], acc[])\n"
        "          y[i, n, k] = acc[]\n"
    )


def whole(ways: int = 8) -> Machine:
    """A machine whose second cache holds everything: nothing is made in blocks."""
    usual = typical()
    return replace(usual, l1=replace(usual.l1, ways=ways), l2=replace(usual.l2, size=1 << 23))


def same(kernel: Kernel, after: Kernel) -> None:
    legal = legalize(after)
    verify(legal, bounds=True)
    arrays = random_arrays(
        {b.name: tuple(int(e.value) for e in b.shape if isinstance(e, Const)) for b in kernel.inputs}, "float32", 0
    )
    expected = interpret(kernel, arrays, {})["y"]
    for threads in (1, 2):
        np.testing.assert_array_equal(run_kernel(legal, arrays, {}, threads, guarded=True)["y"], expected)


def lines_in_one_set(kernel: Kernel, machine: Machine) -> int:
    """How many of the parts' first lines share a set of the first cache."""
    shape = next(o.shape for o in buffers_in(kernel.body) if o.name == "t")
    rows, columns = (int(e.value) for e in shape[1:] if isinstance(e, Const))
    lines = 4 * rows * columns * np.arange(PARTS) // machine.l1.line
    return int(np.bincount(lines % machine.l1.sets).max())


@pytest.mark.parametrize("ways", [4, 8])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (8, 128), (4, 256), (32, 96)])
def test_room_is_made_where_parts_crowd(rows: int, columns: int, ways: int) -> None:
    kernel, machine = fanned(rows, columns), whole(ways)
    schedule, after = scheduled(kernel, "cpu", machine)
    assert lines_in_one_set(kernel, machine) > ways // 2
    assert any(isinstance(s, Pitch) and s.buffer == "t" for s in schedule.steps)
    assert lines_in_one_set(after, machine) <= ways // 2
    assert parse_schedule(str(schedule)) == schedule
    same(kernel, after)


@pytest.mark.parametrize(("rows", "columns"), [(65, 80), (33, 48), (4, 16)])
def test_no_room_is_made_where_they_do_not_or_are_small(rows: int, columns: int) -> None:
    schedule, _ = scheduled(fanned(rows, columns), "cpu", whole())
    assert not any(isinstance(s, Pitch) for s in schedule.steps)


@pytest.mark.parametrize("seed", range(8))
def test_any_room_is_without_effect(seed: int) -> None:
    rng = random.Random(seed)
    shape = (PARTS, rng.randint(1, 9), rng.randint(1, 20))
    steps = "".join(f"pitch t {d} {shape[d] + rng.randint(0, 5)}\n" for d in range(3))
    kernel = fanned(*shape[1:])
    same(kernel, apply(kernel, parse_schedule(f"split c 4 tail=guard\nvectorize c_i\n{steps}")))


def test_lines_may_be_smaller_than_elements() -> None:
    """A file of a machine's numbers may say so."""
    machine = whole()
    machine = replace(machine, l1=replace(machine.l1, line=1), l2=replace(machine.l2, line=2))
    kernel = fanned(64, 64)
    same(kernel, scheduled(kernel, "cpu", machine)[1])
