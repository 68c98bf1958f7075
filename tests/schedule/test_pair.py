"""Sums of bfloat16 products taken two by two: near the plain sum, and the same in machine code as interpreted."""

from __future__ import annotations

import dataclasses
import random

import ml_dtypes
import numpy as np
import pytest

from opgen.codegen.llvm.target import Target
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Dot, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import walk_exprs
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.runtime.kernel import compile_kernel
from opgen.runtime.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule

PRODUCT = """
kernel product(x: bfloat16[{m}, {c}], w: bfloat16[{c}, {k}]) -> (y: float32[{m}, {k}]):
  for i in 0..{m}:
    for j in 0..{k}:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for c in 0..{c}:
        acc[] = fma(float32(x[i, c]), float32(w[c, j]), acc[])
      y[i, j] = acc[]
"""


def product(m: int, c: int, k: int) -> Kernel:
    return parse_kernel(PRODUCT.replace("{m}", str(m)).replace("{c}", str(c)).replace("{k}", str(k)))


def arrays(m: int, c: int, k: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    made = {"x": rng.standard_normal((m, c)), "w": rng.standard_normal((c, k))}
    return {name: a.astype(ml_dtypes.bfloat16) for name, a in made.items()}


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("seed", range(4))
def test_pairs(seed: int, lanes: int) -> None:
    """float32 sums of c terms in another order: at most 2 * c roundings of 2**-24 apart, of the terms' sizes."""
    rng = random.Random(seed)
    m, c, k = rng.randint(1, 3), 2 * rng.randint(1, 9), rng.choice([16, 32])
    kernel, given = product(m, c, k), arrays(m, c, k, seed)
    text = "pair c" if lanes == 1 else f"pair c\nsplit j {lanes} tail=exact\nvectorize j_i"
    paired = apply(kernel, parse_schedule(text))
    assert apply(parse_kernel(print_kernel(paired)), parse_schedule("")) == paired
    legal = legalize(paired)
    verify(legal, bounds=True)
    assert any(isinstance(e, Dot) for e in walk_exprs(legal.body))
    expected, plain = interpret(paired, given)["y"], interpret(kernel, given)["y"]
    found = run_kernel(legal, given, {}, 1, guarded=True)["y"]
    assert np.array_equal(found, expected), f"seed {seed}"
    size = np.abs(given["x"].astype(np.float64)) @ np.abs(given["w"].astype(np.float64))
    assert np.all(np.abs(found - plain) <= 2 * c * 2.0**-24 * size), f"seed {seed}"


def test_without_the_instruction() -> None:
    """Another CPU adds the same two products."""
    kernel, given = product(2, 8, 16), arrays(2, 8, 16, 5)
    legal = legalize(apply(kernel, parse_schedule("pair c\nsplit j 16 tail=exact\nvectorize j_i")))
    y = np.empty((2, 16), np.float32)
    compile_kernel(legal, Target.generic())([given["x"].ctypes.data, given["w"].ctypes.data, y.ctypes.data], [])
    assert np.array_equal(y, interpret(legal, given)["y"])


def test_the_scheduler_takes_pairs_where_the_machine_has_them() -> None:
    kernel, given = product(14, 64, 64), arrays(14, 64, 64, 6)
    without, _ = scheduled(kernel, "cpu", typical(64))
    schedule, after = scheduled(kernel, "cpu", dataclasses.replace(typical(64), pairs=True))
    assert "pair c -> x_pairs, w_pairs" in str(schedule)
    assert "pair" not in str(without)
    legal = legalize(after)
    verify(legal, bounds=True)
    assert np.array_equal(run_kernel(legal, given, {}, 2, guarded=True)["y"], interpret(after, given)["y"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PRODUCT.replace("{c}", "7"), "its number of steps is not known to be even"),
        (
            PRODUCT.replace("x[i, c]", "x[i, c - 1]").replace("in 0..{c}", "in 1..{c}"),
            "its number of steps is not known",
        ),
        (
            PRODUCT.replace("x[i, c]", "x[i, 2*c]").replace("in 0..{c}", "in 0..4"),
            "its steps do not read neighbours of 'x'",
        ),
        (
            PRODUCT.replace("x[i, c]", "x[i, c + 1]").replace("in 0..{c}", "in 0..6"),
            "do not begin at an even place of 'x'",
        ),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    kernel = parse_kernel(text.replace("{m}", "2").replace("{c}", "8").replace("{k}", "16"))
    with pytest.raises(ScheduleError, match=reason):
        apply(kernel, parse_schedule("pair c"))
