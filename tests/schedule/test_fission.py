"""fission: what it does, what it refuses, and that recurrences of one step get lanes by it."""

from __future__ import annotations

import pytest

from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.walk import loops_in
from opgen.machine import typical
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import assert_same

HEAD = "kernel parts(x: float32[3, 20]) -> (y: float32[3, 20], z: float32[3, 20]):\n"
TWO = f"""{HEAD}  for d in 0..3:
    for i in 0..20:
      y[d, i] = x[d, i] + 1.0f32
    for j in 0..20:
      z[d, j] = y[d, 19 - j]
"""
TAKEN = f"""{HEAD}  for d in 0..3:
    for i in 0..20:
      y[d, i] = x[d, i] + 1.0f32
  for d_1 in 0..3:
    for j in 0..20:
      z[d_1, j] = y[d_1, 19 - j]
"""
REFUSED = {
    "y[d, i] = x[d, i] + 1.0f32\n    for j in 0..20:\n      z[d, j] = y[2 - d, j]": (
        "fission d: the iterations of 'd' are not known to be independent"
    ),
    "y[d, i] = x[d, i]\n      z[d, i] = x[d, i]": "fission d: its body is not several statements",
}


@pytest.mark.parametrize("text", ["fission d -> d_1", "fission d"])
def test_each_statement_has_a_loop(text: str) -> None:
    kernel = parse_kernel(TWO)
    after = apply(kernel, parse_schedule(text))
    assert print_kernel(after) == print_kernel(parse_kernel(TAKEN))
    assert_same(kernel, after, {}, 0, text)


@pytest.mark.parametrize("body", REFUSED)
def test_refusals(body: str) -> None:
    kernel = parse_kernel(f"{HEAD}  for d in 0..3:\n    for i in 0..20:\n      {body}\n")
    with pytest.raises(ScheduleError) as error:
        apply(kernel, parse_schedule("fission d -> d_1"))
    assert error.value.message == REFUSED[body]


def test_bounds_that_the_body_writes() -> None:
    kernel = parse_kernel(
        "kernel counted(x: int64[4]) -> (n: int64[4], y: int64[4]):\n"
        "  for d in 0..n[0]:\n    n[d] = 1\n    y[d] = x[d]\n"
    )
    with pytest.raises(ScheduleError, match="fission d: its body writes what its bounds read"):
        apply(kernel, parse_schedule("fission d"))


def test_numbers_of_names() -> None:
    with pytest.raises(ScheduleError, match="fission d: 1 names are needed, 2 are given"):
        apply(parse_kernel(TWO), parse_schedule("fission d -> a, b"))


def test_nests_in_a_loop_get_lanes() -> None:
    kernel = parse_kernel(TWO)
    schedule, after = scheduled(kernel, "cpu", typical(64))
    assert "fission d -> d_1" in str(schedule)
    assert sum(s.kind == "vector" for s in loops_in(after.body)) >= 1
    assert_same(kernel, after, {}, 0, str(schedule))
