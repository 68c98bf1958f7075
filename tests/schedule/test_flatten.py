"""Two dimensions regarded as one."""

from __future__ import annotations

import pytest

from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import assert_same

ROWS = """
kernel rows(x: float32[3, 4, 6], w: float32[3, 2]) -> (y: float32[2, 4, 6]):
  for k in 0..2:
    for i in 0..4:
      for j in 0..6:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for c in 0..3:
          acc[] = fma(x[c, i, j], w[c, k], acc[])
        y[k, i, j] = acc[]
"""


def test_rows_are_seen_as_one_and_known_as_before() -> None:
    kernel = parse_kernel(ROWS)
    after = apply(kernel, parse_schedule("flatten i, j -> p\nsplit p 8\nvectorize p_i"))
    assert "x: float32[3, 1, 24] as [3, 4, 6]" in print_kernel(after)
    assert parse_kernel(print_kernel(after)) == after
    assert_same(kernel, after, {}, 1)


MAPS = """
kernel maps(x: float32[2, 3, 4, 5]) -> (y: float32[2, 3, 4, 5]):
  for n in 0..2:
    for i in 0..3:
      for j in 0..4:
        for c in 0..5:
          y[n, i, j, c] = 2.0f32 * x[n, i, j, c]
"""


@pytest.mark.parametrize("text", ["flatten i, j -> p\nflatten n, p -> q", "flatten n, i -> p\nflatten p, j -> q"])
def test_dimensions_of_one_element_may_stand_between(text: str) -> None:
    kernel = parse_kernel(MAPS)
    after = apply(kernel, parse_schedule(text))
    assert "x: float32[1, 1, 24, 5] as [2, 3, 4, 5]" in print_kernel(after)
    assert "y[0, 0, q, c]" in print_kernel(after)
    assert_same(kernel, after, {}, 1)


def test_buffers_of_the_kernels_own_and_subscripts_by_both() -> None:
    kernel = parse_kernel(
        """
        kernel neighbours(x: float32[3, 8], w: float32[4, 2]) -> (y: float32[3, 4]):
          alloc z: float32[3, 4, 2] heap
          for i in 0..3:
            for c in 0..4:
              for q in 0..2:
                z[i, c, q] = x[i, c * 2 + q] * w[c, q]
          for i in 0..3:
            for k in 0..4:
              y[i, k] = z[i, k, 0] + z[i, k, 1]
        """.replace("\n        ", "\n")
    )
    after = apply(kernel, parse_schedule("flatten c, q -> j"))
    text = print_kernel(after)
    assert "z[i, 0, j] = x[i, j] * w[0, j]" in text
    assert "y[i, k] = z[i, 0, k * 2] + z[i, 0, k * 2 + 1]" in text
    assert_same(kernel, after, {}, 1)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("w[c, k]", "w[c, k + j - j]", "something depends on 'i' or 'j' alone"),
        ("for j in 0..6", "for j in 0..5", "'j' is not a whole row"),
        ("x[c, i, j]", "x[c, i, j] + x[c, 0, 0]", "'x' is used in another way, too"),
        ("x[c, i, j]", "x[c, i, 5 - j]", "'x' is used in another way|something depends"),
        ("        y[k, i, j] = acc[]", "        y[k, i, j] = acc[]\n      y[k, i, 0] = 1.0f32", "used in another way"),
    ],
)
def test_what_is_not_rows_as_a_whole_is_refused(before: str, after: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        apply(parse_kernel(ROWS.replace(before, after)), parse_schedule("flatten i, j"))
