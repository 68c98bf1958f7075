"""Simplification: the same results, nothing more to do afterwards, and the same object where nothing was to do."""

from __future__ import annotations

import random

import pytest

from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.passes.simplify import simplify
from tests.passes.programs import Programs
from tests.schedule.differential import assert_same, specialised


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_keep_their_results(seed: int) -> None:
    kernel = Programs(seed).kernel()
    simple = simplify(kernel)
    assert simplify(simple) is simple, f"seed {seed}: not idempotent\n{print_kernel(simple)}"
    rng = random.Random(seed)
    sizes = {"n": rng.randint(0, 5), "m": rng.randint(1, 4)}
    assert_same(kernel, simple, sizes, seed, print_kernel(kernel) + print_kernel(simple))
    assert_same(kernel, specialised(kernel, sizes), sizes, seed, print_kernel(kernel))


CASES = {
    "a proved condition goes, and so does a dead branch": (
        "for i in 0..n:\n    if i >= 0 and i < n:\n      y[i] = 1.0f32\n    else:\n      y[i] = 2.0f32",
        "for i in 0..n:\n    y[i] = 1.0f32",
    ),
    "a disproved condition leaves its other branch": (
        "for i in 0..n:\n    if i > n:\n      y[i] = 1.0f32\n    else:\n      y[i] = 2.0f32",
        "for i in 0..n:\n    y[i] = 2.0f32",
    ),
    "a loop of no iterations goes": ("for i in 3..3:\n    y[i] = 1.0f32\n  y[0] = 2.0f32", "y[0] = 2.0f32"),
    "a loop of one iteration becomes its body": ("for i in n - 1..n:\n    y[i] = 1.0f32", "y[n - 1] = 1.0f32"),
    "a minimum is decided by bounds": (
        "for i in 0..n:\n    y[min(i, n)] = 1.0f32",
        "for i in 0..n:\n    y[i] = 1.0f32",
    ),
    "a quotient within its divisor is 0": (
        "for i in 0..4:\n    y[i // 4 + i % 4] = 1.0f32",
        "for i in 0..4:\n    y[i] = 1.0f32",
    ),
    "a quotient that is the same everywhere": (
        "for i in 8..12:\n    y[i % 8 + (i - 20) // 50 + 1] = 1.0f32",
        "for i in 8..12:\n    y[i - 8] = 1.0f32",
    ),
    "a quotient of multiples and a lesser rest": (
        "for i in 0..n // 2:\n    for j in 0..2:\n      if (i * 2 + j) % 2 == 1:\n        y[(i * 2 + j) // 2] = 1.0f32",
        "for i in 0..n // 2:\n    for j in 0..2:\n      if j == 1:\n        y[i] = 1.0f32",
    ),
    "a quotient of a greater rest stays": (
        "for i in 0..n // 4:\n    for j in 0..3:\n      y[(i * 2 + j) // 2] = 1.0f32",
        "for i in 0..n // 4:\n    for j in 0..3:\n      y[(i * 2 + j) // 2] = 1.0f32",
    ),
    "like terms are collected": ("y[n + 3 - (n - 1) - 4] = 1.0f32", "y[0] = 1.0f32"),
    "an unread buffer goes": ("alloc t: float32[4] stack\n  t[0] = 1.0f32\n  y[0] = 2.0f32", "y[0] = 2.0f32"),
    "a name for a name goes": ("let a: int64 = n\n  y[a - n] = 1.0f32", "y[0] = 1.0f32"),
    "a float sum with 0.0 stays, for -0.0 is not 0.0": (
        "y[0] = x[0]*1.0f32 + 0.0f32",
        "y[0] = x[0] + 0.0f32",
    ),
    "what is kept to be read once is read where it came from": (
        "for i in 0..n:\n    alloc e: float32[] register\n    e[] = x[i]\n    y[i] = e[] + 1.0f32",
        "for i in 0..n:\n    y[i] = x[i] + 1.0f32",
    ),
    "so it is where another buffer is declared in between": (
        "for i in 0..n:\n    alloc e: float32[] register\n    alloc s: float32[] register\n    e[] = x[i]\n"
        "    s[] = 0.0f32\n    for k in 0..n:\n        s[] = s[] + x[k]\n    y[i] = e[] + s[]",
        "for i in 0..n:\n    alloc s: float32[] register\n"
        "    s[] = 0.0f32\n    for k in 0..n:\n        s[] = s[] + x[k]\n    y[i] = x[i] + s[]",
    ),
    "or read several times by one store": (
        "for i in 0..n:\n    alloc e: float32[] register\n    e[] = x[i]\n    y[i] = e[]*e[]",
        "for i in 0..n:\n    y[i] = x[i]*x[i]",
    ),
    "but not if that is written in between, or read again and again": (
        "for i in 1..n:\n    alloc e: float32[] register\n    e[] = y[i]\n    y[i] = 2.0f32\n    y[i - 1] = e[]\n"
        "  alloc e: float32[] register\n  e[] = x[0]\n  for i in 0..n:\n      y[i] = e[]",
        "for i in 1..n:\n    alloc e: float32[] register\n    e[] = y[i]\n    y[i] = 2.0f32\n    y[i - 1] = e[]\n"
        "  alloc e: float32[] register\n  e[] = x[0]\n  for i in 0..n:\n      y[i] = e[]",
    ),
    "a minimum under a condition is a step of a reduction": (
        "alloc a: int32[] register\n  a[] = 9i32\n  for i in 0..n:\n"
        "    a[] = select(x[i] > 0.0f32, min(a[], int32(i)), a[])\n  y[0] = float32(a[])",
        "alloc a: int32[] register\n  a[] = 9i32\n  for i in 0..n:\n"
        "    a[] = min(a[], select(x[i] > 0.0f32, int32(i), 2147483647i32))\n  y[0] = float32(a[])",
    ),
    "a mask that always holds goes": (
        "y[ramp(0, 1, 4) if ramp(0, 1, 4) < broadcast(n, 4)] = broadcast(x[0], 4)",
        "y[ramp(0, 1, 4)] = broadcast(x[0], 4)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    head = "kernel case(n: int64 in [8, inf], x: float32[n]) -> (y: float32[n]):\n  "
    before, after = (parse_kernel(f"{head}{text}\n") for text in CASES[name])
    assert print_kernel(simplify(before)) == print_kernel(after)


def test_nothing_to_do_gives_the_same_object() -> None:
    kernel = parse_kernel(
        "kernel same(n: int64 in [0, inf], x: float32[n]) -> (y: float32[n]):\n"
        "  for i in 0..n:\n    if i > 3:\n      y[i] = x[i] + 1.0f32\n"
    )
    verify(kernel)
    assert simplify(kernel) is kernel
