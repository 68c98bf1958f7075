"""compute_at: the same bits wherever an intermediate is made, and what is refused, word for word."""

from __future__ import annotations

import random

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Const
from opgen.loop.parse import parse_kernel
from opgen.loop.walk import buffers_in
from opgen.passes.legalize import legalize
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import assert_same, specialised
from tests.support.scheduled import check

WINDOWS = """
kernel windows(h: int64 in [0, inf], w: int64 in [0, inf], x: float32[h + 2, w + 2]) -> (y: float32[h, w]):
  alloc rows: float32[h + 2, w] heap
  alloc twice: float32[h + 2, w + 2] heap
  for i in 0..h + 2:
    for j in 0..w + 2:
      twice[i, j] = x[i, j] * 2.0f32
  for p in 0..h + 2:
    for q in 0..w:
      alloc part: float32[] register
      part[] = 0.0f32
      for s in 0..3:
        part[] = fma(twice[p, q + s], 3.0f32, part[])
      rows[p, q] = part[]
  for a in 0..h:
    for b in 0..w:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for r in 0..3:
        acc[] = acc[] + rows[a + r, b]
      y[a, b] = acc[]
"""

PAIRS = """
kernel pairs(n: int64 in [1, inf], m: int64 in [0, inf], x: float32[n, m]) -> (y: float32[2*n, m]):
  alloc both: float32[2, n, m] heap
  for i in 0..n:
    for j in 0..m:
      alloc part: float32[] register
      part[] = x[i, j] + 1.0f32
      both[0, i, j] = part[]
      both[1, i, j] = part[] - x[(i + 1) % n, j]
  for a in 0..2*n:
    for b in 0..m:
      y[a, b] = both[a % 2, a // 2, b]
"""

SCHEDULES = [
    "compute_at rows at=a again=true",
    "compute_at rows at=b again=true",
    "compute_at rows at=b space=register again=true\nunroll p\nunroll r",
    "compute_at rows at=a again=true\ncompute_at twice at=a again=true",
    "compute_at rows at=a again=true\ncompute_at twice at=q again=true",
    "compute_at rows at=a again=true\ncompute_at twice at=p space=heap again=true\nparallel a",
    "split a 3\ncompute_at rows at=a_o again=true\nparallel a_o",
    "split a 3 tail=min\ncompute_at rows at=a_o again=true\ncompute_at twice at=a_o again=true",
    "parallel a\nfuse a, b -> f\ncompute_at rows at=f again=true\ncompute_at twice at=p again=true",
    "split a 2\nsplit b 4\nreorder a_o, b_o, a_i, b_i\ncompute_at rows at=b_o space=stack again=true\nvectorize b_i",
    "compute_at twice at=p again=true\ncompute_at rows at=a again=true",
]
PAIRED = [
    "split a 2\ncompute_at both at=a_o again=true",
    "split a 2\nsplit b 4\nreorder a_o, b_o, a_i, b_i\ncompute_at both at=b_o space=register again=true\nunroll a_i\n"
    "vectorize b_i\nvectorize j",
    "split a 6 tail=min\ncompute_at both at=a_o again=true\nparallel a_o\nsplit j 4",
]


@pytest.mark.parametrize("text", SCHEDULES)
@pytest.mark.parametrize("seed", range(3))
def test_windows(text: str, seed: int) -> None:
    rng = random.Random(seed)
    sizes = {"h": rng.randint(0, 9), "w": rng.randint(0, 9)}
    kernel = parse_kernel(WINDOWS)
    check(kernel, parse_schedule(text), sizes, seed)
    bound = specialised(kernel, sizes)
    if min(sizes.values()) > 1:  # loops of one iteration are gone
        assert_same(bound, legalize(apply(bound, parse_schedule(text))), {}, seed, text)


@pytest.mark.parametrize("text", PAIRED)
@pytest.mark.parametrize("seed", range(3))
def test_pairs(text: str, seed: int) -> None:
    rng = random.Random(seed)
    check(parse_kernel(PAIRS), parse_schedule(text), {"n": rng.randint(1, 9), "m": rng.randint(0, 9)}, seed)


def test_the_buffer_shrinks_to_the_region() -> None:
    kernel = specialised(parse_kernel(WINDOWS), {"h": 6, "w": 8})
    after = apply(kernel, parse_schedule("split a 2\ncompute_at rows at=a_o again=true"))
    (rows,) = (o for o in buffers_in(after.body) if o.name == "rows")
    assert rows.shape == (Const(4), Const(8))


TANGLED = """
kernel tangled(x: float32[8]) -> (y: float32[8], z: float32[8]):
  alloc t: float32[8] heap
  alloc u: float32[8] heap
  alloc v: float32[8] heap
  alloc w: float32[8] heap
  alloc s: float32[8] heap
  for i in 0..8:
    u[i] = x[i]
    s[i] = x[i]
  for j in 0..8:
    t[j] = u[j]
  for k in 0..8:
    if k < 4:
      v[k] = x[k]
  for l in 0..8:
    w[l] = x[l]
    z[l] = x[l]
  for a in 0..8:
    for b in 0..4:
      u[a] = t[a] + v[b]
    y[a] = w[a] + x[a]
  for c in 0..8:
    z[c] = w[c*c % 8]
"""

REFUSALS = {
    "compute_at tt at=a": ("compute_at tt: there is no such local buffer", "did you mean 't'?"),
    "compute_at x at=a": ("compute_at x: there is no such local buffer", None),
    "compute_at t at=i": ("compute_at t: it is also read outside 'i'", "choose a loop around all that reads it"),
    "compute_at t at=a": (
        "compute_at t: it is made from 'u', which is written before it would be made",
        None,
    ),
    "compute_at v at=a": ("compute_at v: it is written under conditions", None),
    "compute_at w at=a": ("compute_at w: it is also read outside 'a'", "choose a loop around all that reads it"),
    "compute_at s at=a": ("compute_at s: nothing reads it", None),
    "compute_at u at=j": ("compute_at u: it is not written by one nest before 'j'", None),
    "compute_at t at=nowhere": (
        "compute_at: there is no loop 'nowhere'",
        "the loops are i, j, k, l, a, b, c",
    ),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        apply(parse_kernel(TANGLED), parse_schedule(text))
    assert (caught.value.message, caught.value.help) == REFUSALS[text]


SHIFTED = """
kernel shifted(x: float32[8], where: int64[8]) -> (y: float32[8]):
  alloc t: float32[8] heap
  alloc at: int64[8] heap
  for i in 0..8:
    t[i] = x[i]
  for j in 0..8:
    at[j] = min(max(where[j], 0), 7)
    y[j] = t[at[j]]
"""


def test_a_region_that_data_decide_is_refused() -> None:
    with pytest.raises(ScheduleError, match="which part is read depends on the values of 'at'"):
        apply(parse_kernel(SHIFTED), parse_schedule("compute_at t at=j"))
    direct = parse_kernel(SHIFTED.replace("t[at[j]]", "t[min(max(where[j], 0), 7)]"))
    after = apply(direct, parse_schedule("compute_at t at=j again=true"))
    inputs = {"x": np.arange(8, dtype=np.float32), "where": np.array([3, -1, 9, 0, 7, 7, 2, 1])}
    np.testing.assert_array_equal(interpret(after, inputs, {})["y"], interpret(direct, inputs, {})["y"])


NAMESAKES = """
kernel namesakes(x: float32[8]) -> (y: float32[8]):
  alloc t: float32[8] heap
  for i in 0..8:
    t[i] = x[i]*2.0f32
  for i in 0..2:
    for a in 0..4:
      y[i*4 + a] = t[i*4 + a]
"""


def test_a_name_that_would_mean_two_loops_is_refused() -> None:
    kernel = parse_kernel(NAMESAKES)
    with pytest.raises(ScheduleError, match="the name 'i' means another loop around 'a'"):
        apply(kernel, parse_schedule("compute_at t at=a"))
    other = parse_kernel(NAMESAKES.replace("for i in 0..8", "for j in 0..8").replace("t[i] = x[i]", "t[j] = x[j]"))
    after = apply(other, parse_schedule("compute_at t at=a"))
    inputs = {"x": np.arange(8, dtype=np.float32)}
    np.testing.assert_array_equal(interpret(after, inputs, {})["y"], interpret(kernel, inputs, {})["y"])


def test_what_would_be_made_twice_is_counted() -> None:
    kernel = specialised(parse_kernel(WINDOWS), {"h": 6, "w": 8})
    with pytest.raises(ScheduleError, match="144 elements would be computed, of 64"):
        apply(kernel, parse_schedule("compute_at rows at=a"))
    with pytest.raises(ScheduleError, match="it is not known that nothing is computed twice"):
        apply(parse_kernel(WINDOWS), parse_schedule("compute_at rows at=a"))


def test_lanes_come_after() -> None:
    kernel = specialised(parse_kernel(PAIRS), {"n": 4, "m": 8})
    with pytest.raises(ScheduleError, match="the loop 'b' has lanes, is unrolled or stands in one that is"):
        apply(kernel, parse_schedule("vectorize b\ncompute_at both at=b again=true"))
