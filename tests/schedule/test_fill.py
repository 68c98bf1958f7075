"""fill: rows of a copy made by the first loop that reads them, and nothing else changed."""

from __future__ import annotations

import pytest

from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import assert_same

SUMS = """
kernel sums(x: float32[5, 6, 13], g: float32[5, 6, 16]) -> (y: float32[13, 16]):
  for c in 0..13:
    for k in 0..16:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for p in 0..5:
        for q in 0..6:
          acc[] = fma(x[p, q, c], g[p, q, k], acc[])
      y[c, k] = acc[]
"""
TILED = (
    "split k 8 tail=exact -> k_o, k_i\nreorder k_o, c, k_i\n{rows}split c 3 tail=min -> c_o, c_i\npartition c_o -1\n"
    "reorder c_o, c_i, k_i\nreorder c_o, {order}, c_i, k_i\npack g 0, 1, 2 at=k_o -> panel\n"
)
WHOLE = TILED.format(rows="", order="p, q")
BLOCKS = TILED.format(rows="split q 3 tail=exact -> q_o, q_i\ncarry p at=k_o\ncarry q_o at=k_o\n", order="q_i")
FIRST = "partition c_o 1\n"


def sums() -> Kernel:
    return parse_kernel(SUMS)


@pytest.mark.parametrize(
    "text",
    [
        WHOLE + FIRST + "fill panel in=q",
        WHOLE + FIRST + "fill panel in=p",
        BLOCKS + FIRST + "fill panel in=q_i",
        BLOCKS + FIRST + "split panel_2 4 tail=exact -> o, l\nunroll o\nvectorize l\nfill panel in=q_i\nunroll c_i\n"
        "split k_i 4 tail=exact -> k_v, k_l\nvectorize k_l\nparallel k_o",
    ],
)
def test_results_are_the_same(text: str) -> None:
    assert_same(sums(), apply(sums(), parse_schedule(text)), {}, 1)


def test_rows_are_copied_in_the_first_tile_only() -> None:
    text = print_kernel(apply(sums(), parse_schedule(BLOCKS + FIRST + "fill panel in=q_i")))
    (line,) = [line.strip() for line in text.split("\n") if line.strip().startswith("panel[")]
    assert line == "panel[0, q_i, panel_2] = g[p + 0, q_o * 3 + q_i, k_o * 8 + panel_2]"
    assert text.index("for c_o in 0 .. 1") < text.index(line) < text.index("for c_o in 1 .. 4")


REFUSALS = {
    WHOLE + "fill pannel in=q": ("fill pannel: there are 0 local buffers of that name", "did you mean 'panel'?"),
    WHOLE + "fill panel in=z": ("fill: there is no loop 'z'", "the loops are "),
    WHOLE + "fill panel in=q": (
        "fill panel: the nest after the copy does not read each row once, in one iteration",
        "set the first iteration of a loop around apart",
    ),
    WHOLE + FIRST + "fill panel in=c_i": (
        "fill panel: the nest after the copy does not hold one loop 'c_i' that always runs",
        None,
    ),
    WHOLE + FIRST + "unroll q\nfill panel in=q": (
        "fill panel: the loop 'q' is not serial any more",
        "fill before",
    ),
    WHOLE + FIRST + "fill acc in=q": ("fill acc: there are 3 local buffers of that name", None),
    WHOLE + FIRST + "fill panel in=q\nfill panel in=q": (
        "fill panel: the first statement does not copy inputs to it, and nothing else",
        None,
    ),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusal(text: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        apply(sums(), parse_schedule(text))
    message, help = REFUSALS[text]
    assert refusal.value.message == message
    assert (refusal.value.help or "").startswith(help or "")


COPIED = """
kernel copied(g: float32[18, 4]) -> (y: float32[9, 4]):
  alloc panel: float32[9, 4] heap
  for p in 0..9:
    for j in 0..4:
{copy}
  for c in 0..1:
{before}
    for {x} in 0..9:
      for k in 0..4:
        y[{x}, k] = panel[{x}, k]
"""
PLAIN = "      panel[p, j] = g[p, j]"


@pytest.mark.parametrize(
    ("copy", "before", "x", "message"),
    [
        (
            PLAIN,
            "    for z in 0..9:\n      panel[z, 1] = 5.0f32",
            "x",
            "fill panel: the nest after the copy writes it, too",
        ),
        (PLAIN, "", "j", "fill panel: the name 'j' means another loop or value around 'j'"),
        (
            "      let x: int64 = p * 2\n      panel[p, j] = g[x, j]",
            "",
            "x",
            "fill panel: the name 'x' means another loop or value around 'x'",
        ),
    ],
)
def test_what_else_is_refused(copy: str, before: str, x: str, message: str) -> None:
    kernel = parse_kernel(COPIED.format(copy=copy, before=before, x=x))
    with pytest.raises(ScheduleError) as refusal:
        apply(kernel, parse_schedule(f"fill panel in={x}"))
    assert refusal.value.message == message


def test_a_loop_that_begins_where_another_one_of_that_name_is_is_not_the_same() -> None:
    """What one iteration reads is `p .. p + 3` as the copy says, but of another `p`."""
    kernel = parse_kernel(
        """
kernel begins(g: float32[9]) -> (y: float32[4, 3], z: float32[4, 3]):
  alloc panel: float32[4, 9] heap
  for p in 0..4:
    for q in p..p + 3:
      panel[p, q] = g[q]
  for a in 0..4:
    for p in 0..1:
      for b in p..p + 3:
        if b >= a:
          y[a, b] = panel[a, b]
        else:
          y[a, b] = 0.0f32
  for a in 0..4:
    for b in 0..3:
      z[a, b] = panel[a, a + b]
"""
    )
    with pytest.raises(ScheduleError, match="does not read each row once"):
        apply(kernel, parse_schedule("fill panel in=b"))


def test_a_copy_of_what_is_computed_stays() -> None:
    kernel = parse_kernel(
        """
kernel other(x: float32[4]) -> (y: float32[4]):
  alloc t: float32[4] heap
  for i in 0..4:
    t[i] = x[i] * 2.0f32
  for i in 0..4:
    y[i] = t[i]
"""
    )
    assert_same(kernel, apply(kernel, parse_schedule("fill t in=i")), {}, 1)
