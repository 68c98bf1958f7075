"""stream: results past the caches, the same bits, whatever the address and however many threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.compiler.toolchain import host
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import problems
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.kernel import compile_kernel
from opgen.runtime.memory.address import address
from opgen.runtime.threads import get_num_threads, set_num_threads
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.differential import assert_same

SCALED = """
kernel scaled(x: float32[6, 5, 32]) -> (y: float32[6, 5, 32], z: float32[6]):
  for p in 0..6:
    for q in 0..5:
      for c in 0..32:
        y[p, q, c] = x[p, q, c] * 3.0f32
  for p in 0..6:
    z[p] = x[p, 0, 0]
"""
LANES = "split c 16 tail=exact -> c_o, c_l\nunroll c_o\nvectorize c_l\nparallel p\n"


def scaled() -> Kernel:
    return parse_kernel(SCALED)


def streamed(text: str = LANES) -> Kernel:
    return apply(scaled(), parse_schedule(f"{text}stream y\n"))


def ir(kernel: Kernel, target: Target | None = None) -> str:
    return emit(legalize(kernel), host() if target is None else target)


def test_the_output_says_so() -> None:
    text = print_kernel(streamed())
    assert "y: float32[6, 5, 32] streamed" in text
    assert parse_kernel(text) == streamed()


@pytest.mark.parametrize(
    "text", ["", LANES, LANES.replace("16", "8"), LANES.replace("16", "4"), "split c 3 tail=overlap\nvectorize c_i\n"]
)
def test_nothing_else_changes(text: str) -> None:
    assert_same(scaled(), streamed(text), {}, 0)


@pytest.mark.skipif(not host().is_x86, reason="x86 stores past its caches")
@pytest.mark.parametrize("off", [0, 4, 16, 32, 64])
@pytest.mark.parametrize("threads", [1, 2])
def test_results_at_any_address(off: int, threads: int) -> None:
    kernel = compile_kernel(legalize(streamed()), host())
    x = np.random.default_rng(0).standard_normal((6, 5, 32), np.float32)
    room, z = np.full(6 * 5 * 32 * 4 + 192, 7, np.uint8), np.empty(6, np.float32)
    begin = -address(room) % 64 + off
    y = room[begin : begin + x.nbytes].view(np.float32).reshape(x.shape)
    usual = get_num_threads()
    set_num_threads(threads)
    try:
        kernel.bind([])([address(x), address(y), address(z)])
    finally:
        set_num_threads(usual)
    assert np.array_equal(y, x * 3)
    assert (room[:begin] == 7).all()
    assert (room[begin + x.nbytes :] == 7).all()


@pytest.mark.skipif(not host().is_x86, reason="x86 stores past its caches")
def test_one_branch_for_stores_side_by_side_and_a_fence() -> None:
    text = ir(streamed(LANES.replace("16", "4").replace("parallel p\n", "")))
    assert text.count("!nontemporal !0") == 8
    assert text.count("br i1 %aligned") == 1
    assert text.count("call void @llvm.x86.sse.sfence()") == 1


def test_only_whole_vectors_at_multiples_of_their_size() -> None:
    for steps in ("", "split c 12 tail=overlap\nvectorize c_i\n", "split c 8 tail=exact\nunroll c_i\n"):
        assert "nontemporal" not in ir(streamed(steps))


def test_other_machines_store_as_ever() -> None:
    assert "nontemporal" not in ir(streamed(), Target.from_name("aarch64"))


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("stream x", "stream x: there is no such output"),
        ("stream w", "stream w: there is no such output"),
    ],
)
def test_refusals(step: str, reason: str) -> None:
    with pytest.raises(ScheduleError, match=reason):
        apply(scaled(), parse_schedule(step))


def test_an_output_that_is_read_is_not_streamed() -> None:
    text = SCALED.replace("z[p] = x[p, 0, 0]", "z[p] = y[p, 0, 0]")
    with pytest.raises(ScheduleError, match="stream y: the kernel reads it too"):
        apply(parse_kernel(text), parse_schedule("stream y"))
    kernel = parse_kernel(text)
    wrong = replace(kernel, outputs=(replace(kernel.outputs[0], space="streamed"), *kernel.outputs[1:]))
    assert [p.message for p in problems(wrong)] == ["the output 'y' is streamed, and read"]


SUMS = """
kernel sums(x: float32[6, 8]) -> (y: float32[6]):
  for i in 0..6:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for j in 0..8:
      acc[] = acc[] + x[i, j]
    y[i] = max(acc[], 0.0f32)
"""


@pytest.mark.parametrize("step", ["carry", "divide"])
def test_sums_do_not_wait_in_what_is_streamed(step: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        apply(parse_kernel(SUMS), parse_schedule(f"stream y\n{step} j at=i"))
    assert refusal.value.message == f"{step} j: 'y' goes past the caches"
    if step == "divide":
        before = parse_kernel(SUMS.replace("max(acc[], 0.0f32)", "acc[]"))
        assert_same(before, apply(before, parse_schedule("divide j at=i\nstream y")), {}, 0)
