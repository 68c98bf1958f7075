"""Masks off register buffers: only where nothing could tell."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.parse import parse_kernel
from opgen.passes.unmask import unmask

HEAD = "kernel case(n: int64 in [0, 8], x: float32[8]) -> (y: float32[8]):\n"
L = "ramp(0, 1, 8)"

TAKEN_OFF = f"""\
  y[{L}] = 7.0f32x8
  alloc r: float32[8] register
  r[{L} if {L} < broadcast(n, 8)] = 0.0f32x8
  for i in 0 .. 3:
    r[{L} if {L} < broadcast(n, 8)] = x[{L}] + r[{L} if {L} < broadcast(n, 8)]
  y[{L} if {L} < broadcast(n, 8)] = r[{L} if {L} < broadcast(n, 8)]
"""
MASK_OF_A_LOOP = f"""\
  alloc r: float32[8] register
  r[{L}] = 0.0f32x8
  for i in 0 .. 8:
    r[{L}] = select({L} >= broadcast(i, 8), x[{L}] + broadcast(x[i], 8), r[{L}])
  for i in 0 .. 8:
    y[{L} if {L} >= broadcast(i, 8)] = r[{L}]
"""
MASK_OF_DATA = f"""\
  alloc r: float32[8] register
  r[{L}] = 0.0f32x8
  for i in 0 .. 8:
    r[{L}] = select(broadcast(x[i], 8) > r[{L}], broadcast(x[i], 8), r[{L}])
  y[{L}] = r[{L}]
"""
CASES = {"off": (TAKEN_OFF, True), "loop": (MASK_OF_A_LOOP, False), "data": (MASK_OF_DATA, False)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("live", [0, 5, 8])
def test_results_stay(name: str, live: int) -> None:
    text, changes = CASES[name]
    before = parse_kernel(HEAD + text)
    after = unmask(before)
    assert (after is not before) == changes
    inputs = {"x": np.array([3, 1, 4, 1, 5, 9, 2, 6], np.float32)}
    expected, found = interpret(before, inputs, {"n": live})["y"], interpret(after, inputs, {"n": live})["y"]
    assert np.array_equal(expected, found)
