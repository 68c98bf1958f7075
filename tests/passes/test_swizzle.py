"""Lanes in the order of cheap shuffles: fewer that go across blocks of 16 bytes, the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel, Shuffle
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_stmt
from opgen.loop.verify import verify
from opgen.loop.walk import distinct_exprs
from opgen.passes.swizzle import swizzle

HEAD = "kernel case(n: int64 in [0, 4], x: float32[64], z: float32[64]) -> (y: float32[64]):\n"
ALL = "ramp(0, 1, 8)"


def apart(first: int, at: int = 0) -> str:
    """Every other element of sixteen."""
    order = ", ".join(str(k) for k in range(first, 16, 2))
    return f"shuffle(x[ramp({at}, 1, 8)], x[ramp({at + 8}, 1, 8)], {order})"


EVEN, ODD = apart(0), apart(1)
FURTHER = f"shuffle({EVEN}, x[ramp(9, 1, 8)], 1, 2, 3, 4, 5, 6, 7, 15)"
ZEROS = "".join(f"  y[ramp({k}, 1, 16)] = 0.0f32x16\n" for k in range(0, 64, 16))


def case(*lines: str, sums: str = "float32[2, 8] register") -> Kernel:
    """A kernel of which the lines are within an allocation of `acc`, cleared first."""
    body = [f"alloc acc: {sums}:", *(f"  {line}" for line in ("acc[0, R] = 0.0f32x8", "acc[1, R] = 0.0f32x8", *lines))]
    return parse_kernel(
        HEAD
        + ZEROS
        + "".join(f"  {line}\n" for line in body).replace("[0, R]", f"[0, {ALL}]").replace("[1, R]", f"[1, {ALL}]")
    )


def added(k: int, value: str, by: str = "broadcast(z[n], 8)") -> str:
    return f"acc[{k}, R] = fma({value}, {by}, acc[{k}, R])"


TAKEN = {
    "sums of every other element": case(added(0, EVEN), added(0, ODD), "y[ramp(n, 1, 8)] = acc[0, R]"),
    "by vectors that are loaded": case(
        *(added(0, e, "z[ramp(n, 1, 8)]") for e in (EVEN, ODD, apart(0, 16), apart(1, 16))),
        "y[ramp(0, 1, 8)] = acc[0, R] + acc[0, R]",
    ),
    "a shuffle of a shuffle": case(added(0, EVEN), added(0, ODD), added(0, FURTHER), "y[ramp(0, 1, 8)] = acc[0, R]"),
    "masks that are known": case(
        added(0, EVEN, "select(ramp(0, 1, 8) < 3i64x8, broadcast(z[n], 8), -0.0f32x8)"),
        added(0, ODD, "select(ramp(0, 1, 8) < 3i64x8, broadcast(z[n], 8), -0.0f32x8)"),
        "y[ramp(0, 1, 8) if ramp(0, 1, 8) < broadcast(n, 8)] = acc[0, R]",
    ),
    "stored one beside the other": case(
        added(0, "z[ramp(n, 1, 8)]"),
        added(1, "z[ramp(n, 1, 8)]", "broadcast(z[n + 1], 8)"),
        "y[ramp(0, 1, 8)] = shuffle(acc[0, R], acc[1, R], 0, 8, 1, 9, 2, 10, 3, 11)",
        "y[ramp(8, 1, 8)] = shuffle(acc[0, R], acc[1, R], 4, 12, 5, 13, 6, 14, 7, 15)",
    ),
    "a tree at the end": case(
        *(added(k, e) for k in (0, 1) for e in (EVEN, ODD, apart(0, 16), apart(1, 16))),
        "acc[0, ramp(0, 1, 4)] = acc[0, ramp(0, 1, 4)] + acc[0, ramp(4, 1, 4)]",
        "y[ramp(n, 1, 4)] = acc[0, ramp(0, 1, 4)]",
        "y[ramp(16, 1, 8)] = acc[1, R]",
    ),
    "shuffled among themselves": case(
        *(added(0, e) for e in (EVEN, ODD, apart(0, 16), apart(1, 16))),
        "acc[1, R] = shuffle(acc[0, R], acc[0, R] + acc[1, R], 7, 6, 5, 4, 3, 2, 9, 8)",
        "y[ramp(0, 1, 8)] = acc[0, R]",
        "y[ramp(8, 1, 8)] = shuffle(acc[1, R], z[ramp(0, 1, 8)], 7, 6, 5, 4, 3, 2, 9, 8)",
    ),
    "a load under a mask": case(
        *(added(0, e) for e in (EVEN, ODD, apart(0, 16), apart(1, 16))),
        "y[ramp(0, 1, 8)] = acc[0, ramp(0, 1, 8) if ramp(0, 1, 8) < broadcast(n, 8)]",
    ),
    "in a loop": case(
        "for i in 0..n:",
        *(f"  {added(0, e, 'broadcast(z[i], 8)')}" for e in (EVEN, ODD)),
        "y[ramp(n, 1, 8)] = acc[0, R]",
    ),
}
LEFT = {
    "nothing saved": case(added(0, EVEN, "z[ramp(n, 1, 8)]"), "y[ramp(n, 1, 8)] = acc[0, R]"),
    "a mask that is not known": case(
        *(added(0, e, "select(ramp(0, 1, 8) < broadcast(n, 8), z[ramp(0, 1, 8)], -0.0f32x8)") for e in (EVEN, ODD)),
        "y[ramp(n, 1, 8)] = acc[0, R]",
    ),
    "a lane that is asked for": case(
        added(0, EVEN), added(0, ODD), "if acc[0, 3] > 0.0f32:", f"  {added(0, EVEN)}", "y[ramp(n, 1, 8)] = acc[0, R]"
    ),
    "parts of it all the time": case(
        "acc[0, ramp(0, 1, 4)] = 1.0f32x4", added(0, EVEN), added(0, ODD), "y[ramp(n, 1, 8)] = acc[0, R]"
    ),
    "places that depend on a name": case(
        f"acc[n // 4, {ALL}] = {EVEN}", f"acc[0, {ALL}] = {ODD}", "acc[0, 0] = 0.0f32", "y[ramp(n, 1, 8)] = acc[0, R]"
    ),
    "what may not be stored, and would be put back": case(
        *(added(0, e) for e in (EVEN, ODD, apart(0, 16), apart(1, 16))),
        "for i in 0..n:",
        f"  acc[2, {ALL}] = {EVEN}",
        "acc[0, ramp(0, 1, 4)] = acc[0, ramp(4, 1, 4)]",
        "y[ramp(n, 1, 8)] = acc[0, R]",
        sums="float32[3, 8] register",
    ),
    "a place that it says": case(
        *(added(0, e) for e in (EVEN, ODD, apart(0, 16), apart(1, 16))),
        "acc[1, R] = x[min(max(int64x8(acc[0, R]), 0i64x8), 63i64x8)]",
        "y[ramp(n, 1, 8)] = acc[1, R]",
    ),
    "vectors of one block": parse_kernel(
        HEAD + ZEROS + "  alloc acc: float32[4] register\n"
        "  acc[ramp(0, 1, 4)] = shuffle(x[ramp(0, 1, 4)], x[ramp(4, 1, 4)], 0, 2, 4, 6)\n"
        "  y[ramp(n, 1, 4)] = acc[ramp(0, 1, 4)]\n"
    ),
}  # fmt: skip


def across(kernel: Kernel) -> int:
    """Different shuffles that take a lane from another block of four."""
    found = {e for e in distinct_exprs(kernel.body) if isinstance(e, Shuffle) and e.type.dtype.is_float}
    return sum(any(k % len(e.order) // 4 != lane // 4 for lane, k in enumerate(e.order)) for e in found)


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("n", [0, 3])
def test_fewer_shuffles_and_the_same_bits(name: str, n: int) -> None:
    before = TAKEN[name]
    after = swizzle(before)
    verify(after)
    assert across(after) < across(before)
    rng = np.random.default_rng(n)
    inputs = {name: rng.standard_normal(64).astype(np.float32) for name in ("x", "z")}
    expected, found = (interpret(k, inputs, {"n": n})["y"].view(np.uint32) for k in (before, after))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("name", LEFT)
def test_what_saves_nothing_or_would_be_seen_stays(name: str) -> None:
    assert swizzle(LEFT[name]) is LEFT[name]


def test_the_order_is_one_shuffle_of_both_operands() -> None:
    text = print_stmt(swizzle(TAKEN["sums of every other element"]).body)
    assert "0, 2, 8, 10, 4, 6, 12, 14" in text
    assert "1, 3, 9, 11, 5, 7, 13, 15" in text


def test_neighbours_that_are_stored_in_turn_are_shuffled_within_blocks() -> None:
    text = print_stmt(swizzle(TAKEN["stored one beside the other"]).body)
    assert "0, 8, 1, 9, 4, 12, 5, 13" in text
    assert "2, 10, 3, 11, 6, 14, 7, 15" in text
