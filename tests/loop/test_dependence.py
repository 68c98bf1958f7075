"""Independence of a loop's iterations: a table, and that what is called independent is."""

from __future__ import annotations

import random

import pytest

from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.dependence import independent, why_dependent
from opgen.loop.analysis.scopes import walk_kernel
from opgen.loop.nodes import For, If
from opgen.loop.parse import parse_kernel
from opgen.loop.walk import stores, walk
from tests.loop.oracle import value

HEADER = (
    "kernel f(x: float32[N, H], at: int64[N], w: int64 in [1, inf], N: int64 in [0, inf], H: int64 in [1, inf], "
    "C: int64 in [0, inf], s: int64 in [1, inf]) -> (y: float32[N, H, C], z: float32[N * H * C], t: int64[8]):\n"
)


def loop_in(body: str, name: str = "i") -> tuple[For, Context]:
    """The loop over a variable in a kernel with the body given, and the context where it stands."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    for s, context in walk_kernel(parse_kernel(HEADER + lines)):
        if isinstance(s, For) and s.var == name:
            return s, context
    raise AssertionError(f"no loop over {name}")


INDEPENDENT = [
    "for i in 0 .. N:\n  y[i, 0, 0] = x[i, 0]",
    "for i in 0 .. N:\n  for j in 0 .. H:\n    for c in 0 .. C:\n      z[(i*H + j)*C + c] = 1.0f32",
    "for a in 0 .. N:\n  for i in 0 .. H:\n    for c in 0 .. C:\n      z[(a*H + i)*C + c] = 1.0f32",
    "for i in 0 .. N * H:\n  for c in 0 .. C:\n    y[i // H, i % H, c] = 1.0f32",
    "for i in 0 .. N * H * C:\n  y[i // C // H, i // C % H, i % C] = 1.0f32",
    "for i in 0 .. N:\n  for k in 0 .. 16:\n    if i*16 + k < C:\n      y[0, 0, i*16 + k] = y[0, 0, i*16 + k] + 1.0f32",
    "for i in 0 .. N:\n  alloc acc: float32[1] register\n  acc[0] = x[i, 0]\n  acc[0] = -acc[0]\n  y[i, 0, 0] = acc[0]",
    "for i in 0 .. N:\n  let j: int64 = i * 2 + 1\n  z[j] = 1.0f32\n  z[j + 1] = 2.0f32",
    "for i in 0 .. N:\n  z[ramp(i * 16, 1, 16)] = broadcast(1.0f32, 16)",
    "for i in 0 .. N:\n  z[N - i] = x[i, 0]",
    "for i in 0 .. N:\n  z[at[0] + i] = 1.0f32",
    "for i in 0 .. s:\n  for j in 0 .. H:\n    z[j * s + i] = 1.0f32",
    "for i in 0 .. 16:\n  for j in 0 .. H:\n    z[j * 16 + i] = 1.0f32",
    "for i in 0 .. N:\n  pass",
    "for i in 3 .. 4:\n  z[0] = 1.0f32",
    "for i in 0 .. N:\n  for j in 0 .. i:\n    y[i, j, 0] = x[j, i]",
    "let lanes: int64x4 = ramp(0, 1, 4)\nfor i in 0 .. N:\n  z[lanes + broadcast(4 * i, 4)] = broadcast(1.0f32, 4)",
]


@pytest.mark.parametrize("body", INDEPENDENT)
def test_independent_loops(body: str) -> None:
    assert why_dependent(*loop_in(body)) is None


STORES = "two iterations of 'i' may store to the same element of '{}'"
LOADS = "an iteration of 'i' may load an element of '{}' that another stores"
DEPENDENT = [
    ("for i in 0 .. N:\n  z[0] = x[i, 0]", STORES.format("z")),
    ("for i in 0 .. N:\n  z[i] = z[i + 1]", LOADS.format("z")),
    ("for i in 0 .. N:\n  z[i // 2] = 1.0f32", STORES.format("z")),
    ("for i in 0 .. N:\n  for j in 0 .. H:\n    z[i + j] = 1.0f32", STORES.format("z")),
    ("for i in 0 .. N:\n  z[at[i]] = 1.0f32", STORES.format("z")),
    ("for i in 0 .. N:\n  z[t[0] + i] = 1.0f32", STORES.format("z")),
    ("for i in 0 .. N:\n  for k in 0 .. 17:\n    z[i*16 + k] = 1.0f32", STORES.format("z")),
    ("for i in 0 .. N:\n  z[ramp(i * 15, 1, 16)] = broadcast(1.0f32, 16)", STORES.format("z")),
    ("alloc acc: float32[1] stack\nfor i in 0 .. N:\n  acc[0] = acc[0] + 1.0f32", STORES.format("acc")),
    ("for i in 0 .. N:\n  for j in 0 .. H:\n    z[i * s + j] = 1.0f32", STORES.format("z")),
    (
        "let lanes: int64x4 = ramp(0, 2, 4)\nfor i in 0 .. N:\n  z[lanes + broadcast(i, 4)] = broadcast(1.0f32, 4)",
        STORES.format("z"),
    ),
    (
        "let lanes: int64x4 = t[ramp(0, 1, 4)]\nfor i in 0 .. N:\n  z[lanes + broadcast(i, 4)] = broadcast(1.0f32, 4)",
        STORES.format("z"),
    ),
    (
        "for i in 0 .. N:\n  let l: int64x4 = at[ramp(0, 1, 4)]\n  z[l + broadcast(i, 4)] = broadcast(1.0f32, 4)",
        STORES.format("z"),
    ),
    ("block.x for b in 0 .. 2:\n  thread.x for i in 0 .. 4:\n    barrier", "a barrier stands in the loop over 'i'"),
]


@pytest.mark.parametrize(("body", "reason"), DEPENDENT)
def test_dependent_loops(body: str, reason: str) -> None:
    loop, context = loop_in(body)
    assert why_dependent(loop, context) == reason
    assert not independent(loop, context)


@pytest.mark.parametrize("seed", range(30))
def test_iterations_called_independent_touch_different_elements(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in range(25):
        n, m, k = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 3)
        terms = [f"{rng.randint(-4, 8)} * {v}" for v in ("i", "j", "l")]
        index = " + ".join(terms) + f" + {rng.randint(0, 3)}"
        index = rng.choice([index, f"({index}) // {rng.randint(1, 4)}", f"({index}) % {rng.randint(1, 9)}"])
        guard = f"i * {rng.randint(0, 3)} + j < {rng.randint(1, 9)}"
        body = (
            f"for i in 0 .. {n}:\n  for j in 0 .. {m}:\n    for l in 0 .. {k}:\n"
            f"      if {guard}:\n        z[{index}] = 1.0f32"
        )
        loop, context = loop_in(body)
        if not independent(loop, context):
            continue
        found += 1
        touched: dict[int, int] = {}
        branch = next(s for s in walk(loop) if isinstance(s, If))
        store = stores(loop)[0]
        for i in range(n):
            for j in range(m):
                for at in range(k):
                    state = {"i": i, "j": j, "l": at}
                    if value(branch.condition, state):
                        element = value(store.indices[0], state)
                        assert touched.setdefault(element, i) == i, f"seed {seed}: {body}"
    assert found


def test_an_element_that_every_iteration_stores_is_refused_without_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "for i in 0 .. N:\n  for j in 0 .. H:\n    if j < C:\n      z[j] = z[j] + x[i, j]"
    loop, context = loop_in(body)
    monkeypatch.setattr(Context, "proves", lambda *_: False)
    monkeypatch.setattr("opgen.loop.analysis.dependence._differ", lambda *_: pytest.fail("a proof was tried"))
    assert why_dependent(loop, context) == STORES.format("z")
