"""prefix, relay: steps of a running sum, product, minimum or maximum in vectors, and in blocks."""

from __future__ import annotations

import pytest

from opgen.loop.nodes import For, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.walk import loops_in
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from opgen.schedule.targets import require_target
from tests.schedule.differential import assert_same


def running(dtype: str, value: str, steps: int = 37, to: str = "t + 1", of: str = "t", zero: str = "0") -> Kernel:
    zero += {"int32": "i32", "float32": ".0f32", "float64": ".0f64"}[dtype]
    return parse_kernel(
        f"kernel sums(x: {dtype}[3, {steps}]) -> (y: {dtype}[3, {steps + 1}]):\n"
        f"  for i in 0..3:\n    for j in 0..{steps + 1}:\n      y[i, j] = {zero}\n"
        f"  for r in 0..3:\n    ordered for t in 0..{steps}:\n"
        f"      y[r, {to}] = {value.replace('old', f'y[r, {of}]').replace('new', 'x[r, t]')}\n"
    )


VALUES = ("new + old", "old + new", "max(old, new)", "min(new, old)", "(new + new) + old")


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "text",
    [
        "prefix t 2 -> p\n",
        "prefix t 16 -> p\n",
        "relay t 8 -> o, q\nparallel q_sum\n",
        "relay t 5 -> o, q\nprefix t 2 -> p\nparallel o\n",
    ],
)
def test_steps_in_vectors_and_blocks(dtype: str, value: str, text: str) -> None:
    for steps in (16, 37):
        for to, of in (("t + 1", "t"), (f"{steps - 1} - t", f"{steps} - t")):
            before = running(dtype, value, steps, to, of, "2")
            rows = "" if "parallel" in text else "parallel r\n"
            after = apply(before, parse_schedule(f"{text}{rows}"))
            assert_same(before, after, {}, steps, f"{value} {to}")


def test_products_in_vectors() -> None:
    before = running("int32", "new * old", zero="3")
    assert_same(before, apply(before, parse_schedule("prefix t 8 -> p\n")), {}, 5, "products")


NO_SUM = "'y' is not a running sum, product, minimum or maximum"


@pytest.mark.parametrize(
    ("kernel", "step", "message"),
    [
        (running("float32", "new + old"), "prefix t 3", "3 lanes are not a power of two from 2 to 64"),
        (running("float32", "new + old", 7), "prefix t 8", "it is not known to have 8 steps"),
        (running("float32", "new + old"), "prefix r 8", "its body is not one step of a running sum"),
        (running("float32", "old - new"), "prefix t 8", NO_SUM),
        (running("float32", "old + old"), "prefix t 8", NO_SUM),
        (running("float32", "new + old * new"), "prefix t 8", NO_SUM),
        (
            running("float32", "new + old", of="0"),
            "prefix t 8",
            NO_SUM,
        ),
        (running("float32", "new + old", of="t + 1"), "prefix t 8", NO_SUM),
        (running("float32", "new + old"), "prefix t 8 -> x", "the name 'x' is taken"),
        (running("float32", "new + old"), "relay t 19", "it is not known to have 2 to 65536 blocks of 2 steps or more"),
        (running("float32", "new + old"), "relay t 1", "it is not known to have 2 to 65536 blocks of 2 steps or more"),
        (running("float32", "old - new"), "relay t 4", NO_SUM),
    ],
)
def test_what_is_refused(kernel: Kernel, step: str, message: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        apply(kernel, parse_schedule(f"{step}\n"))
    assert message in str(refused.value)


def test_running_sums_in_vectors_are_for_cpus() -> None:
    with pytest.raises(ScheduleError, match="a step for CPUs"):
        require_target(parse_schedule("prefix t 8 -> p\n"), "cuda")


def test_steps_stay_outside_of_what_reads_neighbours() -> None:
    text = (
        "kernel waves(x: float32[20]) -> (y: float32[11, 20]):\n"
        "  for j in 0..20:\n    y[0, j] = x[j]\n"
        "  ordered for t in 0..10:\n    for a in 0..20:\n      y[t + 1, a] = y[t, AT]\n"
    )
    before = parse_kernel(text.replace("AT", "a"))
    after = apply(before, parse_schedule("reorder a, t\n"))
    outer = next(s for s in loops_in(after.body) if s.var == "a")
    assert isinstance(outer.body, For)
    assert outer.body.kind == "ordered"
    assert_same(before, after, {}, 1, "steps inside")
    with pytest.raises(ScheduleError, match="not all that its steps hold is independent"):
        apply(parse_kernel(text.replace("AT", "min(a + 1, 19)")), parse_schedule("reorder a, t\n"))
