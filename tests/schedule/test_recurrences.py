"""Recurrences, running sums, updates and sorts are kinds of nests."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from opgen.loop.bind import bind
from opgen.loop.nodes import Const, Kernel
from opgen.loop.walk import loads, loops_in
from opgen.lower import Variant, lower
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.auto.choose import Choice
from opgen.schedule.auto.plan import Plan, Running
from opgen.schedule.default import scheduled
from opgen.schedule.why import choices, why
from opgen.spec import load_text

MODULE = load_text("""
op Along {
  type T in {int32, float32, float64}
  input x: T[rows, n]
  output y: T[rows, n]
  let h[i, t] = x[i, t] + (h[i, t - 1] else 0)
  y[i, t] = h[i, t]
}

op Down {
  type T in {int32, float32, float64}
  input x: T[n, columns]
  output y: T[n, columns]
  let h[t, j] = x[t, j] + (h[t - 1, j] else 0)
  y[t, j] = h[t, j]
}

op Decayed {
  type T in {int32, float32, float64}
  input x: T[rows, n]
  input a: T[rows]
  output y: T[rows, n]
  let h[i, t] = x[i, t] + a[i] * (h[i, t - 1] else 0)
  y[i, t] = h[i, t]
}

op Mixed {
  type T in {int32, float32, float64}
  input x: T[n, columns]
  input w: T[columns, columns]
  output y: T[n, columns]
  let h[t, j] = x[t, j] - max[k]((h[t - 1, k] else 0) * w[k, j])
  y[t, j] = h[t, j]
}

op Layer {
  type T in {int32, float32, float64}
  input x: T[n, inputs]
  input w: T[inputs, columns]
  input r: T[columns, columns]
  output y: T[n, columns]
  let h[t, j] = sum[k](x[t, k] * w[k, j]) + sum[k]((h[t - 1, k] else 0) * r[k, j])
  y[t, j] = h[t, j]
}

op Best {
  type T in {int32, float32, float64}
  input x: T[rows, n]
  output y: int64[rows, n]
  let order[i, p] = descending[j](x[i, j], p)
  y[i, p] = order[i, p]
}

op AddRows {
  type T in {int32, float32, float64}
  input x: T[n, columns]
  input ids: int64[count]
  input v: T[count, columns]
  output y: T[n, columns]
  y[i, j] = x[i, j]
  y[ids[k], j] add= v[k, j]
}

op AddAcross {
  type T in {int32, float32, float64}
  input x: T[n, columns]
  input ids: int64[n, count]
  input v: T[n, count]
  output y: T[n, columns]
  y[i, j] = x[i, j]
  y[i, ids[i, k]] add= v[i, k]
}

op AddDown {
  type T in {int32, float32, float64}
  input x: T[n, columns]
  input ids: int64[count, columns]
  input v: T[count, columns]
  output y: T[n, columns]
  y[i, j] = x[i, j]
  y[ids[k, j], j] add= v[k, j]
}
""")
SIZES = {
    "Along": {"rows": 40, "n": 150},
    "Down": {"n": 150, "columns": 48},
    "Decayed": {"rows": 40, "n": 150},
    "Mixed": {"n": 20, "columns": 48},
    "Best": {"rows": 40, "n": 50},
    "AddRows": {"n": 20, "columns": 96, "count": 33},
    "AddAcross": {"n": 20, "columns": 33, "count": 41},
    "AddDown": {"n": 20, "columns": 64, "count": 41},
}
KINDS = {
    "Along": "scans",
    "Down": "recurrences",
    "Decayed": "recurrences",
    "Best": "sorts",
    "AddRows": "updates",
    "AddAcross": "updates",
    "AddDown": "updates",
}


def kernel_of(name: str, sizes: dict[str, int], dtype: str = "float32") -> Kernel:
    return simplify(bind(lower(MODULE, MODULE.op(name), Variant({"T": dtype}, {})).kernel, sizes))


def the_choice(kernel: Kernel, kind: str) -> Choice:
    (found,) = (c for c in choices(kernel, typical()) if any(o.plan.kind == kind for o in c.ranked))
    return found


@pytest.mark.parametrize("name", KINDS)
def test_each_class_of_nests_is_a_kind(name: str) -> None:
    kernel = kernel_of(name, SIZES[name])
    choice = the_choice(kernel, KINDS[name])
    assert choice.chosen is not None
    assert choice.chosen.plan.kind == KINDS[name]
    shown = why(kernel, typical()).split(f"nest over {choice.nest}: ")[1].split("\n\n")[0]
    assert f"1 {KINDS[name]}: {choice.chosen.price}" in shown
    assert "<- chosen" in shown


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_all_that_stands_to_choice_computes_the_same(name: str, seed: int) -> None:
    rng = random.Random(f"{seed} {name}")
    sizes = {n: max(1, s + rng.choice([-9, -1, 0, 0, 1, 16])) for n, s in SIZES[name].items()}
    dtype = rng.choice(["int32", "float32", "float64"])
    kernel, data = kernel_of(name, sizes, dtype), np.random.default_rng(seed)
    shapes = {b.name: tuple(int(e.value) for e in b.shape if isinstance(e, Const)) for b in kernel.inputs}
    arrays = {n: data.integers(-2, 3, s).astype(dtype) for n, s in shapes.items()}
    if name in ("Decayed", "Mixed"):
        arrays |= {n: np.sign(arrays[n]) for n in ("a", "w") if n in arrays}  # so that sums stay exact
    if "ids" in arrays:
        arrays["ids"] = data.integers(0, sizes["n" if name != "AddAcross" else "columns"], shapes["ids"])
    (expected,) = run_kernel(legalize(kernel), arrays, {}, 1).values()
    for choice in choices(kernel, typical(rng.choice([64, 32]))):
        for candidate in choice.ranked:
            (found,) = run_kernel(legalize(candidate.trial.kernel), arrays, {}, 2, guarded=True).values()
            assert np.array_equal(found, expected), f"seed {seed}, {name} {sizes} {dtype}: {candidate.plan}"


@pytest.mark.parametrize("count", [3, 20, 21])
@pytest.mark.parametrize(("name", "merged"), [("AddAcross", True), ("AddDown", False)])
def test_a_row_is_updated_right_after_it_was_made(name: str, merged: bool, count: int) -> None:
    schedule = str(scheduled(kernel_of(name, {"n": 9, "columns": 33, "count": count}))[0])
    assert ("merge i, " in schedule) == merged
    assert ("split y_at_k 4 " in schedule) == (merged and count > 8)


def test_products_of_all_steps_are_one_nest_before_the_steps() -> None:
    after = scheduled(kernel_of("Layer", {"n": 32, "inputs": 64, "columns": 48}), "cpu", typical())[1]
    reads = {s.var: {e.buffer for e in loads(s)} for s in loops_in(after.body) if s.kind == "ordered"}
    assert ["x" in read or "w" in read for read in reads.values()] == [False]
    assert any("x" in {e.buffer for e in loads(s)} for s in loops_in(after.body))


def test_a_long_row_is_summed_in_registers() -> None:
    plan = the_choice(kernel_of("Along", {"rows": 1, "n": 100_000}), "scans").ranked[0].plan
    assert isinstance(plan, Plan)
    assert [r.lanes for r in plan.running if isinstance(r, Running)] == [16]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_cores_enough_make_a_long_row_in_blocks(dtype: str) -> None:
    kernel, machine = kernel_of("Along", {"rows": 1, "n": 40_000}, dtype), replace(typical(), cores=8)
    schedule, after = scheduled(kernel, "cpu", machine)
    assert "relay h_step 4097 -> " in str(schedule)
    assert "relay" not in str(scheduled(kernel, "cpu", replace(machine, cores=2))[0])
    arrays = {"x": np.random.default_rng(1).integers(-8, 9, (1, 40_000)).astype(dtype)}
    (expected,) = run_kernel(legalize(kernel), arrays, {}, 1).values()
    for threads in (1, 2):
        (found,) = run_kernel(legalize(after), arrays, {}, threads, guarded=True).values()
        np.testing.assert_array_equal(found, expected)


def test_threads_own_columns_of_recurrences() -> None:
    """Each goes through all steps with its own part, and they never meet."""
    after = scheduled(kernel_of("Down", {"n": 150, "columns": 512}), "cpu", replace(typical(), cores=4))[1]
    shared = next(s for s in loops_in(after.body) if any(o.kind == "ordered" for o in loops_in(s.body)))
    assert (shared.kind, [s.kind for s in loops_in(shared.body)]) == ("parallel", ["ordered", "serial", "vector"])
