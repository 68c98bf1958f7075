"""What bounds a row: bytes and multiply-adds counted on kernels whose counts are known, and on those of real cases."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest

from opgen.compiler.machines import MEASURED
from opgen.loop.nodes import Const, Ramp, Var
from opgen.loop.parse import parse_expr, parse_kernel
from opgen.machine import typical
from opgen.machine.describe import Described
from tools.bench.explain import Explanation, Resource, explain, measured_machine, resources, sentences
from tools.bench.layers import DIRECTIONS, Case
from tools.bench.traffic import Executed, Traffic, interval

SMALL = Case("small", "dense", 1, 6, 8, 16, 32, 3, 3, 1, "SAME")

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


def traffic(text: str) -> Traffic:
    return Traffic(parse_kernel(textwrap.dedent(text).strip()))


def test_what_a_kernel_executes_is_counted() -> None:
    assert traffic(PRODUCT).executed() == Executed(64 * 128 * 32, 64 * 128 * (2 * 32 + 1))


def test_bytes_move_once_where_a_loop_or_its_iteration_fits() -> None:
    product = traffic(PRODUCT)
    assert product.between(A + B + C) == 0  # it all stays from call to call
    assert product.between(A + B + C - 1) == A + B + C  # `b` and a row of the others fit: each moves once
    assert product.between(4 * 32 + B + 4 * 128) == A + B + C


def test_bytes_move_again_where_nothing_stays() -> None:
    """With room for a column of `b` but not for all of it, `b` moves for each of the 64 rows."""
    column = 4 * 32 + 4 * 32 + 4
    assert traffic(PRODUCT).between(column) == 64 * (4 * 32 + B + 4 * 128)
    assert traffic(PRODUCT).between(column - 1) == 64 * 128 * (2 * 4 * 32 + 4)


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
    counted = traffic(kernel).executed()
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


def test_the_slowest_resource_binds() -> None:
    found = {r.name: r for r in resources(SMALL, typical(), traffic(PRODUCT), traffic(PRODUCT).executed(), 1)}
    assert found["multiply-adds"].seconds == pytest.approx(2 * 64 * 128 * 32 / typical().flops)
    assert found["loads and stores"].rate == typical().l1.bytes_per_second / 64
    assert found["past the first cache"].amount == traffic(PRODUCT).between(typical().l1.size)
    assert found["past the last cache"].amount == 0
    paired = resources(SMALL, replace(typical(), pairs=True), traffic(PRODUCT), Executed(100, 1, 60), 1)
    assert paired[0].amount == 2 * (100 - 60 / 2)
    double = resources(replace(SMALL, dtype="float64"), typical(), traffic(PRODUCT), Executed(1, 1), 1)
    assert double[0].rate == typical().flops / 2
    slow, fast = Resource("slow", 10, "byte", 5), Resource("fast", 10, "flop", 50)
    machine = Described(typical(), {})
    explained = Explanation(SMALL, 1, machine, "", (fast, slow), Executed(SMALL.flops, 0))
    assert explained.binding == slow
    assert sentences(explained, 4.0)[0].endswith("the kernel executes 2.00 times these multiply-adds")
    assert sentences(explained, 4.0)[1] == "predicted: 2.00 s, bound by: slow"
    assert sentences(explained, 4.0)[2].endswith("the prediction is 50% of it")
    assert len(sentences(explained, 4.0)) == 3
    assert sentences(explained, 1.0)[3].startswith("more than 100%: ")
    assert len(sentences(explained, None)) == 2


def test_rates_that_schedules_assume_are_measured() -> None:
    described = measured_machine()
    assert "assumed" not in {described.sources[name] for name in MEASURED if name != "pairs"}
    assert described.machine.fma_per_second > 1e7


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", ["dense", "depthwise"])
def test_the_kernels_of_real_cases_do_their_work(kind: str, direction: str) -> None:
    """At least the terms that are not padding, and no more than tiles and overlaps explain."""
    case = Case("small", kind, 1, 12, 14, 16, 32 if kind == "dense" else 16, 3, 3, 1, "SAME", direction)
    found = explain(case)
    assert 0.7 <= 2 * found.executed.multiply_adds / case.flops <= 1.7
    assert found.schedule
    assert found.binding.seconds > 0
