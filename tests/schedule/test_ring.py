"""ring: what it does, what it refuses, and that long recurrences keep the last rows alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opgen.loop.nodes import Const
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import buffers_in
from opgen.machine import typical
from opgen.machine.model import Cache
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import assert_same

HEAD = "kernel steps(x: float32[3, 20]) -> (y: float32[3, 20]):\n"
ALL = f"""{HEAD}  alloc u: float32[9, 3, 20] heap
  alloc v: float32[8, 3, 20] heap
  for i in 0..3:
    for j in 0..20:
      u[0, i, j] = x[i, j]
  ordered for t in 0..8:
    for i_1 in 0..3:
      for j_1 in 0..20:
        v[t, i_1, j_1] = u[t, i_1, (j_1 + 1) % 20] + 1.0f32
    for i_2 in 0..3:
      for j_2 in 0..20:
        u[t + 1, i_2, j_2] = v[t, 2 - i_2, j_2] * 0.5f32
  for i_3 in 0..3:
    for j_3 in 0..20:
      y[i_3, j_3] = u[8, i_3, j_3]
"""
BY_ROW = f"""{HEAD}  alloc u: float32[9, 3, 20] heap
  for i in 0..3:
    for j in 0..20:
      u[0, i, j] = x[i, j]
  for r in 0..3:
    ordered for t in 0..8:
      for j_2 in 0..20:
        u[t + 1, r, j_2] = u[t, r, (j_2 + 1) % 20] * 0.5f32
  for i_3 in 0..3:
    for j_3 in 0..20:
      y[i_3, j_3] = u[8, i_3, j_3]
"""
REFUSED = {
    ("ring w 0 2", "", ""): "ring w: the kernel allocates no such buffer, or several",
    ("ring u 0 9", "", ""): "ring u: dimension 0 has not more than 9 rows",
    ("ring u 3 2", "", ""): "ring u: dimension 3 has not more than 2 rows",
    ("ring u 0 1", "", ""): "ring u: a step reads a row that is not among the last 1",
    ("ring u 1 2", "", ""): "ring u: a step stores several rows, or reads one that its number does not determine",
    ("ring u 0 2", "u[8, i_3", "u[6, i_3"): "ring u: a row is used after the steps that is overwritten by then",
    ("ring u 0 2", "u[8, i_3", "u[i_3, i_3"): "ring u: a row that is not constant is used outside of the steps",
    ("ring u 0 2", "u[0, i, j] =", "u[1, i, j] ="): (
        "ring u: a row is used before the steps that a step stores, or has no room"
    ),
    ("ring u 0 2", "u[t, i_1", "u[0, i_1"): (
        "ring u: a step stores several rows, or reads one that its number does not determine"
    ),
    ("ring u 0 2", "ordered for", "for"): "ring u: it is not made by one loop over steps",
}
SMALL = replace(typical(32), l2=Cache(1 << 10, 8, 64, 1e11))


@pytest.mark.parametrize("text", ["ring u 0 2", "ring u 0 3", "ring v 0 1", "ring v 0 1\nring u 0 2"])
def test_the_last_rows_are_kept(text: str) -> None:
    kernel = parse_kernel(ALL)
    after = apply(kernel, parse_schedule(text))
    verify(after)
    assert_same(kernel, after, {}, 0, text)


def test_rows_are_used_again() -> None:
    after = print_kernel(apply(parse_kernel(ALL), parse_schedule("ring v 0 1\nring u 0 2")))
    for line in (
        "alloc u: float32[2, 3, 20] heap",
        "v[0, i_1, j_1] = u[t % 2, i_1, (j_1 + 1) % 20] + 1.0f32",
        "u[(t + 1) % 2, i_2, j_2] = v[0, 2 - i_2, j_2] * 0.5f32",
        "y[i_3, j_3] = u[0, i_3, j_3]",
    ):
        assert line in after


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: tuple[str, str, str]) -> None:
    text, old, new = case
    with pytest.raises(ScheduleError) as error:
        apply(parse_kernel(ALL.replace(old, new) if old else ALL), parse_schedule(text))
    assert error.value.message == REFUSED[case]


def test_loops_around_the_steps_have_dimensions_of_their_own() -> None:
    kernel = parse_kernel(BY_ROW)
    assert_same(kernel, apply(kernel, parse_schedule("ring u 0 2")), {}, 0, BY_ROW)
    shared = parse_kernel(BY_ROW.replace("u[t + 1, r,", "u[t + 1, 0,").replace("u[t, r,", "u[t, 0,"))
    with pytest.raises(ScheduleError, match="ring u: 'r' has no dimension of its own"):
        apply(shared, parse_schedule("ring u 0 2"))


@pytest.mark.parametrize("text", [ALL, BY_ROW])
def test_what_the_cache_does_not_keep_is_a_ring(text: str) -> None:
    kernel = parse_kernel(text)
    schedule, after = scheduled(kernel, "cpu", SMALL)
    assert "ring u 0 2" in str(schedule)
    assert [o.shape[0] for o in buffers_in(after.body) if o.name == "u"] == [Const(2)]
    assert_same(kernel, after, {}, 0, str(schedule))
    assert "ring" not in str(scheduled(kernel, "cpu", typical(32))[0])
