"""The estimate that chooses between kernels: what it counts, and what it leaves out."""

from __future__ import annotations

import pytest

from opgen.loop.parse import parse_kernel
from opgen.machine import typical
from opgen.schedule.cost.calibration import NEST, SHUFFLES, TRANSPOSED
from opgen.schedule.estimate import seconds

MACHINE = typical()


def kernel(body: str, size: int = 4096) -> str:
    return f"kernel f(\n    x: float32[{size}, {size}],\n) -> (\n    y: float32[{size}, {size}],\n):\n{body}"


def test_arithmetic_and_memory_add_up() -> None:
    body = "    for i in 0 .. 4096:\n        for j in 0 .. 4096:\n            y[i, j] = x[i, j] * 2.0f32 + 1.0f32\n"
    work = 2 * 4096**2 / (MACHINE.fma_per_second * 16)
    moved = 2 * 4 * 4096**2 / MACHINE.memory_bytes_per_second
    assert seconds(parse_kernel(kernel(body)), MACHINE) == pytest.approx(NEST + work + moved)


def copying(place: str) -> float:
    """The estimate for a copy of what lies at a place."""
    body = f"    for i in 0 .. 512:\n        for j in 0 .. 512:\n            y[i, j] = x[{place}]\n"
    return seconds(parse_kernel(kernel(body, 1024)), MACHINE)


def test_what_is_read_across_costs_lines() -> None:
    """Where no loop runs along it."""
    lines = 512**2 * MACHINE.l1.line / MACHINE.l2.bytes_per_second
    assert copying("j, i * 2") - copying("i, j") == pytest.approx(lines)


def test_what_can_be_turned_costs_shuffles() -> None:
    """A loop along what is read across makes square blocks of it: four shuffles, a load and a store for each vector."""
    vectors = 512**2 / 16
    turning = vectors * (4 + TRANSPOSED) / (SHUFFLES * MACHINE.fma_per_second)
    assert copying("j, i") - copying("i, j") == pytest.approx(turning)
    assert turning < 512**2 * MACHINE.l1.line / MACHINE.l2.bytes_per_second / 2


def test_what_is_turned_is_turned_once() -> None:
    """However many reads of it there are: as if each place were read once."""

    def of(reads: int) -> float:
        read = " + ".join(f"x[j, i * 4 + {n % 4}]" for n in range(reads))
        across = "    for i in 0 .. 256:\n        for j in 0 .. 1024:\n"
        text = kernel(f"{across}            y[i, j] = {read}\n", 1024)
        along = text.replace("x[j, i * 4", "x[i * 4, j")
        return seconds(parse_kernel(text), MACHINE) - seconds(parse_kernel(along), MACHINE)

    turning = 1024**2 / 16 * (4 + TRANSPOSED) / (SHUFFLES * MACHINE.fma_per_second)
    assert of(4) == pytest.approx(turning, rel=1e-6)
    assert of(1) == pytest.approx(256 * 1024 * MACHINE.l1.line / MACHINE.l2.bytes_per_second, rel=1e-6)


def test_results_across_what_is_read_are_transposed() -> None:
    def of(even: str, odd: str) -> float:
        loops = "    for i in 0 .. 512:\n        for j in 0 .. 1024:\n"
        stores = "".join(f"            y[{place}] = x[i, j]\n" for place in (even, odd))
        return seconds(parse_kernel(kernel(loops + stores, 1024)), MACHINE)

    turning = 1024**2 / 16 * (4 + TRANSPOSED) / (SHUFFLES * MACHINE.fma_per_second)
    assert of("j, i * 2", "j, i * 2 + 1") - of("i * 2, j", "i * 2 + 1, j") == pytest.approx(turning, rel=1e-6)


def test_what_data_ask_for_does_not_count() -> None:
    nest = "for i in 0 .. 8:\n            y[i, 0] = x[i, 0]\n"
    rare = parse_kernel(kernel(f"    if x[0, 0] != x[0, 0]:\n        {nest}", 8))
    assert seconds(rare, MACHINE) == 0


def test_what_conditions_leave_out_does_not_count() -> None:
    def of(rows: int, condition: str) -> float:
        loops = f"    for i in 0 .. {rows}:\n        for r in 0 .. 3:\n"
        body = f"            if {condition}:\n                y[i, r] = y[i, r] * 2.0f32\n"
        return seconds(parse_kernel(kernel(loops + body, 4096)), MACHINE)

    one = 1 / (MACHINE.fma_per_second * 16)
    always, inside = of(7, "i >= 0"), of(7, "i + r - 1 >= 0 and i + r - 1 < 7")
    assert always - inside == pytest.approx(2 * one, rel=1e-3)
    assert of(4096, "i + r - 1 >= 0") == pytest.approx(of(4096, "i >= 0"), rel=1e-12)  # too many to try


def test_what_a_nest_moves_must_fit_together() -> None:
    body = "    for i in 0 .. 2048:\n        for j in 0 .. 2048:\n            y[i, j] = x[i, j]\n"
    size = 4 * 2048**2  # each alone would be in the last cache
    assert 2 * size <= MACHINE.l3.size < 4 * size
    moved = 2 * size / MACHINE.memory_bytes_per_second
    assert seconds(parse_kernel(kernel(body, 2048)), MACHINE) == pytest.approx(NEST + moved)
