"""own and share: updates by the elements that they update, reductions by many threads."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from opgen.codegen.cuda import emit
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.verify import verify
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.devices.emulation import compile_emulated
from opgen.schedule.default import default_schedule
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))

ROWS = """\
kernel add_rows(
    x: float32[n, columns],
    p: int64[m],
    v: float32[m, columns],
    n: int64 in [1, 99],
    columns: int64 in [0, 99999],
    m: int64 in [0, 999],
) -> (
    y: float32[n, columns],
):
    for i in 0 .. n:
        for j in 0 .. columns:
            y[i, j] = x[i, j]
    for k in 0 .. m:
        for l in 0 .. columns:
            y[max(min(p[k], n - 1), 0), l] = y[max(min(p[k], n - 1), 0), l] + v[k, l]
"""
ELEMENTS = """\
kernel set_elements(
    x: float32[n, columns],
    p: int64[m, 2],
    v: float32[m],
    n: int64 in [1, 99],
    columns: int64 in [1, 99],
    m: int64 in [0, 999],
) -> (
    y: float32[n, columns],
):
    for i in 0 .. n:
        for j in 0 .. columns:
            y[i, j] = x[i, j]
    for k in 0 .. m:
        y[max(min(p[k, 0], n - 1), 0), max(min(p[k, 1], columns - 1), 0)] = v[k]
"""
LEAST = """\
kernel least(
    v: float32[m, columns],
    p: int64[m],
    m: int64 in [0, 999],
    columns: int64 in [0, 999],
) -> (
    y: int64[],
    z: float32[m],
):
    alloc acc: int64[] register:
        acc[] = 99
        for k in 0 .. m:
            for l in 0 .. columns:
                acc[] = min(acc[], p[k] + l)
        y[] = acc[]
    for i in 0 .. m:
        alloc sum: float32[] register
        sum[] = 0.0f32
        for j in 0 .. columns:
            sum[] = sum[] + v[i, j]
        z[i] = sum[]
"""


def arrays_for(text: str, sizes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Integers, of which sums are exact in any order; but of updates such that their order shows."""
    exact = text is LEAST
    columns, m = sizes["columns"], sizes["m"]
    v = rng.integers(-9, 10, (m, columns) if text is not ELEMENTS else (m,)).astype(np.float32)
    places = rng.integers(0, sizes.get("n", 50), (m, 2) if text is ELEMENTS else (m,))
    arrays = {"v": v if exact else v / np.float32(3), "p": places}
    if not exact:
        arrays["x"] = rng.standard_normal((sizes["n"], columns)).astype(np.float32)
    return arrays


def same(kernel: Kernel, scheduled: Kernel, arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
    """By the interpreter and as CUDA C, with threads and blocks in both orders."""
    verify(scheduled)
    expected = interpret(kernel, arrays, sizes)
    (run,) = compile_emulated([legalize(scheduled)])
    for found in (
        interpret(scheduled, arrays, sizes, seed=SEED),
        run(arrays, sizes),
        run(arrays, sizes, reverse=True),
    ):
        for name, array in expected.items():
            assert array.tobytes() == found[name].tobytes(), f"'{name}', seed {SEED}, {sizes}"


@pytest.mark.parametrize("sizes", [{"n": 7, "columns": 5, "m": 300}, {"n": 3, "columns": 20000, "m": 4}])
def test_updated_rows_by_default(sizes: dict[str, int]) -> None:
    kernel = simplify(parse_kernel(ROWS))
    schedule = default_schedule(kernel, "cuda")
    assert "version l columns >= 16384 -> rows" in str(schedule)
    assert "own k 64 -> l_owner" in str(schedule)
    same(kernel, apply(kernel, schedule), arrays_for(ROWS, sizes, np.random.default_rng(SEED)), sizes)


def test_a_reduction_of_few_terms_has_one_thread() -> None:
    kernel = simplify(bind(parse_kernel(LEAST), {"m": 20, "columns": 100}))
    assert "share k" not in str(default_schedule(kernel, "cuda"))


def test_long_rows_are_reduced_by_blocks() -> None:
    kernel, sizes = simplify(bind(parse_kernel(LEAST), {"columns": 600})), {"m": 9}
    schedule = default_schedule(kernel, "cuda")
    assert "bind i block.x\nshare j 128 space=shared -> j_part\nbind j_part_i thread.x\n" in str(schedule)
    same(
        kernel,
        apply(kernel, schedule),
        arrays_for(LEAST, {**sizes, "columns": 600}, np.random.default_rng(SEED)),
        sizes,
    )


def test_updated_elements_by_default() -> None:
    kernel, sizes = simplify(parse_kernel(ELEMENTS)), {"n": 7, "columns": 5, "m": 300}
    schedule = default_schedule(kernel, "cuda")
    assert "own k 16384 -> k_owner" in str(schedule)
    same(kernel, apply(kernel, schedule), arrays_for(ELEMENTS, sizes, np.random.default_rng(SEED)), sizes)


@pytest.mark.parametrize("sizes", [{"m": 0, "columns": 3}, {"m": 300, "columns": 70}, {"m": 2, "columns": 1}])
def test_a_reduction_to_one_number_by_default(sizes: dict[str, int]) -> None:
    kernel = simplify(parse_kernel(LEAST))
    schedule = default_schedule(kernel, "cuda")
    assert "fuse k, l -> k_l\nshare k_l 16384 space=heap -> k_l_part\n" in str(schedule)
    same(kernel, apply(kernel, schedule), arrays_for(LEAST, sizes, np.random.default_rng(SEED)), sizes)


UPDATE = """\
// Grid (128, 1, 1), block (128, 1, 1).
extern "C" __global__ void __launch_bounds__(128)
set_elements_1(
    const i64* __restrict__ p,
    const f32* __restrict__ v,
    f32* __restrict__ y,
    const i64 n,
    const i64 columns,
    const i64 m) {
    const i64 k_owner_o = (i64)blockIdx.x;
    const i64 k_owner_t = (i64)threadIdx.x;
    for (i64 k = 0; k < m; ++k) {
        const i64 y_k_owner_0 = max_i64(min_i64(p[k * 2 + 0], n - 1), 0);
        const i64 y_k_owner_1 = max_i64(min_i64(p[k * 2 + 1], columns - 1), 0);
        if (y_k_owner_0 * columns + y_k_owner_1 == k_owner_o * 128 + k_owner_t) {
            y[y_k_owner_0 * columns + y_k_owner_1] = v[k];
        }
    }
}
"""
"""Of at most 99 by 99 elements each has an owner of its own."""


def test_the_cuda_c_of_updates() -> None:
    kernel = simplify(parse_kernel(ELEMENTS))
    assert UPDATE in emit(legalize(apply(kernel, default_schedule(kernel, "cuda")))).source


SCHEDULES = {
    ROWS: ["own k 3", "reorder l, k\nown k 4\nparallel l", "own k 5 -> o\nparallel o", "own l 4 -> o\nreorder o, k"],
    ELEMENTS: ["own k 2\nparallel k_owner", "own k 16 -> o\nsplit o 4 -> a, b\nbind b thread.x\nbind a block.x"],
    LEAST: [
        "share k 4",
        "share l 3 -> part\nparallel part_i",
        "share j 4 at=i -> part\nbind i_part block.x\nbind part_i thread.x\nbind i block.x",
        "share j 2 at=i\nparallel i",
        "bind i block.x\nshare j 8 space=shared -> part\nbind part_i thread.x",
        "fuse k, l -> kl\nshare kl 64 -> part\nshare part_j 4 -> again\nbind part_i thread.x",
    ],
}


@pytest.mark.parametrize(("text", "steps"), [(t, s) for t, all_of in SCHEDULES.items() for s in all_of])
def test_the_same_by_hand(text: str, steps: str) -> None:
    rng = random.Random(f"{SEED} {steps}")
    kernel, sizes = parse_kernel(text), {"n": rng.randint(1, 9), "columns": rng.randint(1, 9), "m": rng.randint(0, 40)}
    if text is LEAST:
        del sizes["n"]
    scheduled = apply(kernel, parse_schedule(steps))
    arrays, expected = arrays_for(text, sizes, np.random.default_rng(SEED)), {}
    expected = interpret(kernel, arrays, sizes)
    for name, array in interpret(scheduled, arrays, sizes, seed=SEED).items():
        assert array.tobytes() == expected[name].tobytes(), f"'{name}', seed {SEED}, {sizes}"


REFUSED = {
    (ROWS, "own k 1"): "own k: 1 owners are not from 2 to 1048576",
    (ROWS, "own i 4"): "own i: no values tell where 'y' is updated",
    (ROWS, "own k 4 -> j"): "own: the name 'j' is taken",
    (ROWS, "own z 4"): "own: there is no loop 'z'",
    (ROWS, "reorder l, k\nparallel l\nown l 4"): "own l: the loop 'l' is already parallel",
    (ROWS, "own k 4 -> o\nown k 4 -> u"): "own k: no values tell where 'y' is updated",
    (LEAST, "own i 4"): "own i: it holds something else than one store",
    (LEAST, "share k 1"): "share k: 1 are not from 2 to 65536",
    (LEAST, "share i 4"): "share i: its body is not one step of a sum, product, minimum or maximum",
    (LEAST, "share j 4 at=k"): "share j: it is not inside 'k'",
    (LEAST, "share j 4 at=i space=shared"): "share j: a block's threads share a result at a time",
    (LEAST, "share j 4 space=shared"): "share j: the loop 'i', which is serial, is around it",
    (LEAST, "share k 4 space=shared"): "share k: no loop is around it",
    (LEAST, "share j 4 -> v"): "share: the name 'v' is taken",
    (LEAST, "parallel i\nshare j 4 at=i"): "share j: the loop 'i' is already parallel",
    (ROWS, "share k 4"): "share k: its body is not one step of a sum, product, minimum or maximum",
}


@pytest.mark.parametrize(("text", "steps"), REFUSED)
def test_what_is_refused(text: str, steps: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        apply(parse_kernel(text), parse_schedule(steps))
    assert refusal.value.message == REFUSED[text, steps]


def test_owners_of_something_else_are_no_owners() -> None:
    """Where the condition speaks of the loop itself, or of another index, iterations are not independent."""
    for condition in ("(at + o) % 4 == 2 * o", "k % 4 == o", "at % 4 == k % 4", "p[k] % 4 == o"):
        text = ROWS.replace(
            "    for k in 0 .. m:\n        for l in 0 .. columns:\n            y[max(min(p[k], n - 1), 0), l] = "
            "y[max(min(p[k], n - 1), 0), l] + v[k, l]\n",
            "    for o in 0 .. 4:\n        for k in 0 .. m:\n            let at: int64 = max(min(p[k], n - 1), 0)\n"
            f"            if {condition}:\n                for l in 0 .. columns:\n"
            "                    y[at, l] = y[at, l] + v[k, l]\n",
        )
        with pytest.raises(ScheduleError, match="the iterations of 'o' are not known to be independent"):
            apply(parse_kernel(text), parse_schedule("parallel o"))
