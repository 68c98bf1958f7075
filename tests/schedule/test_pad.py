"""Sums over an input with zeros around it: the same as with conditions, whatever the factors are."""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import For, If
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import walk
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule

WINDOW = """
kernel window(x: {T}[{h}, {w}, 4], f: {T}[3, 2, 4]) -> (y: {T}[{p}, {q}]):
  for i in 0..{p}:
    for j in 0..{q}:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for r in 0..3:
        if {S}*i + r - 1 >= 0 and {S}*i + r - 1 < {h}:
          for s in 0..2:
            if {S}*j + s - {L} >= 0 and {S}*j + s - {L} < {w}:
              for c in 0..4:
                acc[] = fma({X}, {F}, acc[])
      y[i, j] = {Y}
"""


def window(seed: int, dtype: str) -> tuple[str, dict[str, np.ndarray]]:
    rng = random.Random(seed)
    h, w, stride, left = rng.randint(1, 5), rng.randint(1, 5), rng.randint(1, 2), rng.randint(0, 1)
    x, f, y = f"x[{stride}*i + r - 1, {stride}*j + s - {left}, c]", "f[r, s, c]", "acc[]"
    if dtype != "float32":
        x, f, y = f"float32({x})", f"float32({f})", f"{dtype}(acc[])"
    text = WINDOW.format(T=dtype, h=h, w=w, p=rng.randint(1, 4), q=rng.randint(1, 4), S=stride, L=left, X=x, F=f, Y=y)
    numbers, kind = np.random.default_rng(seed), ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float32
    given = {"x": numbers.standard_normal((h, w, 4)).astype(kind), "f": numbers.standard_normal((3, 2, 4)).astype(kind)}
    return text, given


@pytest.mark.parametrize(
    "steps", ["pad x 1", "pad x 0", "pad x 0, 1 -> p", "pad x 1\npermute x_padded 2, 1, 0\nparallel i"]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("worst", [None, "x", "f"])
@pytest.mark.parametrize("seed", range(4))
def test_pad(seed: int, worst: str | None, dtype: str, steps: str) -> None:
    """Bit for bit, also where infinities and NaNs are left out of a sum."""
    text, given = window(seed, dtype)
    if worst is not None:
        flat = given[worst].reshape(-1)
        flat[seed % flat.size], flat[-1] = np.nan, np.inf
    kernel = parse_kernel(text)
    padded = apply(kernel, parse_schedule(steps))
    assert parse_kernel(print_kernel(padded)) == padded
    legal = legalize(padded)
    verify(legal, bounds=True)
    expected = interpret(kernel, given)["y"]
    for found in (interpret(padded, given)["y"], run_kernel(legal, given, {}, 2, guarded=True)["y"]):
        same = np.array_equal(found.astype(np.float32), expected.astype(np.float32), equal_nan=True)
        assert same, f"seed {seed}\n{print_kernel(padded)}"


def test_no_condition_is_left_on_what_is_padded() -> None:
    text, _ = window(0, "float32")
    padded = apply(parse_kernel(text), parse_schedule("pad x 0, 1"))
    nest = next(s for s in walk(padded.body) if isinstance(s, For) and s.var == "i")
    assert not any(isinstance(s, If) for s in walk(nest))


@pytest.mark.parametrize(
    ("steps", "change", "reason"),
    [
        ("pad z 0", None, "there is no such input"),
        ("pad x 3", None, "it has dimensions 0 to 2"),
        ("pad x 0 -> y", None, "the name 'y' is taken"),
        ("pad x 1\npad x 1 -> p", None, "no sum of products with it is under a condition"),
        ("pad x 1", ("y[i, j] = acc[]", "y[i, j] = y[i, j] + acc[]"), "the nest reads 'y', which it writes"),
        ("pad x 1", ("f[r, s, c]", "x[r, s, c]"), "no sum of products with it is under a condition"),
    ],
)
def test_refusals(steps: str, change: tuple[str, str] | None, reason: str) -> None:
    text, _ = window(0, "float32")
    with pytest.raises(ScheduleError, match=reason):
        apply(parse_kernel(text.replace(*change) if change else text), parse_schedule(steps))


FACTORS = """
kernel factors(x: float32[5], f: float32[3], g: float32[5], alpha: float32) -> (y: float32[5]):
  for i in 0..5:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for r in 0..3:
      if i + r - 1 >= 0 and i + r - 1 < 5:
        {step}
    y[i] = acc[]
"""


@pytest.mark.parametrize(
    "step",
    [
        "acc[] = fma(x[i + r - 1], 1.0f32/f[r], acc[])",
        "acc[] = fma(x[i + r - 1], f[r]*g[r], acc[])",
        "acc[] = fma(x[i + r - 1], g[i + r - 1], acc[])",
        "acc[] = fma(x[i + r - 1], inf_f32, acc[])",
        "acc[] = fma(x[i + r - 1], alpha, acc[])",
        "acc[] = fma(-x[i + r - 1], f[r], acc[])",
        "let v: float32 = x[i + r - 1]:\n          acc[] = fma(x[i + r - 1], f[r], acc[])",
        "alloc l: float32[] register\n        l[] = 2.0f32*f[r]\n        acc[] = fma(x[i + r - 1], l[], acc[])",
    ],
)
def test_what_zeros_could_not_take_the_place_of_is_refused(step: str) -> None:
    """Factors that may be infinite though inputs are finite, and reads that a condition keeps in bounds."""
    with pytest.raises(ScheduleError, match="no sum of products with it is under a condition"):
        apply(parse_kernel(FACTORS.format(step=step)), parse_schedule("pad x 0"))
    apply(parse_kernel(FACTORS.format(step="acc[] = fma(f[r], x[i + r - 1], acc[])")), parse_schedule("pad x 0"))


PARTS = """
kernel parts(x: float32[3, 4], f: float32[4, 5]) -> (y: float32[3, 5]):
  for i in 0..3:
    for j in 0..5:
      alloc acc: float32[] register
      acc[] = 0.0f32
      if j >= 1:
        for k in 0..4:
          acc[] = fma(x[i, k], f[k, j], acc[])
      y[i, j] = acc[]
"""


def test_parts_of_a_loop_that_share_a_name_do_not_contradict_each_other() -> None:
    with pytest.raises(ScheduleError, match="no sum of products with it is under a condition"):
        apply(parse_kernel(PARTS), parse_schedule("reorder j, k, i\npartition i -1\npad x 0"))
