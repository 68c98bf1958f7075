"""Windows with several results a channel, rows of many taps, and windows along columns: right, and in lanes."""

from __future__ import annotations

import pytest

from opgen.loop.bind import bind
from opgen.lower import Variant, lower
from opgen.passes.simplify import simplify
from opgen.spec import load_text
from tests.support.machines import MACHINES
from tests.support.scheduled import assert_right

MODULE = load_text(
    """
    op Forward {
      type T in {float32}
      input x: T[height, width, channels]
      input w: T[rows, columns, channels, several]
      output y: T[height, width, channels * several]
      y[i, j, c * several + q] = sum[r, s](x[i + r - 1, j + s - 1, c] * w[r, s, c, q])
    }
    op ByInput {
      type T in {float32}
      input w: T[rows, columns, channels, several]
      input g: T[height, width, channels * several]
      output x: T[height, width, channels]
      x[i, j, c] = sum[r, s, q](g[i + 1 - r, j + 1 - s, c * several + q] * w[r, s, c, q])
    }
    op ByTaps {
      type T in {float32}
      input x: T[height, width, channels]
      input g: T[height, width, channels * several]
      output w: T[3, 3, channels, several]
      w[r, s, c, q] = sum[i, j](x[i + r - 1, j + s - 1, c] * g[i, j, c * several + q])
    }
    op First {
      type T in {float32}
      input w: T[rows, columns, channels, several]
      input g: T[channels * several, height, width]
      output x: T[channels, height, width]
      x[c, i, j] = sum[r, s, q](g[c * several + q, i + 1 - r, j + 1 - s] * w[r, s, c, q])
    }
    op Column {
      type T in {float32}
      input x: T[height, width, channels]
      input g: T[height, width, channels]
      output w: T[5, channels]
      w[r, c] = sum[i, j](x[i + r - 2, j, c] * g[i, j, c])
    }
    """
)
SMALL = {"height": 5, "width": 7, "channels": 20, "rows": 3, "columns": 3}
CASES = {
    "two a channel": ("Forward", {**SMALL, "several": 2}, "split c"),
    "three a channel": ("Forward", {**SMALL, "several": 3}, "split c"),
    "two, by the input": ("ByInput", {**SMALL, "several": 2}, "flatten c, q"),
    "five, by the input": ("ByInput", {**SMALL, "several": 5}, "flatten c, q"),
    "more than are added up last": ("ByInput", {**SMALL, "several": 17}, "rfactor q"),
    "two of one tap": ("ByInput", {**SMALL, "several": 2, "rows": 1, "columns": 1}, "split c"),
    "three, channels first": ("First", {**SMALL, "several": 3}, "flatten c, q"),
    "two, by the taps": ("ByTaps", {**SMALL, "several": 2}, "split c"),
    "three, by the taps": ("ByTaps", {**SMALL, "several": 3}, "split c"),
    "channels first": ("First", {**SMALL, "several": 2, "rows": 5, "columns": 6}, "slice"),
    "many taps": ("Forward", {**SMALL, "several": 1, "rows": 1, "columns": 27, "width": 30, "height": 2}, "partition"),
    "along columns": ("Column", {**SMALL, "height": 9, "width": 3}, "regroup"),
}


@pytest.mark.parametrize("case", CASES)
def test_windows_are_right_and_have_lanes_of_their_own(case: str) -> None:
    name, sizes, step = CASES[case]
    lowered = lower(MODULE, MODULE.op(name), Variant({"T": "float32"}, {})).kernel
    kernel = simplify(bind(lowered, {p.name: sizes[p.name] for p in lowered.parameters}))
    text = assert_right(kernel, MACHINES["512 bits"], 0)
    assert "vectorize" in text, text
    assert step in text, text
