"""Rows that two steps share: as many as they need, and the same results."""

from __future__ import annotations

import pytest

from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_expr
from opgen.loop.verify import verify
from opgen.loop.walk import buffers_in
from opgen.passes.roll import roll
from tests.schedule.differential import assert_same

HEAD = "kernel case(n: int64 in [0, 6], x: float32[6, 4]) -> (y: float32[4]):\n"

FORWARD = """
alloc h: float32[n + 1, 4] heap:
  for j in 0 .. 4:
    y[j] = 0.0f32
    h[0, j] = x[0, j]
  {kind} t in 0 .. n:
    for j in 0 .. 4:
      h[t + 1, j] = h[t, 3 - j] + x[t, j]
      y[j] = y[j] + h[t + 1, j]
"""
BACKWARD = """
alloc h: float32[n + 1, 4] heap:
  for j in 0 .. 4:
    y[j] = 0.0f32
    h[n, j] = x[0, j]
  ordered for t in 0 .. n:
    for j in 0 .. 4:
      h[n - 1 - t, j] = h[n - t, 3 - j] + x[t, j]
      y[j] = y[j] + h[n - 1 - t, j]
"""
OWN = """
alloc h: float32[n, 4] heap:
  for j in 0 .. 4:
    y[j] = 0.0f32
  for t in 0 .. n:
    for j in 0 .. 4:
      h[t, j] = x[t, j] * 2.0f32
    for j in 0 .. 4:
      y[j] = y[j] + h[t, 3 - j]
"""
SLICES = """
alloc h: float32[n + 1, 4] heap:
  for j in 0 .. 4:
    h[0, j] = x[0, j]
  {kind} j in 0 .. 4:
    y[j] = 0.0f32
    for t in 0 .. n:
      h[t + 1, j] = h[t, j] * 0.5f32 + x[t, j]
      y[j] = y[j] + h[t + 1, j]
"""
LAST = FORWARD + "  y[0] = h[n, 0]\n"
TWO_BACK = FORWARD.replace("h[t, 3 - j]", "(h[t, 3 - j] + h[max(t - 1, 0), j])")
LATE = FORWARD.replace("h[0, j] = x[0, j]", "h[0, j] = x[0, j]\n    h[n, j] = x[0, j]")
AGAIN = """
alloc h: float32[n + 1, 4] heap:
  for j in 0 .. 4:
    y[j] = 0.0f32
    h[0, j] = x[0, j]
  for k in 0 .. 2:
    for t in 0 .. n:
      for j in 0 .. 4:
        h[t + 1, j] = h[t, 3 - j] + x[t, j]
        y[j] = y[j] + h[t + 1, j]
"""
ALL_ROWS = """
alloc h: float32[n + 1, 4] heap:
  for j in 0 .. 4:
    y[j] = 0.0f32
    for r in 0 .. n + 1:
      h[r, j] = x[min(r, 5), j]
  for t in 0 .. n:
    for j in 0 .. 4:
      h[t + 1, j] = h[t + 1, j] + h[t, j]
      y[j] = y[j] + h[t, j]
"""
IN_PARTS = """
alloc h: float32[n, 4] heap:
  for j in 0 .. 4:
    y[j] = 0.0f32
  for k in 0 .. 2:
    for t in 0 .. n:
      for j in 0 .. 4:
        if k == 0:
          h[t, j] = x[t, j]
        if k > 0:
          h[t, j] = h[t, j] + x[t, j]
        y[j] = h[t, j]
"""
NOT_ALWAYS = """
alloc h: float32[n + 1, 4] heap:
  for j in 0 .. 4:
    y[j] = 0.0f32
  for k in 0 .. 2:
    for j in 0 .. 4:
      h[0, j] = x[0, j]
    for t in 0 .. n:
      for j in 0 .. 4:
        if k == 0:
          h[t + 1, j] = h[t, 3 - j] + x[t, j]
        y[j] = h[t + 1, j]
"""
EACH_TIME = """
alloc h: float32[n, 4] heap:
  for j in 0 .. 4:
    y[j] = 0.0f32
  for k in 0 .. 2:
    for t in 0 .. n:
      for j in 0 .. 4:
        h[t, j] = x[t, j] * 2.0f32
      for i in 0 .. 4:
        y[i] = h[t, i] + h[t, i]
"""
IN_A_BRANCH = EACH_TIME.replace("        h[t, j] = x", "        if x[t, j] > 0.0f32:\n          h[t, j] = x").replace(
    "y[i] = h[t, i] + h[t, i]", "if x[t, i] > 0.0f32:\n          y[i] = h[t, i]"
)

CASES = {
    "forward": (FORWARD.format(kind="for"), "2, 4"),
    "steps": (FORWARD.format(kind="ordered for"), "2, 4"),
    "backward": (BACKWARD, "2, 4"),
    "of one step": (OWN, "1, 4"),
    "slices": (SLICES.format(kind="for"), "2, 4"),
    "slices of threads": (SLICES.format(kind="parallel for"), "2, 4"),
    "the last is read": (LAST.format(kind="for"), "n + 1, 4"),
    "two back": (TWO_BACK.format(kind="for"), "n + 1, 4"),
    "another row is there first": (LATE.format(kind="for"), "n + 1, 4"),
    "gone through twice": (AGAIN, "n + 1, 4"),
    "all rows are there first": (ALL_ROWS, "n + 1, 4"),
    "added up in parts": (IN_PARTS, "n, 4"),
    "not written each time": (NOT_ALWAYS, "n + 1, 4"),
    "written in another branch": (IN_A_BRANCH, "n, 4"),
    "written each time": (EACH_TIME, "1, 4"),
}


@pytest.mark.parametrize("name", CASES)
def test_as_many_rows_as_steps_need(name: str) -> None:
    body, shape = CASES[name]
    kernel = parse_kernel(HEAD + "".join(f"  {line}\n" for line in body.strip().split("\n")))
    after = roll(kernel)
    verify(after)
    (buffer,) = (o for o in buffers_in(after.body) if o.name == "h")
    assert ", ".join(map(print_expr, buffer.shape)) == shape
    assert (after is kernel) == shape.startswith("n")
    for n in (0, 1, 2, 5):
        assert_same(kernel, after, {"n": n}, n, name)
