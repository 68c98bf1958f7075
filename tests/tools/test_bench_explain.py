"""The limits of a row of the benchmark tables, and what is said of them."""

from __future__ import annotations

import pytest

from opgen.compiler.cost import Limit
from opgen.compiler.machines import MEASURED
from opgen.loop.analysis.movement import Executed
from opgen.machine import typical
from opgen.machine.describe import Described
from tools.bench.explain import Explanation, explain, measured_machine, sentences
from tools.bench.layers import DIRECTIONS, Case

SMALL = Case("small", "dense", 1, 6, 8, 16, 32, 3, 3, 1, "SAME")


def test_the_slowest_resource_binds() -> None:
    slow, fast = Limit("slow", 10, "byte", 5), Limit("fast", 10, "multiply-add", 50)
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
