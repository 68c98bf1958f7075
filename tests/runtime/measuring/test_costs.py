"""The cost of a kernel: estimated, measured, and held against the limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import opgen
from generated import onnx_ops as onnx
from opgen.compiler.cost import Limit
from opgen.compiler.make import artifact
from opgen.compiler.request import Cuda
from opgen.diagnostics import UserError
from opgen.loop.analysis.movement import Executed
from opgen.runtime.measuring.costs import Cost, cost_of

TENSOR = np.ones((64, 1000), np.float32)


def test_any_op_has_a_cost() -> None:
    found = opgen.inspect(onnx.exp, TENSOR).cost
    assert found.tensor_bytes == 2 * TENSOR.nbytes
    assert found.estimate is not None
    assert found.measured is not None
    assert found.measured > 0
    assert found.nearest.seconds == max(limit.seconds for limit in found.limits)
    picked = opgen.inspect(onnx.gather, TENSOR, np.zeros(5, np.int64)).cost
    assert picked.measured is not None, "subscripts of random data are in range"
    moved = {limit.name: limit.amount for limit in picked.limits}
    assert moved["past the first cache"] <= TENSOR.nbytes, "rows that elements decide are not all rows"


def test_a_device_has_limits_and_no_measured_time() -> None:
    made = opgen.inspect(onnx.exp, TENSOR).artifact
    found = cost_of(artifact(replace(made.request, target=Cuda())))
    assert (found.measured, found.share, found.estimate) == (None, None, None)
    assert "not measured (a CUDA device's time is not measured here)" in str(found)
    assert found.nearest.seconds > 0


def test_a_kernel_for_all_sizes_has_none() -> None:
    made = opgen.inspect(onnx.exp, TENSOR).artifact
    with pytest.raises(UserError, match="is for all sizes, so its cost is not known: give the shapes of all inputs"):
        cost_of(artifact(replace(made.request, call=None)))


def test_the_table_says_which_limit_is_nearest_and_how_much_of_it_is_reached() -> None:
    limits = (
        Limit("arithmetic", 2e6, "vectors", 1e9),
        Limit("past the last cache", 3e6, "bytes", 1e9),
        Limit("multiply-adds", 0, "multiply-adds", 1e9),
    )
    cost = Cost(limits, Executed(5e6, 1), 1 << 20, 2, "this machine", 1e-3, 4e-3)
    assert cost.share == 0.75
    assert str(cost).splitlines() == [
        "5 M multiply-adds, 1.05 M bytes of tensors; 2 threads of this machine",
        "estimated 1 ms on one core; measured 4 ms (median, random data)",
        "",
        "limit                     amount     a second  least time  reached",
        "past the last cache    3 M bytes    1 G bytes        3 ms      75%",
        "arithmetic           2 M vectors  1 G vectors        2 ms      50%",
        "nearest limit: past the last cache, 75% of it is reached",
    ]
    assert str(replace(cost, measured=2e-3)).endswith("more than 100%: rates were measured while others used the "
                                                      "machine, or accesses overlap")  # fmt: skip
