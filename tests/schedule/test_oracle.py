"""The comparison that all schedules rest on can fail."""

from __future__ import annotations

import pytest

from opgen.diagnostics import InternalError
from opgen.loop import build as b
from opgen.loop.nodes import Const, For, Kernel, Stmt
from opgen.loop.walk import map_stmt
from opgen.passes.simplify import simplify
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule import kernels
from tests.schedule.differential import assert_same

SIZES = {"m": 3, "n": 6, "p": 2}


def spoilt(kernel: Kernel, name: str) -> Kernel:
    """The kernel with one loop an iteration short."""

    def shorter(s: Stmt) -> Stmt:
        if isinstance(s, For) and s.var == name:
            return For(s.var, s.start, b.sub(s.stop, Const(1)), s.body, s.kind)
        return s

    return Kernel(kernel.name, kernel.inputs, kernel.outputs, kernel.parameters, map_stmt(kernel.body, stmt=shorter))


@pytest.mark.parametrize(
    ("loop", "wanted"),
    [
        ("i", r"element \[2, 0\] of output 'c' is never written"),
        ("j_i", r"element \[0, 1\] of output 'c' is never written"),
        ("k", "'c' of 'product' differs: seed 0, sizes .*\nsplit j 2 tail=guard"),
    ],
)
def test_a_planted_fault_is_found(loop: str, wanted: str) -> None:
    kernel = kernels.kernel(kernels.PRODUCT)
    schedule = parse_schedule("split j 2")
    scheduled = simplify(apply(kernel, schedule))
    assert_same(kernel, scheduled, SIZES, 0, str(schedule))
    with pytest.raises((AssertionError, InternalError), match=wanted):
        assert_same(kernel, spoilt(scheduled, loop), SIZES, 0, str(schedule))
