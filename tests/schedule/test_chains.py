"""Chains of nests, scheduled automatically: bit for bit what the unscheduled program gives."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import For, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import buffers_in
from opgen.machine import Machine, typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.auto.chain.chain import is_chain
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import apply, parse_schedule
from opgen.schedule.why import why
from opgen.spec import load
from tests.harness import Call, random_arrays
from tests.support.machines import small_caches

SPECS = Path(__file__).parents[1] / "specs"
TILES = load(SPECS / "chains.op")
SAMPLES = load(SPECS / "samples.op")


def kernel_of(call: Call) -> Kernel:
    lowered, parameters = call.kernel()
    return simplify(bind(lowered, parameters))


def tiles(seed: int, dtype: str = "float32") -> Call:
    rng = random.Random(seed)
    channels, outputs = rng.choice([3, 8, 16, 20]), rng.choice([5, 16, 20, 32])
    image = (rng.choice([1, 2, 3]), rng.randint(1, 9), rng.randint(1, 9), channels)
    return Call(TILES, TILES.op("Tiles"), {"image": image, "taps": (3, 3, channels, outputs)}, dtype=dtype)


def assert_scheduled_is_the_same(call: Call, machine: Machine, seed: int) -> None:
    kernel = kernel_of(call)
    schedule, after = scheduled(kernel, "cpu", machine)
    assert parse_schedule(str(schedule)) == schedule
    legal = legalize(after)
    verify(legal, bounds=True)
    arrays = random_arrays(call.shapes, call.dtype, seed)
    inputs = {b.name: arrays[b.name] for b in kernel.inputs}
    for name, expected in interpret(kernel, inputs, {}).items():
        for threads in (1, 2):
            found = run_kernel(legal, inputs, {}, threads, guarded=True)[name]
            same = np.array_equal(found.view(np.uint8), np.ascontiguousarray(expected).view(np.uint8))
            assert same, f"seed {seed}, {call.op.name} {dict(call.shapes)}\n{schedule}"


@pytest.mark.parametrize("size", [1 << 12, 1 << 14, 1 << 16, 1 << 20])
@pytest.mark.parametrize("seed", range(6))
def test_tiles(seed: int, size: int) -> None:
    call = tiles(seed, "float64" if seed % 3 == 2 else "float32")
    assert_scheduled_is_the_same(call, small_caches(size), seed)


@pytest.mark.parametrize("name", ["Softmax", "LayerNorm"])
@pytest.mark.parametrize("seed", range(3))
def test_rows(name: str, seed: int) -> None:
    rng = random.Random(seed)
    rows, columns = rng.randint(1, 9), rng.randint(1, 40)
    shapes = {"logits": (rows, columns)} if name == "Softmax" else {"x": (rows, columns)}
    if name == "LayerNorm":
        shapes |= {"scale": (columns,), "offset": (columns,)}
    attrs = {"epsilon": 0.001} if name == "LayerNorm" else {}
    call = Call(SAMPLES, SAMPLES.op(name), shapes, attrs, dtype="float32")
    kernel = kernel_of(call)
    legal = legalize(scheduled(kernel, "cpu", small_caches(1 << 10))[1])
    arrays = random_arrays(shapes, "float32", seed)
    (expected,) = interpret(kernel, arrays, {}).values()
    for threads in (1, 2):
        (found,) = run_kernel(legal, arrays, {}, threads, guarded=True).values()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)  # exp is the platform's


def test_tiles_compute_the_windows() -> None:
    call = tiles(1, "float64")
    arrays = random_arrays(call.shapes, "float64", 0)
    after = legalize(scheduled(kernel_of(call), "cpu", small_caches(1 << 14))[1])
    found = run_kernel(after, arrays, {})["result"]
    padded = np.pad(arrays["image"], ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = sliding_window_view(padded, (3, 3), axis=(1, 2))
    np.testing.assert_allclose(found, np.einsum("nyxcrs,rsck->nyxk", windows, arrays["taps"]), rtol=0, atol=1e-12)


def test_blocks() -> None:
    """Of a larger image, the chain is made in blocks; weights once."""
    shapes = {"image": (1, 56, 56, 64), "taps": (3, 3, 64, 64)}
    kernel = kernel_of(Call(TILES, TILES.op("Tiles"), shapes, dtype="float32"))
    assert is_chain(kernel, typical())
    text = str(scheduled(kernel, "cpu", typical())[0])
    assert "compute_at products at=y_b space=heap again=false\n" in text
    assert "compute_at patches at=y_b space=heap again=false\n" in text
    assert "compute_at weights" not in text
    after = apply(kernel, parse_schedule(text), check=False)
    (blocks,) = (s for s in after.body.body.statements if isinstance(s, For) and s.var == "y_b")
    heap = {o.name for o in buffers_in(blocks) if o.space == "heap"}
    assert blocks.kind == "parallel"
    assert heap >= {"products", "patches"}


CHECKED = """
kernel checked(x: float32[24, 20], w: float32[20, 32]) -> (y: float32[24, 32]):
  alloc t: float32[24, 2, 20] heap:
    for i in 0..24:
      for c in 0..20:
        t[i, 0, c] = x[i, c]
        t[i, 1, c] = x[i, c] * 2.0f32
    for n in 0..24:
      for k in 0..32:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for a in 0..20:
          acc[] = fma(t[n, 0, a], w[a, k], acc[])
        for a in 0..20:
          acc[] = fma(t[n, 1, a], w[a, k], acc[])
        y[n, k] = acc[]
  alloc total: float32[] register
  total[] = 0.0f32
  for p in 0..24:
    for q in 0..32:
      total[] = fma(y[p, q], 0.0f32, total[])
  if total[] != total[]:
    for p_1 in 0..24:
      for q_1 in 0..32:
        y[p_1, q_1] = 1.0f32
"""


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_check_at_the_end(spoilt: bool) -> None:
    kernel = parse_kernel(CHECKED)
    schedule, after = scheduled(kernel, "cpu", small_caches(1 << 11))
    assert "compute_at t at=" in str(schedule)
    assert "vectorize q_1_l" in str(schedule)
    arrays = random_arrays({"x": (24, 20), "w": (20, 32)}, "float32", 0)
    if spoilt:
        arrays["x"][3, 4] = np.inf
    expected = interpret(kernel, arrays, {})["y"]
    np.testing.assert_array_equal(run_kernel(legalize(after), arrays, {}, 2, guarded=True)["y"], expected)
    assert (expected[0, 0] == 1.0) == spoilt


ROWS = """
kernel rows(x: float32[24, 40]) -> (y: float32[24, 40]):
  alloc sum_of: float32[24] heap
  alloc twice: float32[24, 40] heap
  for i in 0..24:
    for j in 0..40:
      twice[i, j] = x[i, j] * 2.0f32
  for a in 0..24:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for b in 0..40:
      acc[] = acc[] + x[a, b]
    sum_of[a] = acc[]
  for n in 0..24:
    for k in 0..40:
      y[n, k] = twice[n, k] + sum_of[n]
"""


def test_an_intermediate_of_one_element_a_block() -> None:
    kernel = parse_kernel(ROWS)
    usual = small_caches(1 << 8)
    cores = replace(usual, cores=24)
    schedule, after = scheduled(kernel, "cpu", cores)
    assert "compute_at sum_of at=n " in str(schedule)
    arrays = random_arrays({"x": (24, 40)}, "float32", 0)
    arrays["x"] = np.round(arrays["x"] * 4)  # sums are exact in any order
    expected = interpret(kernel, arrays, {})["y"]
    np.testing.assert_array_equal(run_kernel(legalize(after), arrays, {}, 2, guarded=True)["y"], expected)


TURNED = """
kernel turned(w: float32[4, 24, 20]) -> (y: float32[4, 20, 24]):
  for k in 0..20:
    for c in 0..24:
      alloc part: float32[4] register
      part[0] = w[3, c, k]
      part[1] = w[2, c, k]
      part[2] = part[0] + part[1]
      part[3] = part[0] - part[1]
      y[0, k, c] = part[0]
      y[1, k, c] = part[2]
      y[2, k, c] = part[3]
      y[3, k, c] = part[3] * 0.5f32
"""


def test_reads_with_a_part_in_several_results_are_packed() -> None:
    kernel = parse_kernel(TURNED)
    schedule, after = scheduled(kernel)
    assert "pack w 0, 2, 1 -> w_packed" in str(schedule)
    assert "vectorize c_l" in str(schedule)
    arrays = random_arrays({"w": (4, 24, 20)}, "float32", 0)
    expected = interpret(kernel, arrays, {})["y"]
    for threads in (1, 2):
        np.testing.assert_array_equal(run_kernel(legalize(after), arrays, {}, threads, guarded=True)["y"], expected)


def test_they_are_packed_in_panels_where_they_are_large() -> None:
    kernel = parse_kernel(TURNED.replace("24", "128"))
    schedule, after = scheduled(kernel, "cpu", small_caches(1 << 14))
    assert "pack w 0, 2, 1 at=c_o -> w_panel" in str(schedule)
    assert "reorder c_o, k\n" in str(schedule)
    assert parse_schedule(str(schedule)) == schedule
    arrays = random_arrays({"w": (4, 128, 20)}, "float32", 0)
    expected = interpret(kernel, arrays, {})["y"]
    for threads in (1, 2):
        np.testing.assert_array_equal(run_kernel(legalize(after), arrays, {}, threads, guarded=True)["y"], expected)


APART = """
kernel apart(t: float32[4, {H}, {W}, {K}]) -> (y: float32[{K}, {HEIGHT}, {WIDTH}]):
  for k in 0..{K}:
    for p in 0..{H}:
      for q in 0..{W}:
        y[k, p * 2, q * 2] = t[0, p, q, k] + t[1, p, q, k]
        y[k, p * 2 + 1, q * 2] = t[0, p, q, k] - t[2, p, q, k]
        y[k, p * 2, q * 2 + 1] = t[1, p, q, k] + t[3, p, q, k]
        y[k, p * 2 + 1, q * 2 + 1] = t[2, p, q, k] - t[3, p, q, k]
"""


@pytest.mark.parametrize(("high", "wide", "channels"), [(5, 8, 16), (3, 7, 40), (4, 1, 24), (1, 9, 20), (6, 4, 3)])
def test_results_across_what_is_read_are_transposed(high: int, wide: int, channels: int) -> None:
    """Rows of them, where all that a row spans is written."""
    sizes = {"K": channels, "HEIGHT": 2 * high, "WIDTH": 2 * wide, "H": high, "W": wide}
    text = APART
    for name, size in sizes.items():
        text = text.replace(f"{{{name}}}", str(size))
    kernel = parse_kernel(text)
    schedule, after = scheduled(kernel)
    assert parse_schedule(str(schedule)) == schedule
    assert "pack y 1, 2, 0 at=p -> y_rows" in str(schedule)
    assert "vectorize k_l" in str(schedule)
    legal = legalize(after)
    verify(legal, bounds=True)
    arrays = random_arrays({"t": (4, high, wide, channels)}, "float32", 0)
    expected = interpret(kernel, arrays, {})["y"]
    for threads in (1, 2):
        np.testing.assert_array_equal(run_kernel(legal, arrays, {}, threads, guarded=True)["y"], expected)


MADE = """
kernel made(w: float32[{C}, {K}], x: float32[14, {K}]) -> (y: float32[2, 14, {C}]):
  alloc t: float32[2, {K}, {C}] heap:
    for k in 0..{K}:
      for c in 0..{C}:
        alloc part: float32[1] register
        part[0] = w[c, k]
        t[0, k, c] = part[0] + 1.0f32
        t[1, k, c] = part[0] * 2.0f32
    for i in 0..2:
      for p in 0..14:
        for o in 0..{C}:
          alloc acc: float32[] register
          acc[] = 0.0f32
          for a in 0..{K}:
            acc[] = fma(x[p, a], t[i, a, o], acc[])
          y[i, p, o] = acc[]
"""


@pytest.mark.parametrize("size", [1 << 13, 1 << 14, 1 << 15])
@pytest.mark.parametrize(("columns", "terms"), [(64, 64), (64, 128), (40, 128), (64, 120)])
def test_what_blocks_are_made_of_is_packed_block_by_block(columns: int, terms: int, size: int) -> None:
    kernel = parse_kernel(MADE.replace("{C}", str(columns)).replace("{K}", str(terms)))
    schedule, after = scheduled(kernel, "cpu", small_caches(size))
    text = str(schedule)
    assert parse_schedule(text) == schedule
    fits = columns == 64  # lanes fill their vectors
    assert ("pack w 1, 0 at=" in text) == fits
    assert ("pack w 1, 0 at=a_b" in text) == (columns == 64 and "carry a_b" in text)
    legal = legalize(after)
    verify(legal, bounds=True)
    arrays = random_arrays({"w": (columns, terms), "x": (14, terms)}, "float32", 0)
    expected = interpret(kernel, arrays, {})["y"]
    for threads in (1, 2):
        np.testing.assert_array_equal(run_kernel(legal, arrays, {}, threads, guarded=True)["y"], expected)


def test_why_tells_the_steps_that_belong_to_no_candidate() -> None:
    kernel = kernel_of(Call(SAMPLES, SAMPLES.op("Softmax"), {"logits": (9, 33)}))
    nests, beyond = why(kernel, typical()).split("besides these:\n")
    assert "nest over " in nests
    steps = {str(s) for s in scheduled(kernel, "cpu", typical())[0].steps}
    told = {line.strip() for line in beyond.splitlines()}
    assert told < steps
    assert any(line.startswith("compute_at ") for line in told)
