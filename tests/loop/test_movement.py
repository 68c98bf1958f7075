"""The work of a kernel: counted on kernels whose counts are known."""

from __future__ import annotations

import textwrap

import pytest

from opgen.loop.analysis.movement import Executed, Movement, interval
from opgen.loop.nodes import Const, Ramp, Var
from opgen.loop.parse import parse_expr, parse_kernel

PRODUCT = """
kernel product(
    a: float32[64, 32],
    b: float32[32, 128],
) -> (
    c: float32[64, 128],
):
    for i in 0 .. 64:
        for j in 0 .. 128:
            alloc acc: float32[] register:
                acc[] = 0.0f32
                for k in 0 .. 32:
                    acc[] = fma(a[i, k], b[k, j], acc[])
                c[i, j] = acc[]
"""
A, B, C = 4 * 64 * 32, 4 * 32 * 128, 4 * 64 * 128


def movement(text: str) -> Movement:
    return Movement(parse_kernel(textwrap.dedent(text).strip()))


def test_what_a_kernel_executes_is_counted() -> None:
    assert movement(PRODUCT).executed() == Executed(64 * 128 * 32, 64 * 128 * (2 * 32 + 1), instructions=64 * 128 * 32)


def test_bytes_move_once_where_a_loop_or_its_iteration_fits() -> None:
    product = movement(PRODUCT)
    assert product.between(A + B + C) == 0  # it all stays from call to call
    assert product.between(A + B + C - 1) == A + B + C  # `b` and a row of the others fit: each moves once
    assert product.between(4 * 32 + B + 4 * 128) == A + B + C


def test_bytes_move_again_where_nothing_stays() -> None:
    """With room for a column of `b` but not for all of it, `b` moves for each of the 64 rows."""
    column = 4 * 32 + 4 * 32 + 4
    assert movement(PRODUCT).between(column) == 64 * (4 * 32 + B + 4 * 128)
    assert movement(PRODUCT).between(column - 1) == 64 * 128 * (2 * 4 * 32 + 4)


def test_branches_and_bounds_are_those_of_a_typical_iteration() -> None:
    kernel = """
    kernel guarded(
        x: float32[10, 8],
    ) -> (
        y: float32[10, 8],
    ):
        for i in 0 .. 10:
            for j in max(0, 1 - i) .. min(8, 17 - i):
                if 0 < i and i < 9:
                    y[i, j] = x[i, j]
                else:
                    y[i, j] = 0.0f32
    """
    counted = movement(kernel).executed()
    assert counted.multiply_adds == 0
    # seven of the ten rows are looked at, 0, 2, 3, 5, 6, 7 and 9: the ends have one access an element, the others two
    assert counted.accesses == pytest.approx(10 / 7 * (7 + 5 * 2 * 8 + 8))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + 2 * j - 1", (3, 15)), ("-i", (-6, -2)), ("i // 4", (0, 1)), ("j % 8", (1, 5)), ("i % 4", (0, 3)),
        ("min(i, 4)", (2, 4)), ("max(i, j)", (2, 6)), ("i < 7", (1, 1)), ("i > 6", (0, 0)), ("i <= j", (0, 1)),
        ("i == 9", (0, 0)), ("i != 9", (1, 1)), ("i >= 2 and j < 3", (0, 1)), ("i < 0 or j > 0", (1, 1)),
    ],
)  # fmt: skip
def test_the_values_of_an_expression_lie_in_an_interval(text: str, expected: tuple[float, float]) -> None:
    expression = parse_expr(text, {"i": Var("i"), "j": Var("j")})
    assert interval(expression, {"i": (2, 6), "j": (1, 5)}) == expected


def test_a_vector_reaches_as_far_as_its_lanes() -> None:
    assert interval(Ramp(Var("i"), Const(2), 4), {"i": (2, 6)}) == (2, 12)
