"""Terms that masks leave out: selects of factors, with the same bits as selects of sums."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_stmt
from opgen.loop.verify import verify
from opgen.passes.known import decided
from opgen.passes.left_out import select_factors

HEAD = "kernel case(n: int64 in [0, 8], x: float32[8], w: float32[8], a: float32[8]) -> (y: float32[8]):\n  "
LANE = "ramp(0, 1, 8)"
BEFORE = "ramp(-1, 1, 8)"


def case(condition: str, factor: str, other: str, swapped: bool = False) -> Kernel:
    """y = a, and where the condition holds, a + factor * other."""
    first, second = (other, factor) if swapped else (factor, other)
    return parse_kernel(f"{HEAD}y[{LANE}] = select({condition}, fma({first}, {second}, a[{LANE}]), a[{LANE}])\n")


CASES = {
    "a scalar": case(f"{BEFORE} >= 0i64x8", f"x[{BEFORE} if {BEFORE} >= 0i64x8]", "broadcast(w[2], 8)"),
    "the other way round": case(
        f"{BEFORE} >= 0i64x8", f"x[{BEFORE} if {BEFORE} >= 0i64x8]", "broadcast(w[2], 8)", True
    ),
    "two vectors": case(
        f"{BEFORE} >= 0i64x8", f"x[{BEFORE} if {BEFORE} >= 0i64x8]", f"w[{LANE} if {BEFORE} >= 0i64x8]"
    ),
    "not known": case(
        f"{LANE} < broadcast(n, 8)", f"x[{LANE} if {LANE} < broadcast(n, 8)]", f"w[{LANE} if {LANE} < broadcast(n, 8)]"
    ),
    "a mask of its own": case(
        f"{LANE} >= 3i64x8", f"x[{LANE} if {LANE} >= 3i64x8]", f"w[{LANE} if {LANE} % 2i64x8 == 0i64x8]"
    ),
    "never": case(f"{LANE} < 0i64x8", f"x[{LANE} if {LANE} < 0i64x8]", "broadcast(w[2], 8)"),
}
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.0], np.float32)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("live", [0, 3, 8])
def test_bits_are_the_same(name: str, live: int) -> None:
    """Also of what is left out: infinities, NaN, and the sign of a sum that is 0."""
    before = CASES[name]
    after = select_factors(before)
    verify(after)
    assert after is not before
    for shift in range(8):
        inputs = {"x": np.roll(SPECIAL, shift), "w": np.roll(SPECIAL, 2 * shift + 1), "a": SPECIAL}
        expected, found = interpret(before, inputs, {"n": live})["y"], interpret(after, inputs, {"n": live})["y"]
        assert np.array_equal(np.isnan(expected), np.isnan(found))
        known = ~np.isnan(expected)
        assert np.array_equal(expected[known].view(np.uint32), found[known].view(np.uint32))


def test_a_factor_is_selected_and_loaded_under_no_more_than_it_needs() -> None:
    assert print_stmt(select_factors(CASES["two vectors"]).body) == (
        f"y[{LANE}] = fma(x[{BEFORE} if {BEFORE} >= 0i64x8], "
        f"select({BEFORE} >= 0i64x8, w[{LANE}], -0.0f32x8), a[{LANE}])"
    )
    assert print_stmt(select_factors(CASES["never"]).body) == f"y[{LANE}] = a[{LANE}]"


def test_what_is_not_masked_stays_selected() -> None:
    """A factor that is read in all lanes may be infinite where the term is left out."""
    plain = case(f"{BEFORE} >= 0i64x8", f"x[{LANE}]", "broadcast(w[2], 8)")
    assert select_factors(plain) is plain


def test_lanes_are_decided_one_by_one() -> None:
    assert decided(CASES["a scalar"].body.value.condition) == (False, *(True,) * 7)
    assert decided(CASES["not known"].body.value.condition) == (None,) * 8
