"""Copies in another order that the automatic scheduler makes: whole ones and panels, in blocks turned in registers."""

from __future__ import annotations

import random
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.verify import verify
from opgen.machine import Machine, typical
from opgen.machine.model import Cache
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import random_inputs

SMALL = replace(typical(), l2=Cache(1024, 8, 64, 118e9), cores=2)
"""A machine whose second cache is so small that every copy is a large one."""

PRODUCT = """
kernel product(a: {T}[{G}, {M}, {P}], b: {T}[{G}, {N}, {P}]) -> (c: float32[{G}, {M}, {N}]):
  for g in 0..{G}:
    for i in 0..{M}:
      for j in 0..{N}:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for k in 0..{P}:
          acc[] = fma(float32(a[g, i, k]), float32(b[g, j, k]), acc[])
        c[g, i, j] = acc[]
"""


def product(dtype: str, groups: int, m: int, n: int, p: int) -> Kernel:
    """Rows times rows: lanes along the result's rows would read the second matrix with a stride."""
    text = PRODUCT
    for letter, value in {"T": dtype, "G": groups, "M": m, "N": n, "P": p}.items():
        text = text.replace(f"{{{letter}}}", str(value))
    return simplify(parse_kernel(text))


def assert_right(kernel: Kernel, seed: int, small: bool, machine: Machine | None = None) -> str:
    """The automatic schedule gives the interpreter's bits with one and two threads; gives its text."""
    schedule, after = scheduled(kernel, "cpu", machine or (SMALL if small else typical()))
    assert parse_schedule(str(schedule)) == schedule
    legal = legalize(after)
    verify(legal, bounds=True)
    inputs = random_inputs(kernel, {}, seed)
    (expected,) = interpret(kernel, inputs, {}).values()
    for threads in (1, 2):
        (found,) = run_kernel(legal, inputs, {}, threads, guarded=True).values()
        assert found.tobytes() == expected.tobytes(), f"seed {seed}, {threads} threads\n{schedule}"
    return str(schedule)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_products_of_rows(seed: int, small: bool, dtype: str) -> None:
    """Also where blocks do not divide the sizes, or do not fit them."""
    rng = random.Random(seed)
    groups, rows = rng.choice([1, 2]), rng.choice([3, 7, 9])
    kernel = product(dtype, groups, rows, rng.choice([16, 24, 40, 64]), rng.choice([2, 5, 16, 19]))
    assert_right(kernel, seed, small)


def test_a_large_copy_is_made_in_panels() -> None:
    """By the threads that use them, and outside the loop over rows, which all use the same."""
    kernel = product("float32", 1, 9, 128, 32)
    panels, whole = assert_right(kernel, 0, True), assert_right(kernel, 0, False)
    for step in ("at=j_o -> b_panel", "transpose b_panel_1_i, b_panel_2_i", "parallel j_o"):
        assert step in panels
    for step in ("pack b 0, 2, 1 -> b_packed", "transpose b_packed_1_i, b_packed_2_i"):
        assert step in whole


def test_panels_are_not_made_for_few_blocks_that_threads_cannot_share() -> None:
    assert "panel" not in assert_right(product("float32", 1, 9, 96, 32), 0, True)


def test_rows_of_all_lengths_come_out_right() -> None:
    """Blocks overlap at the ends."""
    for n in (16, 17, 31, 33):
        text = assert_right(product("float32", 1, 4, n, n), n, False)
        assert "transpose" in text


CROWDED = replace(typical(), l1=Cache(4096, 2, 64, 220e9), l2=Cache(1 << 20, 8, 64, 20e9), cores=2)
"""A machine whose first cache holds few lines that lie apart, and whose second one is slow."""

ROWS = """
kernel rows(a: {T}[{G}, {M}, {P}], b: {T}[{G}, {P}, {N}]) -> (c: {T}[{G}, {M}, {N}]):
  for g in 0..{G}:
    for i in 0..{M}:
      for j in 0..{N}:
        alloc acc: {S}[] register
        acc[] = 0.0{F}
        for k in 0..{P}:
          acc[] = fma({S}(a[g, i, k]), {S}(b[g, k, j]), acc[])
        c[g, i, j] = {T}(acc[])
"""


def rows_of(dtype: str, groups: int, m: int, n: int, p: int) -> Kernel:
    """Rows times columns: lanes along the rows of the second matrix."""
    compute = "float64" if dtype == "float64" else "float32"
    text = ROWS.replace("{F}", "f64" if dtype == "float64" else "f32")
    for letter, value in {"T": dtype, "S": compute, "G": groups, "M": m, "N": n, "P": p}.items():
        text = text.replace(f"{{{letter}}}", str(value))
    return simplify(parse_kernel(text))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("seed", range(6))
def test_rows_that_crowd_each_other(seed: int, dtype: str) -> None:
    """Also where tiles do not divide the sizes, or blocks do not divide the lanes' loop."""
    rng = random.Random(seed)
    groups, m, n = rng.choice([1, 2]), rng.choice([28, 31]), rng.choice([64, 72, 128])
    assert_right(rows_of(dtype, groups, m, n, rng.choice([17, 33])), seed, False, CROWDED)


NARROW = replace(CROWDED, l2=Cache(96 << 10, 8, 64, 20e9))
"""CROWDED, with a second cache that a copy of rows in a wider type would fill."""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("seed", range(6))
def test_narrow_rows_of_any_size(seed: int, dtype: str) -> None:
    rng = random.Random(seed)
    groups, m, n = rng.choice([1, 2]), rng.choice([28, 31, 35]), rng.choice([128, 136, 256])
    assert_right(rows_of(dtype, groups, m, n, rng.choice([33, 48, 51])), seed, False, NARROW)


COLUMNS = """
kernel columns(a: {T}[{G}, {P}, {M}], b: {T}[{G}, {P}, {N}]) -> (c: {T}[{M}, {N}]):
  for i in 0..{M}:
    for j in 0..{N}:
      alloc acc: {S}[] register
      acc[] = 0.0{F}
      for g in 0..{G}:
        for k in 0..{P}:
          acc[] = fma({S}(a[g, k, i]), {S}(b[g, k, j]), acc[])
      c[i, j] = {T}(acc[])
"""


def columns_of(dtype: str, groups: int, m: int, n: int, p: int) -> Kernel:
    """Columns times columns: scalars lie side by side along the tile."""
    compute = "float64" if dtype == "float64" else "float32"
    text = COLUMNS.replace("{F}", "f64" if dtype == "float64" else "f32")
    for letter, value in {"T": dtype, "S": compute, "G": groups, "M": m, "N": n, "P": p}.items():
        text = text.replace(f"{{{letter}}}", str(value))
    return simplify(parse_kernel(text))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("seed", range(8))
def test_columns_that_crowd_each_other(seed: int, dtype: str) -> None:
    """Also where tiles do not divide the sizes; machines of few registers have other tiles."""
    rng = random.Random(seed)
    m, n, p = rng.choice([28, 64, 72]), rng.choice([40, 64, 128]), rng.choice([17, 19])
    few = replace(CROWDED, vector_bytes=32, registers=16)
    assert_right(columns_of(dtype, rng.choice([1, 2]), m, n, p), seed, False, CROWDED if seed % 2 else few)


APART = """
kernel apart(a: {T}[2, {P}, 3, {W}], b: {T}[{P}, {C}]) -> (c: {T}[2, {C}, 3, {W}]):
  for n in 0..2:
    for j in 0..{C}:
      for h in 0..3:
        for w in 0..{W}:
          alloc acc: float32[] register
          acc[] = 0.0f32
          for k in 0..{P}:
            acc[] = fma(float32(a[n, k, h, w]), float32(b[k, j]), acc[])
          c[n, j, h, w] = {T}(acc[])
"""


def apart(dtype: str, width: int, columns: int, terms: int) -> Kernel:
    """Lanes along the columns, whose results do not lie side by side."""
    text = APART
    for letter, value in {"T": dtype, "W": width, "C": columns, "P": terms}.items():
        text = text.replace(f"{{{letter}}}", str(value))
    return simplify(parse_kernel(text))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "half"])
@pytest.mark.parametrize("width", [8, 14, 21, 30])
@pytest.mark.parametrize("columns", [16, 32])
def test_results_that_lie_apart(width: int, columns: int, dtype: str) -> None:
    """Lanes along the columns where terms are many and these fill two vectors, or rows fill none; else whichever costs
    less.
    """
    name = dtype.replace("half", "float16")
    text = assert_right(apart(name, width, columns, 200), width, False)
    if columns == 32 or width in (8, 21):
        assert "vectorize j_l" in text
    assert "vectorize" in assert_right(apart(name, width, columns, 9), width, False)


BLOCKS = """
kernel blocks(x: float32[8, 8]) -> (y: float32[8, 8], z: float32[8]):
  for i in 0..8:
    z[i] = 0.0f32
    for j in 0..8:
      y[i, j] = x[j, i]
  for e in 0..4:
    for f in 0..4:
      y[f, e] = y[e, f]
  for g in 0..6:
    for h in 0..6:
      y[g, h] = x[h, g]
  for u in 0..4:
    for v in 0..4:
      y[u, v] = x[u, v]
  for p in 0..4:
    for q in 0..4:
      y[p, q] = x[q, p] + 1.0f32
"""
ALONG = "what is read does not lie consecutively along one loop, and what is written along the other"
REFUSALS = {
    "transpose i, j": "'j' is not all that 'i' holds",
    "transpose e, f": "'y' is both read and written",
    "transpose g, h": "the loops do not both have the same constant extent, a power of two up to 64",
    "transpose u, v": ALONG,
    "transpose p, q": "what 'q' holds is no plain copy of an element, or of a pair",
    "unroll v\ntranspose u, v": "the loops are not two serial loops with bounds of their own",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        apply(parse_kernel(BLOCKS), parse_schedule(text))
    step = text.split("\n")[-1]
    assert refusal.value.message == f"{step}: {REFUSALS[text]}"


SIBLINGS = """
kernel siblings(x: bfloat16[8, 4]) -> (z: float32[8]):
  for o in 0..1:
    alloc l: bfloat16[3, 4] heap
    for a in 0..3:
      for b in 0..4:
        l[a, b] = x[a, b]
    for i in 0..4:
      if i < 3:
        z[i] = float32(l[i, 1])
  for o in 1..2:
    alloc l: bfloat16[5, 4] heap
    for c in 0..5:
      for d in 0..4:
        l[c, d] = x[c + 3, d]
    for i in 3..8:
      z[i] = float32(l[i - 3, 1])
"""


@pytest.mark.parametrize(
    "text", ["widen l", "stage l at=i space=stack pad=true -> m", "stage l at=i space=heap\nwiden l_local"]
)
def test_siblings_of_one_name_have_their_own_sizes(text: str) -> None:
    """As the parts of a partitioned loop have."""
    kernel = parse_kernel(SIBLINGS)
    after = apply(kernel, parse_schedule(text))
    x = np.arange(32).reshape(8, 4).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(interpret(after, {"x": x})["z"], x[:, 1].astype(np.float32))
