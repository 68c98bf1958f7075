"""Conditions on remainders: those of a phase are the same for all its places, and stay outside of their loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from opgen.grad.gradient import gradient
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.limits import count
from opgen.schedule.schedule import apply, parse_schedule
from opgen.spec import load
from tests.harness import Call
from tests.schedule.differential import assert_same

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")

STRIDED = """
kernel strided(g: float32[4, 8], f: float32[7, 8]) -> (y: float32[20]):
  for w in 0..20:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for s in 0..7:
      if (w + 2 - s) % 5 == 0 and (w + 2 - s) // 5 >= 0 and (w + 2 - s) // 5 < 4:
        for k in 0..8:
          acc[] = fma(g[(w + 2 - s) // 5, k], f[s, k], acc[])
    y[w] = acc[]
"""
TILED = "split w 5 tail=exact -> w_q, w_p\nreorder w_p, s, k, w_q\n"


@pytest.mark.parametrize("more", ["", "unroll w_q\n", "parallel w_p\n", "unroll w_p\nunroll s\nunroll w_q\n"])
def test_a_phase_is_asked_once_for_all_its_places(more: str) -> None:
    kernel = parse_kernel(STRIDED)
    after = apply(kernel, parse_schedule(TILED + more))
    text = [line.strip() for line in print_kernel(apply(kernel, parse_schedule(TILED))).splitlines()]
    assert text[text.index("for s in 0 .. 7:") + 1 :][:2] == ["if (w_p - s + 2) % 5 == 0:", "for k in 0 .. 8:"]
    assert_same(kernel, after, {}, 0)
    assert_same(kernel, legalize(after), {}, 0)


@pytest.mark.parametrize("condition", ["t[0] > 0 and k < 3", "t[0] > 0"])
def test_a_condition_on_what_iterations_write_stays_inside(condition: str) -> None:
    kernel = parse_kernel(f"""kernel counted() -> (t: int64[6]):
  for i in 0..6:
    t[i] = i + 2
  for k in 0..4:
    if {condition}:
      for j in 0..6:
        t[j] = t[j] - 1
""")
    with pytest.raises(ScheduleError, match="reorder k"):
        apply(kernel, parse_schedule("reorder j, k\n"))


def test_a_remainder_of_what_may_have_wrapped_stays() -> None:
    text = "kernel wrapped(t: int64[10]) -> (y: int64[10]):\n  for i in 0..10:\n    y[i] = {}\n"
    for value in ("t[i]*5 + i", "i - t[2]*5"):
        kernel = parse_kernel(text.format(f"({value}) % 5"))
        after = print_kernel(apply(kernel, parse_schedule("split i 5 -> o, p")))
        assert "* 5" in after.split("y[")[1].split("% 5")[0].replace("o * 5", "o")


def by_input(stride: int, taps: int, channels: int, filters: int, data_format: str, dtype: str) -> Kernel:
    """The gradient by a small image."""
    size = {"N": 1, "H": stride + 2, "W": 2 * stride + 1, "C": channels}
    attrs = {
        "strides": [stride if letter in "HW" else 1 for letter in data_format],
        "padding": "SAME",
        "data_format": data_format,
    }
    shapes = {"input": tuple(size[letter] for letter in data_format), "filter": (taps, taps, channels, filters)}
    op = MODULE.op("Conv2D")
    cotangent = tuple(Call(MODULE, op, shapes, attrs, dtype=dtype).environment.output_shapes["output"])
    call = Call(MODULE, gradient(MODULE, op, "input"), {**shapes, "grad_output": cotangent}, attrs, dtype=dtype)
    lowered, parameters = call.kernel()
    return simplify(bind(lowered, parameters))


@pytest.mark.parametrize(
    ("stride", "taps", "data_format", "dtype"), [(5, 6, "NHWC", "float32"), (8, 6, "NCHW", "bfloat16")]
)
def test_large_strides_have_lanes_and_little_code(stride: int, taps: int, data_format: str, dtype: str) -> None:
    kernel = by_input(stride, taps, 16, 4, data_format, dtype)
    schedule, after = scheduled(kernel, "cpu", typical(64))
    assert "vectorize c_l" in str(schedule)
    assert count(legalize(after).body) < 1000
    assert_same(kernel, legalize(after), {}, stride)
