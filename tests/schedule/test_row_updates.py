"""Rows that are updated at places that values tell: each right after it was made."""

from __future__ import annotations

import os

import numpy as np
import pytest

from opgen.loop.bind import bind
from opgen.lower import Variant, lower
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.spec import load_text

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
MODULE = load_text("""
op AddAcross {
  type T in {float32, float64}
  input x: T[rows, columns]
  input ids: int64[rows, count]
  input v: T[rows, count]
  output y: T[rows, columns]
  y[i, j] = x[i, j]
  y[i, if ids[i, k] < 0 then ids[i, k] + columns else ids[i, k]] add= v[i, k]
}

op AddDown {
  type T in {float32, float64}
  input x: T[rows, columns]
  input ids: int64[count, columns]
  input v: T[count, columns]
  output y: T[rows, columns]
  y[i, j] = x[i, j]
  y[ids[k, j], j] add= v[k, j]
}
""")


@pytest.mark.parametrize("count", [3, 20, 21])
@pytest.mark.parametrize(("name", "merged"), [("AddAcross", True), ("AddDown", False)])
def test_a_row_is_updated_right_after_it_was_made(name: str, merged: bool, count: int) -> None:
    sizes = {"rows": 9, "columns": 33, "count": count}
    kernel = simplify(bind(lower(MODULE, MODULE.op(name), Variant({"T": "float32"}, {})).kernel, sizes))
    schedule, after = scheduled(kernel)
    assert ("merge i, " in str(schedule)) == merged
    assert ("split y_at_k 4 " in str(schedule)) == (merged and count > 8)
    rng = np.random.default_rng(SEED)
    of_ids, places = ((9, count), (-33, 33)) if merged else ((count, 33), (0, 9))
    arrays = {
        "x": rng.standard_normal((9, 33), np.float32),
        "ids": rng.integers(*places, of_ids),
        "v": rng.standard_normal(of_ids, np.float32),
    }
    (expected,) = run_kernel(legalize(kernel), arrays, {}, 1).values()
    for threads in (1, 2):
        (found,) = run_kernel(legalize(after), arrays, {}, threads, guarded=True).values()
        np.testing.assert_array_equal(found, expected, f"seed {SEED}")
