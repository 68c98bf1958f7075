"""Multiply-adds under a mask that is known: a masked instruction where the CPU has masks, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.codegen.llvm.compile import assembly
from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from tests.codegen.llvm.jit import Compiled

LANE = "ramp(0, 1, 16)"
BEFORE = "ramp(-1, 1, 16)"
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.0], np.float32)


def case(condition: str, zero: str = "-0.0f32x16", swapped: bool = False) -> Kernel:
    """Sums of which a condition leaves out terms."""
    factors = [f"x[k, {BEFORE} if {BEFORE} >= 0i64x16]", f"select({condition}, broadcast(w[k], 16), {zero})"]
    first, second = reversed(factors) if swapped else factors
    return parse_kernel(f"""kernel case(n: int64 in [0, 16], x: float32[4, 16], w: float32[4]) -> (y: float32[16]):
  alloc acc: float32[16] register
  acc[{LANE}] = -0.0f32x16
  for k in 0..4:
    acc[{LANE}] = fma({first}, {second}, acc[{LANE}])
  y[{LANE}] = acc[{LANE}]
""")


INSIDE = f"{BEFORE} >= 0i64x16"


@pytest.mark.parametrize("swapped", [False, True])
def test_bits_are_the_same(swapped: bool) -> None:
    """Also where what is left out is no number, and the sign of sums of nothing."""
    kernel = case(INSIDE, swapped=swapped)
    compiled = Compiled(kernel)
    for shift in range(8):
        x = np.resize(np.roll(SPECIAL, shift), (4, 16)).astype(np.float32)
        inputs = {"x": x, "w": np.roll(SPECIAL, 3 * shift)[:4].copy()}
        expected, found = interpret(kernel, inputs, {"n": 0})["y"], np.empty(16, np.float32)
        assert compiled(inputs["x"], inputs["w"], found, n=0) == 0
        assert np.array_equal(np.isnan(expected), np.isnan(found))
        known = ~np.isnan(expected)
        assert np.array_equal(expected[known].view(np.uint32), found[known].view(np.uint32))


def test_the_instruction_has_a_mask() -> None:
    """No blend beside it; the mask is the same in all iterations."""
    text = assembly(emit(case(INSIDE), Target.from_name("x86-64-v4")), Target.from_name("x86-64-v4"))
    assert "{%k" in next(line for line in text.splitlines() if "vfmadd" in line)
    assert "blend" not in text


@pytest.mark.parametrize(
    ("kernel", "target"),
    [
        (case(INSIDE), "x86-64-v3"),
        (case(INSIDE, zero="0.0f32x16"), "x86-64-v4"),
        (case(f"{LANE} < 3i64x16"), "x86-64-v4"),
    ],
    ids=["a CPU without masks", "a zero that changes -0", "a factor that is not 0 there"],
)
def test_others_keep_their_select(kernel: Kernel, target: str) -> None:
    ir = emit(kernel, Target.from_name(target))
    assert '"=r,0"' not in ir
    assert "select <16 x i1>" in ir
