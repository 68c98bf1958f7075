"""Chains that end in sums, and chains in blocks of lanes, scheduled automatically: the same bits as unscheduled."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.parse import parse_kernel
from opgen.loop.verify import verify
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import parse_schedule
from tests.harness import random_arrays
from tests.support.machines import small_caches


def summed(seed: int) -> tuple[str, dict[str, tuple[int, ...]]]:
    """The text of a kernel whose intermediates are summed over images and rows, and the shapes of its inputs."""
    rng = random.Random(seed)
    n, p, c, k = rng.choice([1, 2, 3]), rng.choice([2, 4, 6, 7]), rng.choice([5, 16, 20, 32]), rng.choice([3, 16, 24])
    guard = rng.choice([None, f"i + j < {n + p - 2}"])
    rows = ["acc[] = fma(t[0, i, j, a], u[1, i, j, b], acc[])"]
    rows = rows if guard is None else [f"if {guard}:", f"  {rows[0]}"]
    body = "\n".join(f"              {row}" for row in rows)
    text = f"""
kernel summed(x: float32[{n}, {p}, {c}], w: float32[{n}, {p}, {k}]) -> (y: float32[{c}, {k}]):
  alloc t: float32[2, {n}, {p}, {c}] heap:
    alloc u: float32[2, {n}, {p}, {k}] heap:
      alloc g: float32[{c}, {k}] heap:
        for d in 0..{n}:
          for e in 0..{p}:
            for f in 0..{c}:
              t[0, d, e, f] = x[d, e, f]
              t[1, d, e, f] = x[d, e, f] * 2.0f32
        for l in 0..{n}:
          for m in 0..{p}:
            for o in 0..{k}:
              u[0, l, m, o] = w[l, m, o]
              u[1, l, m, o] = w[l, m, o] + 1.0f32
        for a in 0..{c}:
          for b in 0..{k}:
            alloc acc: float32[] register
            acc[] = 0.0f32
            for i in 0..{n}:
              for j in 0..{p}:
  {body.replace(chr(10), chr(10) + "  ")}
            g[a, b] = acc[]
        for q in 0..{c}:
          for r in 0..{k}:
            y[q, r] = g[q, r] * 0.5f32
"""
    return text, {"x": (n, p, c), "w": (n, p, k)}


@pytest.mark.parametrize("size", [1 << 8, 1 << 10, 1 << 13])
@pytest.mark.parametrize("seed", range(6))
def test_sums(seed: int, size: int) -> None:
    """Intermediates are made block by block while the sums wait in the results, in the same order of terms."""
    text, shapes = summed(seed)
    kernel = simplify(parse_kernel(text))
    schedule, after = scheduled(kernel, "cpu", small_caches(size))
    assert parse_schedule(str(schedule)) == schedule
    legal = legalize(after)
    verify(legal, bounds=True)
    arrays = random_arrays(shapes, "float32", seed)
    (expected,) = interpret(kernel, arrays, {}).values()
    for threads in (1, 2):
        (found,) = run_kernel(legal, arrays, {}, threads, guarded=True).values()
        assert np.array_equal(found.view(np.uint8), expected.view(np.uint8)), f"seed {seed}\n{schedule}"


def test_sums_in_blocks() -> None:
    """Sums go on from block to block where the intermediates together are larger than the second cache."""
    kernels = [simplify(parse_kernel(summed(seed)[0])) for seed in range(6)]
    texts = [str(scheduled(kernel, "cpu", small_caches(1 << 11))[0]) for kernel in kernels]
    assert any("carry " in text and "compute_at t at=" in text and "compute_at u at=" in text for text in texts)


OUTER = """
kernel outer(x: float32[56, 28, 128], w: float32[56, 28, 128]) -> (y: float32[128, 128]):
  alloc t: float32[8, 56, 28, 128] heap:
    alloc u: float32[8, 56, 28, 128] heap:
      alloc g: float32[8, 128, 128] heap:
        for d in 0..56:
          for e in 0..28:
            for f in 0..128:
              {made}
        for l in 0..56:
          for m in 0..28:
            for o in 0..128:
              {used}
        for n in 0..8:
          for a in 0..128:
            for b in 0..128:
              alloc acc: float32[] register
              acc[] = 0.0f32
              for i in 0..56:
                for j in 0..28:
                  acc[] = fma(t[n, i, j, a], u[n, i, j, b], acc[])
              g[n, a, b] = acc[]
        for q in 0..128:
          for r in 0..128:
            y[q, r] = g[0, q, r] + g[7, q, r]
"""


@pytest.mark.parametrize("cores", [1, 2])
def test_outer_products_in_blocks(cores: int) -> None:
    """Each core has sums of its own, so that threads meet once."""
    made = "\n              ".join(f"t[{n}, d, e, f] = x[d, e, f] * {n}.0f32" for n in range(8))
    used = "\n              ".join(f"u[{n}, l, m, o] = w[l, m, o] + {n}.0f32" for n in range(8))
    kernel = simplify(parse_kernel(OUTER.replace("{made}", made).replace("{used}", used)))
    usual = replace(typical(), cores=cores)
    machine = replace(usual, l2=replace(usual.l2, size=1 << 21))
    schedule, after = scheduled(kernel, "cpu", machine)
    block = "i_b" if cores == 1 else "i_r_b"
    assert f"carry {block}" in str(schedule)
    assert f"compute_at t at={block}" in str(schedule)
    apart = "divide i_p at=n space=heap -> sums\nparallel i_p\n" in str(schedule)
    assert apart == (cores == 2)
    arrays = random_arrays({"x": (56, 28, 128), "w": (56, 28, 128)}, "float32", 0)
    (usual_order,) = run_kernel(legalize(kernel), arrays, {}, 1, guarded=True).values()
    found = [run_kernel(legalize(after), arrays, {}, threads, guarded=True)["y"] for threads in (1, 2)]
    np.testing.assert_array_equal(found[0], found[1])
    if apart:  # the order of terms is another one: two sums of half as many terms each
        sizes = np.einsum("ija,ijb->ab", np.abs(7 * arrays["x"]), np.abs(arrays["w"]) + 7)
        np.testing.assert_array_less(np.abs(found[0] - usual_order), 56 * 28 * 2.0**-24 * sizes)
    else:
        np.testing.assert_array_equal(found[0], usual_order)
