"""tabulate: what it does, what it refuses, and means of groups that read and are read side by side."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import loops_in
from opgen.lower import Variant, lower
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from opgen.spec import load_text
from tests.schedule.differential import assert_same

HEAD = "kernel scaled(x: float32[9, 20], v: float32[5]) -> (y: float32[9, 20]):\n"
ROOTS = f"""{HEAD}  for i in 0..9:
    for k in 0..20:
      y[i, k] = x[i, k] / sqrt(v[k // 4] + 1.0f32) + v[k // 4]*0.0f32
"""
ONE = ROOTS.replace(" + v[k // 4]*0.0f32", "")
REFUSED = {
    (ONE, "tabulate w k"): "tabulate w: nothing is made of it by these loops alone",
    (ONE, "tabulate y k"): "tabulate y: the nest writes it",
    (ONE, "tabulate v n"): "tabulate: there is no loop 'n'",
    (ONE.replace("0..20", "1..20"), "tabulate v k"): "tabulate v: 'k' is not known to run from 0 to a constant",
    (ONE.replace("      y[", "     if k > i:\n      y["), "tabulate v k"): (
        "tabulate v: a condition is around what is made of it"
    ),
    (
        ONE.replace("v[k // 4]", "v[k]").replace("      y[", "     for j in 0..max(min(5 - k, 1), 0):\n      y["),
        "tabulate v k",
    ): ("tabulate v: 'v[k]' may fail where the nest does not run"),
}
GROUPS = """
op GroupsNormalised {
  type T in {float32, float64}
  input x: T[batch, height, width, channels]
  output y: T[batch, height, width, channels]
  let mean[b, g] = sum[i, j, k < 5](x[b, i, j, g * 5 + k]) / float(height * width * 5) where g < 8
  let wide[b, g] = sum[i, j, k < 5]((x[b, i, j, g * 5 + k] - mean[b, g]) * (x[b, i, j, g * 5 + k] - mean[b, g]))
    where g < 8
  y[b, i, j, c] = (x[b, i, j, c] - (mean[b, c // 5] else 0)) / sqrt((wide[b, c // 5] else 0) + 1)
}
"""


def test_what_few_loops_determine_is_worked_out_before() -> None:
    kernel = parse_kernel(ONE)
    after = apply(kernel, parse_schedule("tabulate v k -> root"))
    verify(after)
    expected = parse_kernel(
        f"{HEAD}  alloc root: float32[20] heap\n"
        "  for root_k in 0..20:\n    root[root_k] = sqrt(v[root_k // 4] + 1.0f32)\n"
        "  for i in 0..9:\n    for k in 0..20:\n      y[i, k] = x[i, k] / root[k]\n"
    )
    assert print_kernel(after) == print_kernel(expected)
    assert_same(kernel, after, {}, 0, ONE)


def test_several_expressions_have_a_table_each() -> None:
    kernel = parse_kernel(ROOTS)
    after = apply(kernel, parse_schedule("tabulate v k"))
    assert "y[i, k] = x[i, k] / v_table[k] + v_table_1[k]" in print_kernel(after)
    assert_same(kernel, after, {}, 0, ROOTS)


def test_more_loops_than_it_depends_on() -> None:
    kernel = parse_kernel(ONE)
    after = apply(kernel, parse_schedule("tabulate v i, k -> root"))
    assert "alloc root: float32[9, 20] heap" in print_kernel(after)
    assert_same(kernel, after, {}, 0, ONE)


def test_two_loops_along_one_dimension() -> None:
    kernel = parse_kernel(ONE)
    after = apply(kernel, parse_schedule("tabulate v i, k join=true -> root"))
    assert "y[i, k] = root[i * 20 + k]" in print_kernel(after)
    assert_same(kernel, after, {}, 0, ONE)


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: tuple[str, str]) -> None:
    with pytest.raises(ScheduleError) as error:
        apply(parse_kernel(case[0]), parse_schedule(case[1]))
    assert error.value.message == REFUSED[case]


def groups(dtype: str) -> Kernel:
    module = load_text(GROUPS)
    kernel = lower(module, module.ops[0], Variant({"T": dtype}, {})).kernel
    sizes = {"batch": 2, "height": 9, "width": 11, "channels": 40}
    return simplify(bind(kernel, {p.name: sizes[p.name] for p in kernel.parameters if p.name in sizes}))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_means_of_groups_of_channels(dtype: str) -> None:
    kernel = groups(dtype)
    schedule, after = scheduled(kernel, "cpu", typical(64))
    text = str(schedule)
    assert "tabulate mean b, c -> mean_table" in text
    assert "tabulate wide b, c -> wide_table" in text
    assert "flatten mean_g, mean_k -> mean_g_mean_k" in text
    assert "flatten wide_g, wide_k -> wide_g_wide_k" in text
    assert sum(s.kind == "vector" for s in loops_in(after.body)) >= 5
    x = np.random.default_rng(0).standard_normal((2, 9, 11, 40)).astype(dtype)
    (one,), (two,) = ([*run_kernel(legalize(after), {"x": x}, {}, threads).values()] for threads in (1, 2))
    assert np.array_equal(one, two)
    (plain,) = run_kernel(legalize(kernel), {"x": x}, {}, 1).values()
    assert np.abs(one - plain).max() <= 9 * 11 * 5 * np.finfo(dtype).eps  # as many terms have a sum


PICKED = """kernel picked(w: float32[2, 6], x: float32[2, 20, 60]) -> (y: float32[2, 20, 60]):
  for b in 0..2:
    for i in 0..20:
      for c in 0..60:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for g in 0..6:
          if c - g*10 >= 0 and c - g*10 < 10:
            acc[] = fma(w[b, g], x[b, i, c], acc[])
        y[b, i, c] = acc[] * 2.0f32
"""


def test_a_sum_of_one_term_is_the_term() -> None:
    kernel = parse_kernel(PICKED)
    after = apply(kernel, parse_schedule("tighten g"))
    assert "            y[b, i, c] = fma(w[b, c // 10], x[b, i, c], 0.0f32) * 2.0f32\n" in print_kernel(after)
    assert_same(kernel, after, {}, 0, PICKED)
    schedule, after = scheduled(kernel, "cpu", typical(64))
    assert str(schedule).splitlines()[0] == "tighten g"
    assert "vector" in {s.kind for s in loops_in(after.body)}
    assert_same(kernel, after, {}, 0, str(schedule))


def test_a_sum_of_several_terms_stays() -> None:
    kernel = parse_kernel(PICKED.replace("< 10:", "< 14:"))
    schedule, after = scheduled(kernel, "cpu", typical(64))
    assert "tighten g" not in str(schedule).splitlines()
    assert_same(kernel, after, {}, 0, str(schedule))
