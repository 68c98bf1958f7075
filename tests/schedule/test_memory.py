"""What memory and arithmetic cost on a machine: rates by size, room in caches, and what is exposed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from opgen.machine import Cache, Machine, typical
from opgen.machine.kinds import assumed
from opgen.schedule.cost.execution import Execution
from opgen.schedule.cost.memory import Memory, Shares
from opgen.schedule.cost.traffic import Region


def random_machine(rng: random.Random) -> Machine:
    """Caches of any sizes, each slower than the one before, and more than four times as large."""
    first = rng.randint(1, 1 << 8)
    second = first * rng.randint(5, 40)
    sizes = (first, second, second * rng.randint(5, 40))
    rates = sorted((rng.uniform(1e9, 1e12) for _ in range(4)), reverse=True)
    caches = [Cache(size << 10, rng.choice((4, 8, 12)), 64, rate) for size, rate in zip(sizes, rates, strict=False)]
    return replace(typical(), l1=caches[0], l2=caches[1], l3=caches[2], memory_bytes_per_second=rates[3])


@pytest.mark.parametrize("seed", range(20))
def test_more_never_comes_faster(seed: int) -> None:
    rng = random.Random(seed)
    memory = Memory(random_machine(rng))
    sizes = sorted(rng.uniform(0, 3 * memory.machine.l3.size) for _ in range(50))
    rates, times = [memory.rate(s) for s in sizes], [memory.seconds(s) for s in sizes]
    assert rates == sorted(rates, reverse=True), f"seed {seed}"
    assert times == sorted(times), f"seed {seed}"


@pytest.mark.parametrize("seed", range(20))
def test_what_a_level_holds_comes_at_its_rate(seed: int) -> None:
    rng = random.Random(seed)
    shares = Shares(*(rng.choice((1 / 4, 1 / 2, 1)) for _ in range(3)))
    memory = Memory(random_machine(rng), shares)
    for level in (1, 2, 3):
        size = memory.usable(level)
        assert memory.holds(size, level)
        assert not memory.holds(size + 1, level)
        assert memory.rate(size) >= memory.cache(level).bytes_per_second, f"seed {seed}"
    assert not memory.is_far(memory.usable(3))
    assert memory.is_far(memory.usable(3) + 1)
    assert memory.rate(memory.usable(3) + 1) == memory.machine.memory_bytes_per_second


def test_a_level_without_a_share_is_never_looked_for() -> None:
    memory = Memory(typical(), Shares(0, 1, 1 / 4))
    assert memory.rate(1) == memory.rate(memory.machine.l2.size) == memory.machine.l2.bytes_per_second


def test_lines_in_few_sets_evict_each_other() -> None:
    memory = Memory(replace(typical(), l1=Cache(32 << 10, 8, 64, 220e9)))
    assert memory.fits(Region(64, 16, 2048), 1)
    assert not memory.fits(Region(64, 17, 2048), 1)
    assert memory.fits(Region(64, 17, 2048), 2)


@pytest.mark.parametrize(
    ("name", "vector_bytes", "units"),
    [("znver1", 32, 1), ("znver4", 64, 1), ("znver5", 64, 2), ("haswell", 32, 2), ("apple-m1", 16, 4)],
)
def test_units_are_told_by_what_is_under_way(name: str, vector_bytes: int, units: int) -> None:
    values, _ = assumed(name, vector_bytes, 3e9)
    execution = Execution(replace(typical(vector_bytes), latency=int(values["latency"])))
    assert execution.units == units
    assert execution.hides_loads == (units == 1)


def test_arithmetic_takes_vectors() -> None:
    execution = Execution(typical(64))
    assert execution.seconds(16 * execution.multiply_adds, 16) == pytest.approx(1)
    assert execution.loads == pytest.approx(typical(64).l1.bytes_per_second / 64)
