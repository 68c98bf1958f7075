"""carry: the same sums in the same order, however the loops stand."""

from __future__ import annotations

import random

import pytest

from opgen.loop.parse import parse_kernel
from opgen.passes.legalize import legalize
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule import kernels
from tests.schedule.differential import assert_same, specialised

SIZES = {
    "batch": 2,
    "height": 5,
    "width": 9,
    "groups": 1,
    "channels": 6,
    "taps_h": 3,
    "taps_w": 2,
    "outs": 8,
    "out_h": 5,
    "out_w": 8,
    "step_h": 1,
    "step_w": 1,
    "gap_h": 1,
    "gap_w": 1,
    "top": 1,
    "left": 1,
}

CARRIED = [
    "carry r at=n",
    "carry r at=n\ncarry s at=n",
    "carry r at=n\ncarry s at=n\ncarry c at=n",
    "carry r at=x",
    "carry r at=y\ncarry s at=x",
    "split c 2 tail=exact\ncarry r at=n\ncarry s at=n\ncarry c_o at=n\nparallel n",
    "parallel n\nfuse n, y -> n_y\npartition x 1, -1",
    "split k 4 tail=exact\nsplit x 2 tail=exact\nreorder n, y, x_o, k_o, x_i, k_i\ncarry r at=n\ncarry s at=n\n"
    "reorder n, y, x_o, k_o, c, x_i, k_i\nunroll x_i\nvectorize k_i\nparallel n\nfuse n, y\nunroll s\n"
    "partition x_o 1, -1",
]


@pytest.mark.parametrize("text", CARRIED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_sums_are_the_same(text: str, dtype: str) -> None:
    seed = CARRIED.index(text)
    kernel = specialised(kernels.dense(dtype), SIZES)
    after = apply(kernel, parse_schedule(text))
    assert_same(kernel, after, {}, seed, text)
    assert_same(kernel, legalize(after), {}, seed, text)


@pytest.mark.parametrize("seed", range(6))
def test_blocks_of_a_product(seed: int) -> None:
    rng = random.Random(seed)
    sizes = {"m": rng.randint(1, 7), "n": rng.randint(1, 9), "p": rng.randint(1, 13)}
    block = rng.randint(1, 6)
    text = f"split k {block} tail={rng.choice(['min', 'guard'])} -> k_o, k_i\ncarry k_o at={rng.choice('ij')}"
    kernel = specialised(kernels.kernel(kernels.PRODUCT), sizes)
    if min(sizes.values()) == 1 or -(-sizes["p"] // block) == 1:
        return  # loops of one iteration are no loops any more
    after = apply(kernel, parse_schedule(text))
    assert_same(kernel, after, {}, seed, f"{sizes}\n{text}")
    assert_same(kernel, legalize(after), {}, seed, f"{sizes}\n{text}")


MADE = """
kernel made(x: float32[5, 6, 4], w: float32[6, 4, 8], b: float32[8], z: float32[5, 8]) -> (y: float32[5, 8]):
  for i in 0..5:
    for k in 0..8:
      alloc acc: float32[] register
      acc[] = 0.5f32
      for r in 0..6:
        for c in 0..4:
          acc[] = fma(x[i, r, c], w[r, c, k], acc[])
      if z[i, k] > 0.25f32:
        y[i, k] = max(acc[] * z[i, k] + b[k], 0.0f32)
      else:
        y[i, k] = acc[] + acc[]
"""
CARRIED_MADE = [
    "carry r at=i",
    "carry r at=k",
    "carry r at=i\ncarry c at=i",
    "carry r at=i\ncarry c at=k",
    "split r 4 tail=min\ncarry r_o at=i",
    "split k 4 tail=exact\nsplit r 3 tail=exact\ncarry r_o at=k_o\nreorder i, k_o, r_i, c, k_i\nvectorize k_i\n"
    "parallel i",
]


@pytest.mark.parametrize("text", CARRIED_MADE)
def test_what_is_made_of_a_sum_is_made_of_the_last(text: str) -> None:
    kernel = parse_kernel(MADE)
    after = apply(kernel, parse_schedule(text))
    assert_same(kernel, after, {}, CARRIED_MADE.index(text), text)
    assert_same(kernel, legalize(after), {}, CARRIED_MADE.index(text), text)


OTHERS = """
kernel others(n: int64 in [1, inf], m: int64 in [0, inf], x: float32[n, m], h: bfloat16[n, 4], b: int32[n]) -> (
             y: float32[n], z: bfloat16[n], s: float32[2]):
  for i in 0..n:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for j in 0..m:
      acc[] = acc[] + x[i, j]
    y[i] = acc[]
  for p in 0..n:
    alloc sum: float32[] register
    sum[] = 0.0f32
    for q in 0..4:
      sum[] = sum[] + float32(h[p, q])
    z[p] = bfloat16(sum[])
  for u in 0..n:
    alloc last: float32[] register
    last[] = 0.0f32
    for v in 0..4:
      last[] = last[] + float32(h[u, v])
    s[u % 2] = last[]
  for a in 0..n:
    alloc some: float32[] register
    some[] = 0.0f32
    if b[a] > 0i32:
      for c in 0..4:
        some[] = some[] + float32(h[a, c])
    y[a] = some[]
  for e in 0..n:
    alloc few: float32[] register
    few[] = 0.0f32
    for f in 0..e + 1:
      few[] = few[] + x[e, 0]
    y[e] = few[]
  for g in 0..n:
    y[g] = 1.0f32
  for o in 0..n:
    alloc more: float32[] register
    more[] = 0.0f32
    for l in 0..4:
      more[] = more[] + float32(h[o, l])
    y[o] = more[] + y[o]
  for d in 0..n:
    alloc one: float32[] register
    one[] = 0.0f32
    for k in 0..4:
      one[] = one[] + float32(h[d, k])
    if one[] > 0.0f32:
      y[d] = one[]
"""

NOT_A_REDUCTION = "it is not the outermost loop of a reduction whose accumulator can wait in a result"
REFUSALS = {
    "carry nowhere at=i": "carry: there is no loop 'nowhere'",
    "carry i at=i": "carry i: it cannot be carried out of itself",
    "carry q at=i": f"carry q: {NOT_A_REDUCTION}",
    "carry q at=p": f"carry q: {NOT_A_REDUCTION}",
    "carry l at=o": f"carry l: {NOT_A_REDUCTION}",
    "carry k at=d": f"carry k: {NOT_A_REDUCTION}",
    "carry j at=i": "carry j: it is not known to run at all, and nothing would be stored",
    "carry v at=u": "carry v: the iterations of 'u' are not known to be independent",
    "carry c at=a": "carry c: whether it runs depends on what is in memory",
    "carry f at=e": "carry f: its bounds depend on 'e'",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusal(text: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        apply(parse_kernel(OTHERS), parse_schedule(text))
    assert refusal.value.message == REFUSALS[text]


def test_the_place_is_named() -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule("carry r")
    assert refusal.value.message == "carry needs the loop outside which to go"
    assert str(parse_schedule("carry r at=k_o\n")) == "carry r at=k_o\n"
