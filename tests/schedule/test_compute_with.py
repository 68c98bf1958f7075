"""compute_with: copies made in the loop that first reads them, and what is refused, word for word."""

from __future__ import annotations

import pytest

from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.passes.legalize import legalize
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import assert_same

PRODUCT = """
kernel product(x: float32[7, 5, 6], f: float32[5, 6, 8]) -> (y: float32[7, 8]):
  for p in 0..7:
    for k in 0..8:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for r in 0..5:
        for c in 0..6:
          acc[] = fma(x[p, r, c], f[r, c, k], acc[])
      y[p, k] = acc[]
"""
TILED = """\
split k 4 tail=exact -> k_o, k_i
reorder k_o, p, k_i
split p 3 tail=guard -> p_o, p_i
partition p_o 1, -1
reorder k_o, p_o, r, c, p_i, k_i
pack f 0, 1, 2 at=k_o -> panel
"""


def product() -> Kernel:
    return parse_kernel(PRODUCT)


@pytest.mark.parametrize("inner", ["", "compute_with panel_1, c\n"])
@pytest.mark.parametrize("lanes", ["", "vectorize k_i\nvectorize panel_2\nunroll p_i\n"])
@pytest.mark.parametrize("threads", ["", "parallel k_o\n"])
def test_results_are_the_same(inner: str, lanes: str, threads: str) -> None:
    text = TILED + "compute_with panel_0, r\n" + inner + lanes + threads
    after = apply(product(), parse_schedule(text))
    assert_same(product(), after, {}, 1, text)
    assert_same(product(), legalize(after), {}, 1, text)


def test_the_first_tile_alone_makes_copies() -> None:
    text = print_kernel(apply(product(), parse_schedule(TILED + "compute_with panel_0, r\ncompute_with panel_1, c")))
    assert text.count("panel[r, c, panel_2] = f[r, c, k_o * 4 + panel_2]") == 1
    assert text.index("alloc acc") < text.index("panel[r, c, panel_2] = ")
    assert "for panel_0" not in text
    assert "for panel_1" not in text


CARRIED = "split k 4 tail=exact -> k_o, k_i\nreorder k_o, p, k_i\ncarry r at=k_o\nreorder k_o, p, c, k_i\n"


def test_loops_of_one_iteration_around_the_copies() -> None:
    text = CARRIED + "partition p 1\npack f 0, 1, 2 at=k_o -> panel\ncompute_with panel_1, c\n"
    after = apply(product(), parse_schedule(text))
    assert "panel[0, c, panel_2] = f[r, c, k_o * 4 + panel_2]" in print_kernel(after)
    assert_same(product(), after, {}, 1, text)


REFUSALS = {
    TILED + "compute_with panel_9, r": "compute_with: there is no loop 'panel_9'",
    TILED + "compute_with panel_0, q": "compute_with: there is no loop 'q'",
    TILED + "compute_with panel_1, c": "compute_with panel_1: it does not stand by itself before 'c'",
    TILED + "compute_with p_i, r": "compute_with p_i: what follows writes what 'p_i' reads or writes",
    TILED + "compute_with k_o, r": "compute_with k_o: it does not stand by itself before 'r'",
    TILED + "compute_with panel_0, c": "compute_with panel_0: the loop 'r' around 'c' has other iterations",
    TILED + "compute_with panel_0, p_i": "compute_with panel_0: 'p_i' is not a serial loop of the same iterations",
    TILED.replace("partition p_o 1, -1\n", "") + "compute_with panel_0, r": (
        "compute_with panel_0: the loop 'p_o' around 'r' has other iterations"
    ),
    TILED
    + "unroll r\ncompute_with panel_0, r": "compute_with panel_0: 'r' is not a serial loop of the same iterations",
    CARRIED + "partition p 1\npack f 0, 1, 2 at=k_o -> panel\ncompute_with panel_1, k_i": (
        "compute_with panel_1: 'k_i' is not a serial loop of the same iterations"
    ),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text: str) -> None:
    with pytest.raises(ScheduleError) as raised:
        apply(product(), parse_schedule(text))
    assert REFUSALS[text] in str(raised.value)


def by_hand(first: str, then: str) -> str:
    return f"""
kernel by_hand(x: float32[6]) -> (y: float32[6], z: float32[6]):
  alloc t: float32[6] heap
  for i in 0..6:
    {first}
  for j in 0..6:
    {then}
  for k in 0..6:
    z[k] = t[k]
"""


@pytest.mark.parametrize(
    ("first", "then", "reason"),
    [
        ("t[i] = x[i]", "y[j] = t[j] + t[j]", ""),
        ("t[i] = x[i]", "y[j] = t[5 - j]", "'j' reads of 't' what other iterations write"),
        ("t[5 - i] = x[i]", "y[j] = t[j]", "'j' reads of 't' what other iterations write"),
        ("t[i] = x[i]", "t[j] = x[j]", "what follows writes what 'i' reads or writes"),
        ("t[i] = y[i]", "y[j] = t[j]", "what follows writes what 'i' reads or writes"),
        ("t[i] = x[i]", "y[j] = 0.0f32\n    if j < 3:\n      y[j] = t[j]", ""),
    ],
)
def test_only_what_the_same_iteration_wrote(first: str, then: str, reason: str) -> None:
    kernel = parse_kernel(by_hand(first, then))
    if reason:
        with pytest.raises(ScheduleError) as raised:
            apply(kernel, parse_schedule("compute_with i, j"))
        assert reason in str(raised.value)
    else:
        assert_same(kernel, apply(kernel, parse_schedule("compute_with i, j")), {}, 1)
