"""Limits of kernels whose work is known."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest

from opgen.compiler import cost
from opgen.loop.analysis.movement import Executed, Movement
from opgen.loop.parse import parse_kernel
from opgen.machine import typical
from opgen.machine.gpu import ASSUMED

MAPPED = """
kernel mapped(
    x: {dtype}[{size}],
) -> (
    y: {dtype}[{size}],
):
    for i in 0 .. {size}:
        y[i] = fma(x[i], x[i], {value}) / x[i]
"""


def mapped(size: int, dtype: str = "float32", value: str = "1.0f32") -> Movement:
    return Movement(parse_kernel(textwrap.dedent(MAPPED.format(size=size, dtype=dtype, value=value)).strip()))


def limits(movement: Movement, threads: int = 1) -> dict[str, cost.Limit]:
    return {limit.name: limit for limit in cost.of_work(movement, typical(), threads)}


def test_arithmetic_accesses_and_bytes_are_held_against_their_rates() -> None:
    machine, n = typical(), 1 << 16
    found = limits(mapped(n))
    assert found["multiply-adds"].seconds == pytest.approx(2 * n / machine.flops)
    assert found["arithmetic"].amount == n * (1 + 16), "a division takes as long as 16 multiply-adds"
    assert found["loads and stores"].amount == 2 * n
    assert found["loads and stores"].rate == machine.l1.bytes_per_second / machine.vector_bytes
    assert found["past the first cache"].amount == 8 * n
    assert found["past the last cache"].amount == 0
    assert cost.nearest(tuple(found.values())).name == "arithmetic"


def test_threads_share_memory_and_nothing_else() -> None:
    one, four = limits(mapped(1 << 26)), limits(mapped(1 << 26), threads=4)
    for name, limit in one.items():
        assert four[name].seconds == pytest.approx(limit.seconds / (1 if name == "past the last cache" else 4))


def test_wide_types_have_fewer_lanes_and_what_one_instruction_makes_counts_once() -> None:
    double = limits(mapped(64, "float64", "1.0f64"))
    assert double["multiply-adds"].rate == limits(mapped(64))["multiply-adds"].rate / 2
    pairs = replace(typical(), pairs=True)
    assert cost.issued(Executed(100, 1, paired=60), pairs) == 100 - 60 / 2
    assert cost.issued(Executed(100, 1, paired=60), replace(pairs, pairs=False)) == 100


def test_a_device_has_limits_of_its_own() -> None:
    kernel = parse_kernel(textwrap.dedent(MAPPED.format(size=1 << 26, dtype="float32", value="1.0f32")).strip())
    found = {limit.name: limit for limit in cost.on_gpu(kernel, ASSUMED)}
    assert found["past the last cache"].amount == 8 * (1 << 26)
    assert found["multiply-adds"].seconds == pytest.approx((1 << 26) / ASSUMED.fma_per_second)
    assert cost.nearest(tuple(found.values())).name == "past the last cache"
