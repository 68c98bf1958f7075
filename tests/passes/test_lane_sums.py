"""Sums of whole rows, one in each lane: rows are loaded as they lie and merged, to the same bits."""

from __future__ import annotations

import random

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel, Load, Shuffle
from opgen.loop.parse import parse_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import distinct_exprs
from opgen.passes.lane_sums import merge_rows


def tree(terms: list[str]) -> str:
    """Neighbours first."""
    while len(terms) > 1:
        terms = [f"({left} + {right})" for left, right in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


def row_sums(count: int, dtype: str, value: str) -> Kernel:
    """`S` in a value is the sum of rows, each of `count` elements, from row `i` on."""
    total = tree([f"x[1, ramp(i, 1, {count}), {k}]" for k in range(count)])
    return parse_kernel(
        f"kernel case(x: {dtype}[2, 64, {count}], z: {dtype}[64]) -> (y: {dtype}[64]):\n"
        f"  for i in 0..3:\n    y[ramp(i*{count}, 1, {count})] = {value.replace('S', total)}\n"
        f"  for j in {3 * count}..64:\n    y[j] = z[j]\n"
    )


@pytest.mark.parametrize("value", ["S", "S + z[ramp(i, 1, N)]", "max(S, S * z[ramp(2, 1, N)])"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("count", [4, 8, 16])
def test_rows_are_merged_in_pairs(count: int, dtype: str, value: str) -> None:
    before = row_sums(count, dtype, value.replace("N", str(count)))
    after = merge_rows(before)
    verify(after)
    found = [e for e in distinct_exprs(after.body) if isinstance(e, Shuffle)]
    assert len(set(found)) == 2 * (count - 1)
    assert not any(isinstance(e, Load) and e.buffer == "x" and e.indices[1].type.lanes > 1 for e in _all(after))
    block = 16 // np.dtype(dtype).itemsize
    across = {e for e in found if any(k % count // block != at // block for at, k in enumerate(e.order))}
    assert len(across) == 2 * max(0, count // block - 1)  # as many as blocks of results, but one
    seed = random.randrange(1 << 30)
    rng = np.random.default_rng(seed)
    inputs = {"x": rng.standard_normal((2, 64, count)) * 100, "z": rng.standard_normal(64) * 100}
    typed = {name: value.astype(dtype) for name, value in inputs.items()}
    expected, result = (interpret(k, typed, {})["y"] for k in (before, after))
    assert np.array_equal(result.view(np.uint8), expected.view(np.uint8)), f"seed {seed}"


def _all(kernel: Kernel) -> list[object]:
    return list(distinct_exprs(kernel.body))


LEFT = {
    "terms one after the other": ("x: float32[64, 4]", " + ".join(f"x[ramp(i, 1, 4), {k}]" for k in range(4))),
    "another order": ("x: float32[64, 4]", tree([f"x[ramp(i, 1, 4), {k}]" for k in (0, 2, 1, 3)])),
    "fewer lanes than rows have elements": ("x: float32[64, 8]", tree([f"x[ramp(i, 1, 4), {k}]" for k in range(4)])),
    "an element twice": ("x: float32[64, 4]", tree([f"x[ramp(i, 1, 4), {k}]" for k in (0, 1, 2, 2)])),
    "another row": ("x: float32[64, 4]", tree([f"x[ramp({i}, 1, 4), {k}]" for k, i in enumerate((0, 0, 0, 1))])),
    "more lanes than rows have elements": ("x: float32[64, 4]", tree([f"x[ramp(i, 1, 8), {k}]" for k in range(4)])),
    "rows of several tables": (
        "x: float32[4, 64, 4]",
        tree([f"x[R, R, {k}]" for k in range(4)]).replace("R", "ramp(0, 1, 4)"),
    ),
    "rows that are apart": ("x: float32[64, 4]", tree([f"x[ramp(i, 2, 4), {k}]" for k in range(4)])),
    "two rows": ("x: float32[64, 2]", "x[ramp(i, 1, 2), 0] + x[ramp(i, 1, 2), 1]"),
    "products": ("x: float32[64, 4]", tree([f"x[ramp(i, 1, 4), {k}]" for k in range(4)]).replace("+", "*")),
    "under a mask": (
        "x: float32[64, 4]",
        tree([f"x[ramp(i, 1, 4), {k} if ramp(i, 1, 4) < 5i64x4]" for k in range(4)]),
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_anything_else_is_left_as_it_is(name: str) -> None:
    of, value = LEFT[name]
    lanes = {"two rows": 2, "more lanes than rows have elements": 8}.get(name, 4)
    kernel = parse_kernel(
        f"kernel case({of}) -> (y: float32[8]):\n  for i in 0..1:\n    y[ramp(0, 1, {lanes})] = {value}\n"
    )
    assert merge_rows(kernel) is kernel


TAKEN = [
    "kernel case(x: float32[64, 4], merged: float32[4]) -> (y: float32[4]):\n  y[R] = S + merged[R]\n",
    "kernel case(x: float32[64, 4], z: float32[4]) -> (y: float32[4]):\n  for merged in 0..1:\n    y[R] = S + z[R]\n",
    (
        "kernel case(x: float32[64, 4], z: float32[4]) -> (y: float32[4]):\n"
        "  let merged: float32 = z[0]\n  y[R] = S + broadcast(merged, 4)\n"
    ),
]


@pytest.mark.parametrize("text", TAKEN)
def test_the_name_is_not_taken(text: str) -> None:
    total = tree([f"x[ramp(0, 1, 4), {k}]" for k in range(4)])
    after = merge_rows(parse_kernel(text.replace("S", total).replace("R", "ramp(0, 1, 4)")))
    verify(after)
    assert any(isinstance(e, Load) and e.buffer == "merged1" for e in _all(after))
