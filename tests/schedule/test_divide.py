"""divide: parts of a sum with results of their own, which are added up at the end."""

from __future__ import annotations

import random

import numpy as np
import pytest

from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule import kernels
from tests.schedule.differential import assert_same, specialised


@pytest.mark.parametrize("seed", range(8))
def test_parts_of_a_product(seed: int) -> None:
    rng = random.Random(seed)
    size, parts = rng.randint(1, 4), rng.randint(2, 5)
    sizes = {"m": rng.randint(2, 7), "n": rng.randint(2, 9), "p": size * parts}
    more = rng.choice(["", "parallel k_o\n", "split j 2 tail=min\nreorder j_o, i, j_i\n", "vectorize sums_j\n"])
    if size > 1:
        more += rng.choice(["", "carry k_i at=i\n" if "reorder" not in more else ""])
    text = f"split k {size} tail=exact -> k_o, k_i\ndivide k_o at=i -> sums\n{more}"
    kernel = specialised(kernels.kernel(kernels.PRODUCT), sizes)
    if size == 1:
        text = f"divide k at=i -> sums\n{more.replace('k_o', 'k')}"
    after = apply(kernel, parse_schedule(text))
    assert_same(kernel, after, {}, seed, f"{sizes}\n{text}")
    assert_same(kernel, legalize(after), {}, seed, f"{sizes}\n{text}")


BRANCHES = """
kernel branches(a: float32[3, 4], b: float32[4, 9], bias: float32[9]) -> (y: float32[3, 9]):
  for i in 0..3:
    for j in 0..9:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for k in 0..4:
        acc[] = fma(a[i, k], b[k, j], acc[])
      if acc[] > bias[j]:
        y[i, j] = acc[]*acc[] - 9.0f32
      else:
        y[i, j] = bias[j]
"""


@pytest.mark.parametrize("more", ["", "vectorize sums_j", "split sums_j 4 tail=guard\nvectorize sums_j_i"])
@pytest.mark.parametrize("seed", range(3))
def test_branches_on_the_sum_that_is_stored(seed: int, more: str) -> None:
    kernel = parse_kernel(BRANCHES)
    after = apply(kernel, parse_schedule(f"divide k at=j -> sums\n{more}"))
    assert_same(kernel, after, {}, seed)
    assert_same(kernel, legalize(after), {}, seed)


NARROW = """
kernel narrow(a: float32[5, 9]) -> (y: bfloat16[9], z: float16[9]):
  for j in 0..9:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for k in 0..5:
      acc[] = acc[] + a[k, j]
    y[j] = bfloat16(acc[])
  for i in 0..9:
    alloc sum: float32[] register
    sum[] = 0.0f32
    for r in 0..5:
      sum[] = sum[] + a[r, i]
    z[i] = float16(sum[]*sum[])
"""


@pytest.mark.parametrize("more", ["", "vectorize sums_j"])
@pytest.mark.parametrize("seed", range(3))
def test_results_narrower_than_the_sum(seed: int, more: str) -> None:
    kernel = parse_kernel(NARROW)
    after = apply(kernel, parse_schedule(f"divide k at=j -> sums\n{more}"))
    assert print_kernel(after).count("bfloat16(") == 1
    assert_same(kernel, after, {}, seed)
    assert_same(kernel, legalize(after), {}, seed)


def test_parts_are_not_rounded() -> None:
    """In bfloat16, 256 + 1 is 256, and 258 is not."""
    after = legalize(apply(parse_kernel(NARROW), parse_schedule("divide k at=j -> sums")))
    terms = np.repeat(np.array([[256], [1], [1], [0], [0]], "float32"), 9, axis=1)
    assert (run_kernel(after, {"a": terms}, {}, 1)["y"].astype("float32") == 258).all()


def test_neighbours_are_added_first() -> None:
    """As `passes/lane_sums.py` expects it."""
    after = print_kernel(apply(parse_kernel(NARROW), parse_schedule("divide k at=j -> s")))
    assert "bfloat16(s[0, s_j] + s[1, s_j] + (s[2, s_j] + s[3, s_j]) + s[4, s_j])" in after


def test_a_sum_used_twice_does_not_wait_in_a_narrower_result() -> None:
    with pytest.raises(ScheduleError) as refusal:
        apply(parse_kernel(NARROW), parse_schedule("divide r at=i"))
    assert refusal.value.message == "divide r: 'z' has another type than the sum that would wait in it"


OTHERS = """
kernel others(n: int64 in [1, inf], x: float32[8, 6], w: float32[n, 6]) -> (
             y: float32[8], z: float32[8], u: float32[8], v: float32[n], t: float32[8], s: float32[1000]):
  for i in 0..8:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for j in 0..6:
      acc[] = acc[] + x[i, j]
    y[i] = acc[]
  for a in 0..8:
    alloc most: float32[] register
    most[] = 0.0f32
    for b in 0..6:
      most[] = max(most[], x[a, b])
    z[a] = most[]
  for c in 0..8:
    alloc more: float32[] register
    more[] = 1.0f32
    for d in 0..6:
      more[] = more[] + x[c, d]
    u[c] = more[]
  for e in 0..n:
    alloc open: float32[] register
    open[] = 0.0f32
    for f in 0..6:
      open[] = open[] + w[e, f]
    v[e] = open[]
  for g in 0..8:
    alloc twice: float32[] register
    twice[] = 0.0f32
    for h in 0..6:
      twice[] = twice[] + twice[] * x[g, h]
    t[g] = twice[]
  for p in 0..1000:
    alloc many: float32[] register
    many[] = 0.0f32
    for q in 0..1000:
      many[] = many[] + x[0, 0]
    s[p] = many[]
"""

NOT_A_REDUCTION = "it is not the outermost loop of a reduction whose accumulator can wait in a result"
REFUSALS = {
    "divide nowhere at=i": "divide: there is no loop 'nowhere'",
    "divide i at=i": "divide i: it cannot go outside of itself",
    "divide b at=a": "divide b: it is not the loop of a sum that starts at 0",
    "divide d at=c": "divide d: it is not the loop of a sum that starts at 0",
    "divide h at=g": "divide h: it is not the loop of a sum that starts at 0",
    "divide f at=e": "divide f: 'e' is not known to run from 0 to a constant",
    "divide q at=p": "divide q: 1000 parts are too many",
    "divide j at=a": f"divide j: {NOT_A_REDUCTION}",
    "divide j at=i -> x": "divide j: the name 'x' is taken",
}


def test_what_does_not_fit_the_stack_is_refused() -> None:
    kernel = parse_kernel(OTHERS)
    apply(kernel, parse_schedule("split q 500 tail=exact -> q_o, q_i\ndivide q_o at=p space=stack -> parts"))
    with pytest.raises(ScheduleError) as refusal:
        apply(kernel, parse_schedule("split q 5 tail=exact -> q_o, q_i\ndivide q_o at=p space=stack -> parts"))
    assert (refusal.value.message, refusal.value.help) == (
        "divide q_o: 'parts' is too large for the stack",
        "put it in heap",
    )


@pytest.mark.parametrize("text", REFUSALS)
def test_refusal(text: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        apply(parse_kernel(OTHERS), parse_schedule(text))
    assert refusal.value.message == REFUSALS[text]


def test_the_place_is_named() -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule("divide r")
    assert refusal.value.message == "divide needs the loop outside which to go"
    assert str(parse_schedule("divide r at=k_o\n")) == "divide r at=k_o space=heap -> r_sums\n"
