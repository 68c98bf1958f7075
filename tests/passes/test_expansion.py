"""Unrolling, vector code and tightened bounds, by their listings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opgen.diagnostics import InternalError
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_stmt
from opgen.loop.verify import verify
from opgen.passes.join import join
from opgen.passes.legalize import legalize, stages
from opgen.passes.masks import masks_to_selects
from opgen.passes.tighten import tighten
from opgen.passes.unroll import unroll
from opgen.passes.vectorize import vectorize

HEAD = "kernel case(n: int64 in [8, inf], p: int64 in [0, 4], x: float32[n], w: float32[n]) -> (y: float32[n]):\n  "


def expanded(text: str, run: Callable[[Kernel], Kernel]) -> str:
    kernel = run(parse_kernel(f"{HEAD}{text}\n"))
    verify(kernel)
    return print_stmt(kernel.body)


def test_unroll_copies_the_body_and_decides_conditions() -> None:
    text = "unroll for i in 0..3:\n    if i > 0:\n      y[p + i] = x[p + i - 1]"
    assert expanded(text, unroll) == "y[p + 1] = x[p]\ny[p + 2] = x[p + 1]"


def test_unroll_takes_a_symbolic_start() -> None:
    assert expanded("unroll for i in p..p + 2:\n    y[i] = x[i + 1]", unroll) == "y[p] = x[p + 1]\ny[p + 1] = x[p + 2]"


def test_lanes_of_consecutive_elements_are_ramps() -> None:
    text = "vector for i in 0..4:\n    y[p + i] = x[i*2 + 1]*w[p]"
    assert expanded(text, vectorize) == "y[ramp(p, 1, 4)] = x[ramp(1, 2, 4)] * broadcast(w[p], 4)"


def test_a_condition_of_some_lanes_is_a_mask() -> None:
    text = "vector for i in 0..4:\n    if p + i < n:\n      if p > 2:\n        y[p + i] = x[p + i]"
    assert expanded(text, vectorize) == (
        "if p > 2:\n"
        "    y[ramp(p, 1, 4) if ramp(p, 1, 4) < broadcast(n, 4)]"
        " = x[ramp(p, 1, 4) if ramp(p, 1, 4) < broadcast(n, 4)]"
    )


def test_a_mask_is_worked_out_before_what_its_branch_changes() -> None:
    branch = "if y[i] > w[i]:\n      y[i] = w[i]\n    else:\n      y[i] = x[i + 4]"
    text = f"vector for i in 0..4:\n    y[i] = x[i]\n    {branch}"
    assert expanded(text, vectorize) == (
        "y[ramp(0, 1, 4)] = x[ramp(0, 1, 4)]\n"
        "alloc i_held_0: bool[4] register\n"
        "i_held_0[ramp(0, 1, 4)] = y[ramp(0, 1, 4)] > w[ramp(0, 1, 4)]\n"
        "y[ramp(0, 1, 4) if i_held_0[ramp(0, 1, 4)]] = w[ramp(0, 1, 4) if i_held_0[ramp(0, 1, 4)]]\n"
        "y[ramp(0, 1, 4) if not i_held_0[ramp(0, 1, 4)]] = x[ramp(4, 1, 4) if not i_held_0[ramp(0, 1, 4)]]"
    )


def test_local_buffers_get_lanes_and_no_masks_from_outside() -> None:
    text = (
        "vector for i in 0..4:\n    if p + i < n:\n      alloc t: float32[] register\n      t[] = 0.0f32\n"
        "      for j in 0..p:\n        t[] = t[] + x[j]*w[p + i]\n      y[p + i] = t[]"
    )
    assert expanded(text, vectorize) == (
        "alloc t: float32[4] register\n"
        "t[ramp(0, 1, 4)] = 0.0f32x4\n"
        "for j in 0 .. p:\n"
        "    t[ramp(0, 1, 4)] = t[ramp(0, 1, 4)] + broadcast(x[j], 4)"
        " * w[ramp(p, 1, 4) if ramp(p, 1, 4) < broadcast(n, 4)]\n"
        "y[ramp(p, 1, 4) if ramp(p, 1, 4) < broadcast(n, 4)] = t[ramp(0, 1, 4)]"
    )


def test_a_condition_inside_a_local_buffers_life_selects() -> None:
    text = (
        "vector for i in 0..4:\n    alloc t: float32[] register\n    t[] = 0.0f32\n"
        "    if i < p:\n      t[] = x[i]\n    y[i] = t[]"
    )
    assert expanded(text, vectorize) == (
        "alloc t: float32[4] register\n"
        "t[ramp(0, 1, 4)] = 0.0f32x4\n"
        "t[ramp(0, 1, 4)] = select(ramp(0, 1, 4) < broadcast(p, 4),"
        " x[ramp(0, 1, 4) if ramp(0, 1, 4) < broadcast(p, 4)], t[ramp(0, 1, 4)])\n"
        "y[ramp(0, 1, 4)] = t[ramp(0, 1, 4)]"
    )


def test_what_only_a_mask_keeps_inside_a_local_buffer_is_masked() -> None:
    """Lanes that are off would reach past its end: nothing is read or written there."""
    text = (
        "vector for i in 0..4:\n    alloc t: float32[4] register\n    for j in 0..4:\n      t[j] = 0.0f32\n"
        "    if p + i < 4:\n      t[p + i] = x[i]\n      y[i] = t[p + i]"
    )
    assert expanded(text, vectorize).splitlines()[3:] == [
        "t[ramp(p, 1, 4), ramp(0, 1, 4) if ramp(p, 1, 4) < 4i64x4] = x[ramp(0, 1, 4) if ramp(p, 1, 4) < 4i64x4]",
        "y[ramp(0, 1, 4) if ramp(p, 1, 4) < 4i64x4] = t[ramp(p, 1, 4), ramp(0, 1, 4) if ramp(p, 1, 4) < 4i64x4]",
    ]


def test_a_shared_load_that_only_a_mask_keeps_in_bounds_is_masked() -> None:
    text = "vector for i in 0..4:\n    if i + p*4 < n - 8:\n      y[i] = x[p*4 + 8]"
    assert expanded(text, vectorize) == (
        "y[ramp(0, 1, 4) if ramp(p * 4, 1, 4) < broadcast(n - 8, 4)]"
        " = x[broadcast(p * 4 + 8, 4) if ramp(p * 4, 1, 4) < broadcast(n - 8, 4)]"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("for j in 0..i:\n      y[i] = x[j]", "the bounds of 'j' differ between the lanes of 'i'"),
        ("y[p] = x[i]", "every lane of 'i' stores to the same element of 'y'"),
    ],
)
def test_what_has_no_vector_form(text: str, message: str) -> None:
    with pytest.raises(InternalError) as refusal:
        vectorize(parse_kernel(f"{HEAD}vector for i in 0..4:\n    {text}\n"))
    assert str(refusal.value) == message


def test_conditions_become_bounds() -> None:
    text = "for i in 0..n:\n    if i - p >= 0 and i*2 < n:\n      y[i] = x[i - p]"
    assert expanded(text, tighten) == "for i in p .. (n - 1) // 2 + 1:\n    y[i] = x[i - p]"


def test_a_condition_on_something_else_stays() -> None:
    kernel = parse_kernel(f"{HEAD}for i in 0..n:\n    if p > 2:\n      y[i] = x[i]\n")
    assert tighten(kernel) is kernel


def test_masks_on_registers_become_selects() -> None:
    text = "alloc a: float32[4] register\n  a[ramp(0, 1, 4)] = 0.0f32x4\n"
    text += "  a[ramp(0, 1, 4) if ramp(0, 1, 4) < 3i64x4] = a[ramp(0, 1, 4) if ramp(0, 1, 4) < 3i64x4] + 1.0f32x4\n"
    text += "  y[ramp(0, 1, 4) if ramp(0, 1, 4) < 3i64x4] = a[ramp(0, 1, 4)]"
    lines = expanded(text, masks_to_selects).splitlines()
    assert lines[1] == "a[ramp(0, 1, 4)] = 0.0f32x4"  # every lane has a value
    assert lines[3] == (
        "a[ramp(0, 1, 4)] = select(ramp(0, 1, 4) < 3i64x4, a[ramp(0, 1, 4)] + 1.0f32x4, a[ramp(0, 1, 4)])"
    )
    assert lines[4] == "y[ramp(0, 1, 4) if ramp(0, 1, 4) < 3i64x4] = a[ramp(0, 1, 4)]"


def test_masks_that_keep_lanes_in_bounds_stay() -> None:
    text = "alloc a: float32[3] register\n  a[ramp(0, 1, 4) if ramp(0, 1, 4) < 3i64x4] = 1.0f32x4\n  y[0] = a[0]"
    kernel = parse_kernel(f"{HEAD}{text}\n")
    assert masks_to_selects(kernel) is kernel


def test_neighbours_under_the_same_condition_are_joined() -> None:
    text = "if p > 0:\n    if n > 3:\n      y[0] = x[0]\n  if p > 0:\n    if n > 3:\n      y[1] = x[1]\n"
    text += "  if p > 1:\n    y[2] = x[2]"
    assert expanded(text, join) == (
        "if p > 0:\n    if n > 3:\n        y[0] = x[0]\n        y[1] = x[1]\nif p > 1:\n    y[2] = x[2]"
    )


def test_a_condition_that_changes_is_not_joined() -> None:
    text = "alloc a: float32[] register\n  a[] = x[0]\n"
    text += "  if a[] > 0.0f32:\n    a[] = x[1]\n  if a[] > 0.0f32:\n    y[0] = a[]"
    kernel = parse_kernel(f"{HEAD}{text}\n")
    assert join(kernel) is kernel


def test_branches_of_two_sides_are_joined_side_by_side() -> None:
    text = "if p > 0:\n    y[0] = x[0]\n  else:\n    y[0] = x[1]\n  if p > 0:\n    y[1] = x[1]\n"
    text += "  if p > 0:\n    y[2] = x[2]\n  else:\n    y[2] = x[3]"
    assert expanded(text, join) == (
        "if p > 0:\n    y[0] = x[0]\n    y[1] = x[1]\n    y[2] = x[2]\nelse:\n    y[0] = x[1]\n    y[2] = x[3]"
    )


def test_a_condition_that_the_other_side_changes_is_not_joined() -> None:
    text = "alloc a: float32[] register\n  a[] = x[0]\n"
    text += "  if a[] > 0.0f32:\n    y[1] = x[1]\n  else:\n    a[] = x[1]\n  if a[] > 0.0f32:\n    y[0] = a[]"
    kernel = parse_kernel(f"{HEAD}{text}\n")
    assert join(kernel) is kernel


def test_stages_show_what_changed_and_what_did_not() -> None:
    kernel = parse_kernel(f"{HEAD}vector for i in 0..4:\n    y[i] = x[i]\n")
    found = stages(kernel)
    assert [name for name, _ in found] == [
        "scheduled",
        "simplify",
        "vectorize",
        "masks",
        "unroll",
        "masks again",
        "unmask",
        "simplify again",
        "left out",
        "join",
        "tighten",
        "lane sums",
        "interleave",
        "swizzle",
        "roll",
    ]
    assert [k is before for (_, k), (_, before) in zip(found[1:], found, strict=False)] == [
        True,
        False,
        True,
        True,
        True,
        True,
        True,
        True,
        True,
        True,
        True,
        True,
        True,
        True,
    ]
    assert legalize(kernel) == found[-1][1]
