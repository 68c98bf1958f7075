"""Lanes at known places: rows of a map one after the other, or some of them, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.verify import verify
from opgen.runtime.kernels.run import run_kernel


def rows_kernel(start: int, across: int, along: int, mask: str = "") -> Kernel:
    """Eight lanes over rows of 3 places: `across` rows and `along` places apart; those under a mask."""
    lane = f"ramp({start}, 1, 8)"
    at = f"({lane} // 3i64x8)*{across}i64x8, ({lane} % 3i64x8)*{along}i64x8"
    return parse_kernel(
        f"kernel rows(n: int64 in [0, 8], x: float32[9, 6]) -> (y: float32[8], z: float32[4, 3]):\n"
        f"  y[ramp(0, 1, 8)] = x[{at}{mask}]\n"
        f"  z[ramp(0, 1, 4), 0] = 0.0f32x4\n  z[ramp(0, 1, 4), 1] = 0.0f32x4\n  z[ramp(0, 1, 4), 2] = 0.0f32x4\n"
        f"  z[{lane} // 3i64x8, {lane} % 3i64x8] = x[{at}{mask}]\n"
    )


MASKS = {
    "all": "",
    "some that are known": " if ramp(0, 1, 8) < 5i64x8",
    "some that are not": " if ramp(0, 1, 8) < broadcast(n, 8)",
    "both": " if ramp(0, 1, 8) >= 2i64x8 and ramp(0, 1, 8) < broadcast(n, 8)",
    "known ones in the middle": " if ramp(0, 1, 8) % 3i64x8 > 0i64x8",
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("start", "across", "along"), [(0, 1, 1), (2, 1, 1), (0, 2, 1), (1, 1, 2), (3, 2, 2)])
def test_rows_of_lanes(start: int, across: int, along: int, mask: str) -> None:
    kernel = rows_kernel(start, across, along, MASKS[mask])
    verify(kernel, bounds=True)
    inputs = {"x": np.random.default_rng(start).standard_normal((9, 6), np.float32)}
    for n in (0, 3, 8):
        expected = interpret(kernel, inputs, {"n": n})
        found = run_kernel(kernel, inputs, {"n": n}, 1, guarded=True)
        assert all(np.array_equal(found[name].view(np.uint32), expected[name].view(np.uint32)) for name in expected)


def test_rows_side_by_side_are_one_access() -> None:
    """No lane is gathered or scattered, and rows of three in a map of three are one vector."""
    kernel = parse_kernel(
        "kernel rows(x: float32[9, 3]) -> (y: float32[9, 3]):\n"
        "  y[ramp(1, 1, 8) // 3i64x8, ramp(1, 1, 8) % 3i64x8] = x[ramp(4, 1, 8) // 3i64x8, ramp(4, 1, 8) % 3i64x8]\n"
    )
    text = emit(kernel, Target.generic())
    assert text.count("load <8 x float>") == 1
    assert "gather" not in text
    assert "scatter" not in text
