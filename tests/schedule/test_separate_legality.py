"""`separate`: what it computes of small sums, and what it refuses because it would compute something else."""

from __future__ import annotations

import random

import pytest

from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.passes.legalize import legalize
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import assert_same

SUM = """
kernel k(u: float32[3, 4], v: float32[5, 4], x: float32[6, 8]) -> (y: float32[3, 5]):
  for i in 0..3:
    for j in 0..5:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for r in 0..4:
        for s in 0..4:
          acc[] = fma(u[i, r] * v[j, s], x[i + r, j + s], acc[])
      y[i, j] = acc[]
"""
STEP = "          acc[] = "
INTEGERS = (
    SUM.replace("float32", "int32")
    .replace("0.0f32", "0i32")
    .replace("fma(u[i, r] * v[j, s], x[i + r, j + s], acc[])", "acc[] + u[i, r] * v[j, s] * x[i + r, j + s]")
)
ROWS = """
kernel k(u: float32[3, 4], v: float32[4], x: float32[4]) -> (y: float32[3]):
  alloc acc: float32[3] register
  for h in 0..3:
    acc[h] = 0.0f32
  for i in 0..3:
    for r in 0..4:
      for s in 0..4:
        acc[i] = fma(u[i, r] * v[s], x[s], acc[i])
  for g in 0..3:
    y[g] = acc[g]
"""
BEFORE = """
kernel k(n: int64 in [0, 1], u: float32[4], v: float32[4], x: float32[4, 4]) -> (y: float32[2]):
  alloc t: float32[4, 4] heap
  if n > 0:
    for a in 0..4:
      for c in 0..4:
        t[a, c] = x[a, c]
    for o in 0..2:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for r in 0..4:
        for s in 0..4:
          acc[] = fma(u[r] * v[s], t[r, s], acc[])
      y[o] = acc[]
"""


def under(condition: str, text: str = SUM) -> str:
    return text.replace(STEP, f"          if {condition}:\n  {STEP}")


@pytest.mark.parametrize(
    ("text", "loop"),
    [
        (SUM, "r"),
        (SUM, "s"),
        (INTEGERS, "r"),
        (under("i + r < 5"), "s"),
        (under("j + s >= 2 and j + s < 7"), "s"),  # the middle of each window is inside
        (under("j + s < 3", INTEGERS), "s"),  # of integers, 0 times anything is 0
    ],
)
def test_it_computes_the_same(text: str, loop: str) -> None:
    kernel = parse_kernel(text)
    after = apply(kernel, parse_schedule(f"separate {loop} -> first"))
    verify(after)
    seed = random.SystemRandom().randrange(1 << 30)
    assert_same(kernel, after, {}, seed, f"seed {seed}\n{print_kernel(after)}")
    assert_same(kernel, legalize(after), {}, seed, f"seed {seed}")


@pytest.mark.parametrize(
    ("text", "loop", "why"),
    [
        (under("j + s < 3"), "s", "its sum may have no terms"),
        (
            SUM.replace("k(u", "k(n: int64 in [0, 4], u").replace("s in 0..4", "s in 0..n"),
            "s",
            "its sum may have no terms",
        ),
        (under("j + s < 3", INTEGERS.replace("u[i, r]", "u[j, r]")), "s", "reads of 'u' may lie outside"),
        (under("acc[] < 3.0f32"), "s", "depends on what was summed so far"),
        (under("acc[] < x[0, s]"), "s", "depends on what was summed so far"),
        (ROWS, "s", "what it adds to depends on 'i'"),
        (ROWS, "i", "what it adds to depends on 'i'"),
        (BEFORE, "s", "'t' is written there, too"),
        (SUM.replace("x[i + r, j + s]", "x[i + r, j + (r + s) // 2]"), "s", "depends on it and on another loop"),
    ],
)
def test_what_may_compute_something_else_is_refused(text: str, loop: str, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        apply(parse_kernel(text), parse_schedule(f"separate {loop} -> first"))
