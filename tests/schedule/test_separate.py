"""`separate`: a sum over several indices, one index after the other, by hand and by the automatic scheduler."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.walk import loops_in
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import default_schedule
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import assert_same, random_inputs, specialised

HEAD = """
kernel resized(maps: int64 in [0, inf], h: int64 in [0, inf], w: int64 in [0, inf], oh: int64 in [0, inf],
               ow: int64 in [0, inf], rows: int64 in [0, inf], columns: int64 in [0, inf],
               image: float32[maps, h, w], u: float32[rows, oh], v: float32[columns, ow]) -> (
               result: float32[maps, oh, ow]):
  for i in 0..maps:
    for y in 0..oh:
      for x in 0..ow:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for r in 0..rows:
"""
PLAIN = """
          for s in 0..columns:
            acc[] = fma(u[r, y] * v[s, x], image[i, min(y // 2 + r, h - 1), min(x // 3 + s, w - 1)], acc[])
        result[i, y, x] = acc[]
"""
CONDITIONS = """
          if y > 0:
            for s in 0..columns:
              if x + 1 < ow and y + 1 < oh:
                acc[] = fma(v[s, x], u[r, y] * image[i, min(y // 2 + r, h - 1), min(x // 3 + s, w - 1)], acc[])
        result[i, y, x] = acc[]
"""
BOTH = PLAIN.replace("min(x // 3 + s, w - 1)", "min(r + s, w - 1)")
OUTSIDE = """
          if x + 1 < ow:
            for s in 0..columns:
              acc[] = fma(u[r, y] * v[s, x + 1], image[i, min(y // 2 + r, h - 1), min(x // 3 + s, w - 1)], acc[])
        result[i, y, x] = acc[]
"""
TOGETHER = PLAIN.replace("          for s", "          for s", 1).replace(
    "            acc[] = fma", "            if r + s < 3:\n              acc[] = fma"
)
SUM = PLAIN.replace("fma(u[r, y] * v[s, x], image", "acc[] + (image").replace(", acc[])", ")")
SIZES = {"maps": 2, "h": 5, "w": 4, "oh": 9, "ow": 11, "rows": 3, "columns": 2}
LARGE = {"maps": 3, "h": 40, "w": 50, "oh": 80, "ow": 150, "rows": 4, "columns": 4}


def kernel(body: str, sizes: dict[str, int] = SIZES) -> Kernel:
    return specialised(parse_kernel(HEAD + body.lstrip("\n")), sizes)


@pytest.mark.parametrize("body", [PLAIN, CONDITIONS])
@pytest.mark.parametrize("step", ["separate s -> first", "separate r -> first", "separate s"])
def test_the_sum_is_the_same(body: str, step: str) -> None:
    plain = kernel(body)
    assert_same(plain, apply(plain, parse_schedule(step)), {}, seed=0, story=step)


def test_what_it_makes() -> None:
    loops = [s.var for s in loops_in(apply(kernel(PLAIN), parse_schedule("separate s -> first")).body)]
    assert loops == ["first_i", "first_y", "first_x", "first_s", "i", "y", "x", "r"]


REFUSED = {
    "separate q": ("separate: there is no loop 'q'", PLAIN),
    "separate x": ("separate x: it is not part of one sum in a register", PLAIN),
    "separate s": ("separate s: a subscript of 'image' depends on it and on another loop of the sum", BOTH),
    "separate s -> a": ("separate s: for all that may be chosen, reads of 'v' may lie outside", OUTSIDE),
    "separate s -> b": ("separate s: a condition depends on it and on another loop of the sum", TOGETHER),
    "separate s -> c": ("separate s: it does not add products", SUM),
    "separate s -> acc": ("separate: the name 'acc' is taken", PLAIN),
}


@pytest.mark.parametrize("step", REFUSED)
def test_what_it_refuses(step: str) -> None:
    message, body = REFUSED[step]
    with pytest.raises(ScheduleError) as caught:
        apply(kernel(body), parse_schedule(step))
    assert caught.value.message == message


def test_it_does_not_pass_what_makes_a_factor() -> None:
    """Under a condition that holds both, the sum over an index would stand before the factor's nest."""
    head, nest = (HEAD + PLAIN.lstrip("\n")).replace("v[s, x]", "made[s, x]").split("  for i in", 1)
    made = "alloc made: float32[columns, ow] heap\n    for j in 0..columns:\n"
    made += "      for z in 0..ow:\n        made[j, z] = v[j, z]"
    inside = "\n".join(f"  {line}" for line in f"  for i in{nest}".splitlines())
    both = parse_kernel(f"{head}  if h > 0:\n    {made}\n{inside}\n")
    with pytest.raises(ScheduleError) as caught:
        apply(both, parse_schedule("separate s"))
    assert caught.value.message == "separate s: 'made' is written there, too"


def test_the_scheduler_takes_it_where_it_saves_multiplications() -> None:
    plain = kernel(PLAIN, LARGE)
    schedule = default_schedule(plain)
    assert str(schedule).startswith("separate s -> acc_s\n")
    inputs = random_inputs(plain, {}, 1)
    found = run_kernel(legalize(apply(plain, schedule)), inputs, {})["result"]
    np.testing.assert_array_equal(found, run_kernel(plain, inputs, {})["result"])
    few = {**LARGE, "oh": 3, "ow": 3}  # every place would be computed for a few that are read
    assert "separate" not in str(default_schedule(kernel(PLAIN, few)))
