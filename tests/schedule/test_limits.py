"""What a schedule may not make of a kernel, wherever it comes from: it is refused with the reason, in little time."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from opgen.dtypes import DTYPES
from opgen.loop.nodes import Alloc, Buffer, Const
from opgen.loop.parse import parse_kernel
from opgen.schedule.errors import ScheduleError
from opgen.schedule.limits import COPIES, DEPTH, LANES, STACK, Limits, count
from opgen.schedule.parse import LINE, STEPS
from opgen.schedule.schedule import apply, parse_schedule

PRODUCT = """
kernel product(x: float32[512, 4096], w: float32[4096, 1024]) -> (y: float32[512, 1024]):
  for i in 0..512:
    for j in 0..1024:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for k in 0..4096:
        acc[] = acc[] + x[i, k] * w[k, j]
      y[i, j] = acc[]
"""

REFUSALS = {
    "vectorize j": "the loop 'j' would have 1024 lanes (at most 512)",
    "split j 65536 tail=guard -> a, b\\nvectorize b": "the loop 'b' would have 65536 lanes (at most 512)",
    "unroll i\\nunroll k": "the code would have 2098176 stores (at most 20003)",
    "unroll j\\nunroll i": "the code would have 1572864 stores (at most 20003)",
    "rfactor k 4096 -> partial\\nunroll i": "8390656 bytes would lie on the stack (at most 1048580)",
    "\\n".join(f"split i{'_o' * n} 1" for n in range(70)): "68 loops would stand within each other (at most 67)",
}
"""Schedules, and why each is refused."""


@pytest.mark.parametrize("text", REFUSALS)
def test_what_is_too_much_is_refused_with_its_place(text: str) -> None:
    kernel = parse_kernel(PRODUCT)
    text = text.replace("\\n", "\n")
    with pytest.raises(ScheduleError) as caught:
        apply(kernel, parse_schedule(text, "given"))
    assert caught.value.message == REFUSALS[text.replace("\n", "\\n")]
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    assert diagnostic.span.line == len(text.split("\n")) or "split i" in text


def test_what_many_versions_come_to_is_bounded() -> None:
    """Each doubles what the one before has left."""
    kernel = parse_kernel(
        "kernel copies(n: int64 in [1, inf], x: float32[n, n]) -> (y: float32[n, n]):\n"
        "  for i in 0..n:\n    for j in 0..n:\n      y[i, j] = x[i, j]\n"
    )
    lines = [f"version {'j' if k % 2 else 'i'} n >= {k} -> v{k}" for k in range(STEPS)]
    begin = time.perf_counter()
    with pytest.raises(ScheduleError):
        apply(kernel, parse_schedule("\n".join([*lines[:120], "unroll nowhere"])))
    assert time.perf_counter() - begin < 30


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unroll i\n" * (STEPS + 1), f"a schedule has more than {STEPS} steps"),
        ("unroll " + "i" * LINE, f"a line has more than {LINE} characters"),
        ("version i " + "(" * 4000 + " -> a", "is not a condition"),
        ("version i " + " " * 4000, "version is not complete"),
        (f"split i {'9' * 4000}", "is too large"),
    ],
)
def test_texts_without_end(text: str, message: str) -> None:
    begin = time.perf_counter()
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(text)
    assert message in caught.value.message
    assert time.perf_counter() - begin < 5


def test_the_limits_are_beside_what_a_kernel_has() -> None:
    kernel = parse_kernel(PRODUCT)
    assert Limits.of(kernel) == Limits(COPIES + 3, STACK + 4, DEPTH + 3, {})
    tile = apply(kernel, parse_schedule(f"split j {LANES}\nsplit i 8\nreorder i_o, j_o, k, i_i, j_i\n"
                                        "unroll i_i\nvectorize j_i\n"))  # fmt: skip
    assert count(tile.body) == 3 * 8 * LANES // 16


def test_buffers_on_the_heap_are_not_counted() -> None:
    """Several live together in one allocation."""
    first, second = (Buffer(name, DTYPES["float32"], (Const(1 << 20),), "heap") for name in ("p", "q"))
    local = Buffer("acc", DTYPES["float32"], (Const(3),), "stack")
    whole = parse_kernel(PRODUCT)
    kernel = replace(whole, body=Alloc((first, second), Alloc((local,), whole.body)))
    assert Limits.of(kernel).stack == STACK + 12 + 4
