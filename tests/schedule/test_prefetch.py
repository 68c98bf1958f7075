"""prefetch: lines of what comes next, asked for one by one, and nothing else changed."""

from __future__ import annotations

import pytest

from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.loop.nodes import Kernel, Prefetch
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.walk import walk
from opgen.passes.legalize import legalize
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import assert_same

PRODUCT = """
kernel product(x: float32[5, 6, 64], f: float32[64, 8], t: float32[9, 7], n: int64 in [1, 9]) -> (
               y: float32[5, 6, 8], z: float32[9]):
  for p in 0..5:
    for q in 0..6:
      for k in 0..8:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for c in 0..64:
          acc[] = fma(x[p, q, c], f[c, k], acc[])
        y[p, q, k] = acc[]
  for i in 0..9:
    z[i] = t[i, 0]
"""
TILED = "reorder p, k, q\nsplit k 4 tail=exact -> k_o, k_i\nreorder p, k_o, q, c, k_i\n"


def product() -> Kernel:
    return parse_kernel(PRODUCT)


def hints(text: str) -> list[str]:
    after = apply(product(), parse_schedule(text))
    return [line.strip() for line in print_kernel(after).split("\n") if "prefetch" in line]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("prefetch x at=p in=c", "prefetch x[min(p + 1, 4), 0, min((q * 8 + k) * 64, 0) + c * 16]"),
        (TILED + "prefetch x at=p in=c", "prefetch x[min(p + 1, 4), 0, c * 16]"),
        ("prefetch x at=p in=k", "prefetch x[min(p + 1, 4), 0, (q * 8 + k) * 16]"),
        ("split c 8 tail=exact\nprefetch x at=p in=c_i", ""),
    ],
)
def test_lines_in_the_order_of_memory(text: str, hint: str) -> None:
    (found,) = hints(text)
    assert hint in ("", found) or found.startswith("prefetch x[min(p + 1, 4), 0, ")


HALVES = "reorder q, p\nsplit q 3 tail=exact -> q_o, q_i\nreorder q_o, p, q_i, k\nprefetch x at=q_o in="


@pytest.mark.parametrize("loop", ["k", "c"])
def test_rows_that_lie_apart(loop: str) -> None:
    """The number of the line decides on row and place."""
    (hint,) = hints(HALVES + loop)
    number = "((p * 3 + q_i) * 8 + k)"
    number = number if loop == "k" else f"(min({number} * 64, 0) + c)"
    assert hint == f"prefetch x[{number} // 12, 3, {number} % 12 * 16]"


def test_rows_of_several_loops_at_equal_distances() -> None:
    """A part of each place of all rows: the number of the row is that of the place, whatever row it is in."""
    text = "split c 16 tail=exact -> c_o, c_i\ncarry c_o at=p\nprefetch x at=c_o in=c_i"
    assert hints(text) == ["prefetch x[0, min(((p * 6 + q) * 8 + k) * 16, 14) + c_i, min(c_o + 1, 3) * 16]"]
    assert_same(product(), apply(product(), parse_schedule(text)), {"n": 2}, 1, text)
    assert_same(product(), legalize(apply(product(), parse_schedule(text))), {"n": 2}, 1, text)


def test_a_tile_asks_for_whole_rows() -> None:
    columns = "split c 16 tail=exact -> c_o, c_i\nreorder p, k, q\ncarry c_o at=k\nprefetch x at=c_o in=q"
    assert hints(columns) == ["prefetch x[p, k * 6 + q, min(c_o + 1, 3) * 16]"]


def test_parts_of_a_range_go_on_where_others_stopped() -> None:
    text = "split q 2 tail=exact -> q_o, q_i\npartition q_o 1\nprefetch x at=p in=q_i"
    assert hints(text) == ["prefetch x[min(p + 1, 4), 0, (q_o * 2 + q_i) * 16]"] * 2
    assert_same(product(), apply(product(), parse_schedule(text)), {"n": 2}, 1, text)
    enough = "split q 2 tail=exact -> q_o, q_i\npartition q_o 1\nprefetch x at=p in=c"
    assert hints(enough) == ["prefetch x[min(p + 1, 4), 0, (min(((q_o * 2 + q_i) * 8 + k) * 64, 0) + c) * 16]"]


@pytest.mark.parametrize(
    "more", ["", "unroll k_i\n", "vectorize k_i\n", "parallel p\n", "parallel p\nfuse p, k_o -> pk\n"]
)
def test_results_are_the_same(more: str) -> None:
    text = TILED + "prefetch x at=p in=c\n" + more
    kernel = product()
    after = apply(kernel, parse_schedule(text))
    assert sum(isinstance(s, Prefetch) for s in walk(after.body)) == 1
    assert_same(kernel, after, {"n": 2}, 1, text)
    assert_same(kernel, legalize(after), {"n": 2}, 1, text)


def test_what_llvm_is_told() -> None:
    text = TILED + "prefetch x at=p in=c\nvectorize k_i\nparallel p"
    ir = emit(legalize(apply(product(), parse_schedule(text))), Target.generic())
    assert ir.count("call void @llvm.prefetch.p0(ptr %x.at") == 1


REFUSALS = {
    "prefetch w at=p in=c": "prefetch w: there is no such input",
    "prefetch x at=p in=nowhere": "prefetch: there is no loop 'nowhere'",
    "prefetch x at=i in=c": "prefetch x: it is not known what 'i' reads of it",
    "prefetch t at=i in=p": "prefetch t: 'i' does not hold the loop 'p'",
    "split q 2 tail=exact -> q_o, q_i\nreorder q_o, p, q_i, k\nsplit c 8 tail=exact -> c_o, c_i\n"
    "carry c_o at=p\nprefetch x at=c_o in=c_i": (
        "prefetch x: what 'c_o' reads of it does not lie together, nor in rows at equal distances"
    ),
    "pack f 1, 0 -> turned\nsplit turned_0 4 tail=exact -> to, ti\nsplit turned_1 4 tail=exact -> so, si\n"
    "reorder to, so, ti, si\ntranspose ti, si\nprefetch f at=to in=so": (
        "prefetch f: it is not known what 'to' reads of it"
    ),
    "parallel q\nprefetch x at=p in=c": "prefetch x: a loop on the way there is already bound to something",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text: str) -> None:
    with pytest.raises(ScheduleError) as raised:
        apply(product(), parse_schedule(text))
    assert REFUSALS[text] in str(raised.value)


READS = """
kernel reads(n: int64 in [0, 9], x: float32[6, 6, 64], one: float32[], rows: int32[4]) -> (y: float32[5, 6]):
  for p in 0..5:
    for q in 0..6:
      alloc acc: float32[] register
      acc[] = one[]
      {read}
      y[p, q] = acc[]
"""


@pytest.mark.parametrize(
    ("read", "buffer", "message"),
    [
        ("for c in 0..0: acc[] = x[q, p, c]", "x", "'p' reads no row of it"),
        ("acc[] = 0.0f32", "one", "'p' reads no row of it"),
        ("if p < 4: acc[] = x[int64(rows[p]), 0, q]", "x", "is not known before anything else in it runs"),
        (
            "let h: int64 = n // 9\n      for c in h..h + 4: acc[] = x[p, q, c]",
            "x",
            "is not known before anything else in it runs",
        ),
        ("if n > 0: acc[] = x[p // n, 0, q]", "x", "is not known before anything else in it runs"),
    ],
)
def test_where_nothing_can_be_asked_for(read: str, buffer: str, message: str) -> None:
    """No rows, no dimension to walk along, or a place that must not be worked out where a condition does not hold."""
    outer, _, inner = read.rpartition(": ")
    kernel = parse_kernel(READS.replace("{read}", f"{outer}:\n        {inner}" if outer else read))
    with pytest.raises(ScheduleError) as raised:
        apply(kernel, parse_schedule(f"prefetch {buffer} at=p in=q"))
    assert message in str(raised.value)


@pytest.mark.parametrize("text", ["prefetch x at=p", "prefetch x in=c", "prefetch at=p in=c"])
def test_what_is_left_out_is_asked_for(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(text)
