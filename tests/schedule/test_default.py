"""The default schedule: legal everywhere, the same results, and the nests it is meant to find."""

from __future__ import annotations

import random

import pytest

from opgen.loop.nodes import For, Kernel
from opgen.loop.verify import verify
from opgen.loop.walk import walk
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.schedule.declaration import Target
from opgen.schedule.default import default_schedule, scheduled
from opgen.schedule.schedule import apply, parse_schedule
from opgen.schedule.why import why
from tests.schedule import kernels
from tests.schedule.differential import Sizes, assert_same, specialised


def check(kernel: Kernel, sizes: Sizes, kind: Target, seed: int, roundings: int = 0) -> None:
    """Generic and specialised: legal after each step, in bounds after the passes, and equal."""
    for unscheduled, left in ((kernel, sizes), (specialised(kernel, sizes), {})):
        schedule, after = scheduled(unscheduled, kind, typical(16))
        assert apply(unscheduled, parse_schedule(str(schedule))) == after
        legal = legalize(after)
        verify(legal, bounds=True)
        assert not any(isinstance(s, For) and s.kind in ("vector", "unroll") for s in walk(legal.body))
        assert_same(unscheduled, legal, left, seed, str(schedule), roundings)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("seed", range(6))
def test_dense(seed: int, kind: Target) -> None:
    rng = random.Random(seed)
    dtype = ["float32", "bfloat16", "int32", "float64", "float16", "float32"][seed]
    check(kernels.dense(dtype), kernels.random_dense(rng), kind, seed)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["PRODUCT", "ELEMENTWISE", "TRANSPOSE", "NORMALISE", "INTEGERS"])
def test_other_structures(name: str, seed: int, kind: Target) -> None:
    rng = random.Random(f"{name}{seed}")
    sizes = {"m": rng.randint(0, 9), "n": rng.randint(0, 19)}
    if name == "PRODUCT":
        sizes["p"] = rng.randint(0, 5)
    summed = sizes["n"] if name == "NORMALISE" else 0
    check(kernels.kernel(getattr(kernels, name)), sizes, kind, seed, 2 * summed + 2 if summed else 0)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_one_channel_each(kind: Target) -> None:
    sizes = {"batch": 1, "height": 4, "width": 9, "channels": 8, "taps_h": 3, "taps_w": 3}
    sizes |= {"out_h": 4, "out_w": 9, "step": 1, "top": 1, "left": 1}
    check(kernels.kernel(kernels.LANES), sizes, kind, 0)


LAYER = {
    "batch": 1,
    "height": 56,
    "width": 56,
    "groups": 1,
    "channels": 64,
    "taps_h": 3,
    "taps_w": 3,
    "outs": 64,
    "out_h": 56,
    "out_w": 56,
    "step_h": 1,
    "step_w": 1,
    "gap_h": 1,
    "gap_w": 1,
    "top": 1,
    "left": 1,
}


def test_a_sum_of_products_gets_a_register_tile() -> None:
    assert str(default_schedule(specialised(kernels.dense(), LAYER))) == (
        "reorder y, k, x\n"
        "split x 7 tail=exact -> x_o, x_i\n"
        "split k 32 tail=exact -> k_o, k_i\n"
        "split k_i 16 tail=exact -> k_v, k_l\n"
        "reorder y, k_o, x_o, r, s, c, x_i, k_v, k_l\n"
        "unroll x_i\n"
        "unroll k_v\n"
        "vectorize k_l\n"
        "parallel y\n"
        "fuse y, k_o -> y_k_o\n"
        "unroll s\n"
        "partition x_o 1, -1\n"
    )


def test_the_plan_of_a_tile_is_told() -> None:
    text = why(specialised(kernels.dense(), LAYER), typical())
    cuts, loops = "x by 7 -> x.o, x.i, k by 32 -> k.o, k.i, k.i by 16 -> k.v, k.l", "order y, k.o, x.o"
    assert (
        f" | lanes k.l | cut {cuts} | {loops} | terms r, s, c | tile x.i, k.v | ends s unrolled, x.o 1, -1 | " in text
    )


def test_unknown_sizes_get_masked_lanes() -> None:
    assert str(default_schedule(kernels.dense())) == (
        "split k 16 tail=guard -> k_o, k_l\nvectorize k_l\nparallel n\nfuse n, y -> n_y\n"
    )


def test_rows_are_reduced_in_lanes() -> None:
    rows = "".join(
        f"rfactor {j} 64 -> {acc}_partial\n"
        f"partition {j}_o -1\n"
        f"split {j}_l 16 tail=exact -> {j}_l_u, {j}_l_v\n"
        f"vectorize {j}_l_v\n"
        f"unroll {j}_l_u\n"
        f"split {acc}_partial_i 16 tail=exact -> {acc}_partial_i_u, {acc}_partial_i_v\n"
        f"vectorize {acc}_partial_i_v\n"
        f"unroll {acc}_partial_i_u\n"
        f"vectorize {acc}_partial_32\n"
        f"vectorize {acc}_partial_16\n"
        f"vectorize {acc}_partial_8\n"
        f"vectorize {acc}_partial_4\n"
        f"vectorize {acc}_partial_2\n"
        f"parallel {i}\n"
        for j, acc, i in (("j", "acc", "peak_i"), ("j2", "acc2", "total_i"))
    )
    assert str(default_schedule(kernels.kernel(kernels.NORMALISE))) == (
        f"{rows}split l 16 tail=guard -> l_o, l_l\nvectorize l_l\nparallel i\nfuse i, l_o -> i_l_o\n"
    )


def test_threads_and_blocks() -> None:
    assert str(default_schedule(kernels.kernel(kernels.ELEMENTWISE), "cuda")) == (
        "split j 128 tail=guard -> j_o, j_t\nbind j_t thread.x\nbind i block.x\nfuse i, j_o -> i_j_o\n"
    )
