"""Parts of buffers copied, and results kept in other orders, against the unscheduled program."""

from __future__ import annotations

import pytest

from opgen.loop.parse import parse_kernel
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.support.scheduled import check

TURNED = """
kernel turned(x: float32[5, 12]) -> (y: float32[12, 5]):
  for i in 0..5:
    for j in 0..12:
      y[j, i] = x[i, j] + 1.0f32
"""


@pytest.mark.parametrize(
    "text",
    [
        "split j 4\nreorder j_o, i, j_i\npack y 1, 0 at=j_o -> row\nvectorize j_i",
        "split j 4\nsplit j_i 2 -> a, b\nreorder j_o, i, b, a\npack y 1, 0 at=j_o -> row",
        "pack x 1, 0 at=i -> column",
    ],
)
def test_copies_of_an_iteration_in_another_order(text: str) -> None:
    check(parse_kernel(TURNED), parse_schedule(text), {}, 1)


@pytest.mark.parametrize(
    "text", ["pack y 1, 0", "pack y 1, 0 -> t\nsplit j 4\nvectorize j_i\nparallel t_0", "pack y 0, 1 -> t\npack x 1, 0"]
)
def test_a_result_in_another_order(text: str) -> None:
    check(parse_kernel(TURNED), parse_schedule(text), {}, 1)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("[12, 5]", "[13, 5]"),
        ("y[j, i] =", "y[j, 4 - i] ="),
        ("0..5", "1..5"),
        ("y[j, i] =", "if i < 4:\n        y[j, i] ="),
    ],
)
def test_a_result_that_is_not_all_written_is_refused(text: str, instead: str) -> None:
    assert text in TURNED
    with pytest.raises(ScheduleError, match="not known to be written as a whole"):
        apply(parse_kernel(TURNED.replace(text, instead)), parse_schedule("pack y 1, 0"))


SQUARES = """
kernel squares(x: float32[5, 6]) -> (y: float32[10, 12]):
  for i in 0..5:
    for j in 0..6:
      y[i * 2, j * 2] = x[i, j]
      y[i * 2, j * 2 + 1] = x[i, j] + 1.0f32
      y[i * 2 + 1, j * 2] = x[i, j] + 2.0f32
      y[i * 2 + 1, j * 2 + 1] = x[i, j] + 3.0f32
"""


@pytest.mark.parametrize(
    "text", ["pack y 1, 0 at=i -> row", "split j 3\nreorder j_o, i, j_i\npack y 1, 0 at=j_o -> row"]
)
def test_copies_of_what_several_stores_write_together(text: str) -> None:
    check(parse_kernel(SQUARES), parse_schedule(text), {}, 1)


@pytest.mark.parametrize(
    ("store", "instead"),
    [
        ("y[i * 2 + 1, j * 2 + 1]", "y[i * 2 + 1, j * 2]"),
        ("y[i * 2 + 1, j * 2]", "y[i * 2 + 1, j]"),
        ("y[i * 2, j * 2 + 1]", "y[i * 2, 11 - j * 2]"),
    ],
)
def test_several_stores_that_leave_gaps_are_refused(store: str, instead: str) -> None:
    with pytest.raises(ScheduleError, match="not known to be written as a whole"):
        apply(parse_kernel(SQUARES.replace(f"{store} =", f"{instead} =")), parse_schedule("pack y 1, 0 at=i -> row"))


def test_a_copy_of_what_is_not_all_written_is_refused() -> None:
    schedule = parse_schedule("split i 2 tail=overlap -> i_o, i_i\npack y 1, 0 at=i_o -> row")
    with pytest.raises(ScheduleError, match="not known to be written as a whole"):
        apply(parse_kernel(TURNED.replace("y[j, i] =", "y[j, 4 - i] =")), schedule)
    apart = TURNED.replace("[12, 5]", "[24, 5]").replace("y[j, i]", "y[2*j, i]")
    with pytest.raises(ScheduleError, match="not known to be written as a whole"):
        apply(parse_kernel(apart), parse_schedule("pack y 1, 0 at=i"))


STAGED = """
kernel staged(n: int64 in [0, inf], x: float32[n + 2]) -> (y: float32[n]):
  for i in 0..n:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for r in 0..3:
      acc[] = fma(x[i + r], x[i + 2 - r], acc[])
    y[i] = acc[]
"""


@pytest.mark.parametrize(
    "text",
    [
        "stage x at=i space=register",
        "split i 4 tail=min\nstage x at=i_o space=stack pad=true",
        "split i 4\nstage x at=i_o space=stack pad=true\nvectorize i_i",
        "stage x at=i space=heap pad=true -> window\nunroll r",
        "stage y at=i space=register",
    ],
)
@pytest.mark.parametrize("n", [0, 1, 4, 7])
def test_stage(text: str, n: int) -> None:
    check(parse_kernel(STAGED), parse_schedule(text), {"n": n}, n)
