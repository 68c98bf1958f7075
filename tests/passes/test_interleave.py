"""Every other element by whole vectors: the same elements, the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_stmt
from opgen.loop.verify import verify
from opgen.passes.interleave import interleave

HEAD = "kernel case(n: int64 in [0, 4], x: float32[3, 16], z: float32[16]) -> (y: float32[3, 16], u: float32[16]):\n"
ZEROS = "".join(f"  {row}ramp(0, 1, 16)] = 0.0f32x16\n" for row in ("y[0, ", "y[1, ", "y[2, ", "u["))
ALL = "ramp(0, 1, 4)"


def case(*lines: str) -> Kernel:
    return parse_kernel(HEAD + ZEROS + "".join(f"  {line}\n" for line in lines))


def store(row: int, place: str, value: str) -> str:
    return f"y[{row}, {place}] = {value}"


PAIRS = {
    "stores": case(store(0, "ramp(2, 2, 4)", f"z[{ALL}]"), store(0, "ramp(3, 2, 4)", "z[ramp(8, 1, 4)]")),
    "stores of a name": case(store(0, "ramp(n, 2, 4)", f"z[{ALL}]"), store(0, "ramp(n + 1, 2, 4)", "z[ramp(8, 1, 4)]")),
    "masked stores": case(
        store(1, f"ramp(8, 2, 4) if {ALL} < 3i64x4", f"z[{ALL}]"),
        store(1, f"ramp(9, 2, 4) if {ALL} < 3i64x4", "z[ramp(8, 1, 4)]"),
    ),
    "stores of which one ends sooner": case(
        store(1, f"ramp(8, 2, 4) if {ALL} < 3i64x4", f"z[{ALL}]"),
        store(1, f"ramp(9, 2, 4) if {ALL} < 2i64x4", "z[ramp(8, 1, 4)]"),
    ),
    "loads": case(store(0, ALL, "x[1, ramp(n, 2, 4)]"), store(2, ALL, "x[1, ramp(n + 1, 2, 4)] + x[1, ramp(n, 2, 4)]")),
    "masked loads": case(
        store(0, ALL, "x[1, ramp(-1, 2, 4) if ramp(-1, 2, 4) >= 0i64x4]"), store(2, ALL, "x[1, ramp(0, 2, 4)]")
    ),
    "a load one lane further than a pair": case(
        store(0, ALL, "x[1, ramp(n, 2, 4)]"),
        store(1, ALL, "x[1, ramp(n + 1, 2, 4)]"),
        store(2, ALL, "x[1, ramp(n + 2, 2, 4)]"),
    ),
    "two pairs, one begun a lane later": case(
        *(store(k // 2, ALL if k % 2 else "ramp(4, 1, 4)", f"x[1, ramp(n + {k}, 2, 4)]") for k in range(4))
    ),
    "a masked load that begins before a pair": case(
        store(0, ALL, "x[1, ramp(0, 2, 4)]"),
        store(1, ALL, "x[1, ramp(-1, 2, 4) if ramp(-1, 2, 4) >= 0i64x4]"),
        store(2, ALL, "x[1, ramp(-2, 2, 4) if ramp(-2, 2, 4) >= 0i64x4]"),
    ),
    "a load within a pair": case(
        store(0, ALL, f"x[1, ramp(8, 2, 4) if {ALL} < 3i64x4]"),
        store(1, ALL, f"x[1, ramp(9, 2, 4) if {ALL} < 3i64x4]"),
        store(2, ALL, f"x[1, ramp(10, 2, 4) if {ALL} < 2i64x4]"),
    ),
}
NO_PAIRS = {
    "another row": case(store(0, "ramp(0, 2, 4)", f"z[{ALL}]"), store(1, "ramp(1, 2, 4)", f"z[{ALL}]")),
    "another distance": case(store(0, "ramp(0, 2, 4)", f"z[{ALL}]"), store(0, "ramp(3, 2, 4)", f"z[{ALL}]")),
    "three apart": case(store(0, "ramp(0, 3, 4)", f"z[{ALL}]"), store(0, "ramp(1, 3, 4)", f"z[{ALL}]")),
    "what was stored is read": case(
        "u[ramp(0, 2, 4)] = z[ramp(0, 1, 4)]", "u[ramp(1, 2, 4)] = u[ramp(0, 2, 4)] + u[ramp(0, 2, 4)]"
    ),
    "what is stored is read first": case("u[ramp(4, 2, 4)] = u[ramp(3, 2, 4)]", "u[ramp(5, 2, 4)] = z[ramp(0, 1, 4)]"),
    "what is stored is read in all lanes": case(
        "u[ramp(0, 2, 4)] = z[ramp(0, 1, 4)] + broadcast(u[7], 4)", "u[ramp(1, 2, 4)] = z[ramp(0, 1, 4)]"
    ),
    "a hole": case(
        store(1, f"ramp(8, 2, 4) if {ALL} < 2i64x4", f"z[{ALL}]"),
        store(1, f"ramp(9, 2, 4) if {ALL} < 3i64x4", f"z[{ALL}]"),
    ),
    "masks that are not known": case(
        store(1, f"ramp(8, 2, 4) if {ALL} < broadcast(n, 4)", f"z[{ALL}]"),
        store(1, f"ramp(9, 2, 4) if {ALL} < broadcast(n, 4)", f"z[{ALL}]"),
    ),
    "one that may not run": case(
        store(0, ALL, "x[1, ramp(0, 2, 4)]"), "if n > 2:", "  " + store(2, ALL, "x[1, ramp(1, 2, 4)]")
    ),
}


def results(kernel: Kernel, n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    inputs = {"x": rng.standard_normal((3, 16), np.float32), "z": rng.standard_normal(16, np.float32)}
    return interpret(kernel, inputs, {"n": n})


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("n", [0, 3])
def test_the_same_bits(name: str, n: int) -> None:
    before = PAIRS[name]
    after = interleave(before)
    verify(after)
    assert ", 2, 4)" not in print_stmt(after.body)
    expected, found = results(before, n), results(after, n)
    assert all(np.array_equal(found[name].view(np.uint32), expected[name].view(np.uint32)) for name in expected)


@pytest.mark.parametrize("name", NO_PAIRS)
def test_what_is_no_pair_stays(name: str) -> None:
    assert interleave(NO_PAIRS[name]) is NO_PAIRS[name]
