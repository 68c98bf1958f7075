"""What threads of a launch would exchange: refused, and left to the host by the default schedule."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.passes.legalize import legalize
from opgen.runtime.devices.emulation import compile_emulated
from opgen.schedule.default import default_schedule
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule

RECURRENCE = parse_kernel("""\
kernel recurrence(
    r: float32[rows, m, m],
    rows: int64 in [1, 9],
    m: int64 in [1, 999],
    steps: int64 in [1, 9],
) -> (
    h: float32[steps + 1, rows, m],
):
    for d in 0 .. rows:
        for j_0 in 0 .. m:
            h[0, d, j_0] = r[d, j_0, 0]
    for e in 0 .. rows:
        ordered for t in 0 .. steps:
            for j in 0 .. m:
                alloc acc: float32[] register
                acc[] = 0.0f32
                for k in 0 .. m:
                    acc[] = fma(h[t, e, k], r[e, j, k], acc[])
                h[t + 1, e, j] = acc[]
""")

TWICE = parse_kernel("""\
kernel twice(
    x: float32[rows, m],
    rows: int64 in [1, 9],
    m: int64 in [1, 999],
) -> (
    y: float32[rows, m],
    z: float32[rows, m],
):
    for i in 0 .. rows:
        for j in 0 .. m:
            y[i, j] = x[i, j]
        for k in 0 .. m:
            z[i, k] = y[i, m - k - 1]
""")


@pytest.mark.parametrize(
    ("kernel", "text", "message"),
    [
        (
            RECURRENCE,
            "split j 32 -> j_o, j_t\nbind j_t thread.x\nbind e block.x\n",
            "bind e: an iteration of 't' may load an element of 'h' that another stores, and its threads would not "
            "wait",
        ),
        (
            RECURRENCE,
            "bind e block.x\nsplit j 32 -> j_o, j_t\nbind j_t thread.x\n",
            "bind j_t: an iteration of 't' may load an element of 'h' that another stores, and its threads would not "
            "wait",
        ),
        (
            TWICE,
            "bind i block.x\nbind j thread.x\n",
            "bind j: two statements touch 'y', and its threads would not wait",
        ),
    ],
)
def test_threads_that_would_exchange_are_refused(kernel: Kernel, text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        apply(kernel, parse_schedule(text))
    assert refusal.value.message == message


def test_each_step_of_a_recurrence_with_sums_is_a_launch() -> None:
    scheduled = apply(RECURRENCE, default_schedule(RECURRENCE, "cuda"))
    rng = np.random.default_rng(1)
    sizes = {"rows": 2, "m": 150, "steps": 3}
    arrays = {"r": rng.integers(-2, 3, (2, 150, 150)).astype(np.float32)}
    expected = interpret(RECURRENCE, arrays, sizes)["h"]
    (run,) = compile_emulated([legalize(scheduled)])
    for reverse in (False, True):
        np.testing.assert_array_equal(run(arrays, sizes, reverse=reverse)["h"], expected)
