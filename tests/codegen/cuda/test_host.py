"""The host's part of a program: sizes, limits, workspaces."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from opgen.codegen.cuda import DeviceLimitError, Launch, emit
from opgen.diagnostics import InternalError
from opgen.diagnostics.calls import ArgumentValueError
from opgen.dtypes import BOOL, FLOAT32, INT32, INT64, DType
from opgen.loop.nodes import Type
from opgen.loop.parse import parse_expr, parse_kernel
from opgen.runtime.devices.host import Scalar, Sizes, evaluate, execute
from tests.codegen.cuda.kernels import STEPS

VALUES: dict[str, Scalar] = {"a": -7, "b": 3, "i": -(2**31), "f": 0.5, "t": True, "n": 2**63 - 1}
TYPES = {"a": INT64, "b": INT64, "i": INT32, "f": FLOAT32, "t": BOOL, "n": INT64}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a // b", -3),
        ("a % b", 2),
        ("(a + b) * 2 - 1", -9),
        ("min(a, b) + max(a, b)", -4),
        ("n + 1", -(2**63)),
        ("i - 1i32", 2**31 - 1),
        ("-i", -(2**31)),
        ("int32(n)", -1),
        ("int64(i)", -(2**31)),
        ("select(t and a < b, 1, 2)", 1),
        ("f > 0.25f32", True),
        ("not t", False),
        ("t xor true", False),
        ("bool(b)", True),
        ("a and 12", 8),
    ],
)
def test_expressions_mean_what_the_loop_ir_says(text: str, expected: Scalar) -> None:
    expr = parse_expr(text, {name: Type(dtype) for name, dtype in TYPES.items()})
    assert evaluate(expr, VALUES) == expected


def test_float_arithmetic_is_not_the_hosts() -> None:
    with pytest.raises(InternalError, match=r"^the host cannot evaluate a Binary of float32$"):
        evaluate(parse_expr("f + f", {"f": Type(FLOAT32)}), VALUES)


class Recorder:
    """A backend that notes what it is told to do, and fails at a launch if that is wanted."""

    def __init__(self, fail_at: int = -1) -> None:
        self.log: list[str] = []
        self.live: list[str] = []
        self.fail_at = fail_at

    def allocate(self, buffer: str, dtype: DType, elements: int) -> None:
        self.log.append(f"{buffer}: {elements} {dtype}")
        self.live.append(buffer)

    def release(self, buffer: str) -> None:
        self.live.remove(buffer)

    def launch(self, launch: Launch, grid: Sizes, block: Sizes, scalars: Mapping[str, Scalar]) -> None:
        if sum("<<<" in line for line in self.log) == self.fail_at:
            raise RuntimeError("launch failed")
        self.log.append(f"{launch.function}<<<{grid}, {block}>>>")


def test_steps_run_in_order() -> None:
    recorder = Recorder()
    execute(emit(STEPS), {"n": 6, "rounds": 2, "scale": 1.0, "fancy": False}, recorder)
    one = (1, 1, 1)
    assert recorder.log == [
        "work: 12 float32",
        f"steps_0<<<(6, 1, 1), {one}>>>",
        f"steps_1<<<(6, 1, 1), {one}>>>",
        f"steps_2<<<(3, 1, 1), {one}>>>",
        f"steps_1<<<(6, 1, 1), {one}>>>",
        f"steps_2<<<(3, 1, 1), {one}>>>",
        f"steps_3<<<{one}, {one}>>>",
        f"steps_5<<<(6, 1, 1), {one}>>>",
    ]
    assert recorder.live == []


@pytest.mark.parametrize("fail_at", range(7))
def test_workspaces_are_released_on_every_path(fail_at: int) -> None:
    recorder = Recorder(fail_at)
    with pytest.raises(RuntimeError, match="launch failed"):
        execute(emit(STEPS), {"n": 6, "rounds": 2, "scale": 1.0, "fancy": True}, recorder)
    assert recorder.live == []


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        ("block.x", 2**31, "k_0: a grid of (2147483648, 1, 1), at most (2147483647, 65535, 65535) are possible"),
        ("block.y", 65536, "k_0: a grid of (1, 65536, 1), at most (2147483647, 65535, 65535) are possible"),
        ("block.z", 65536, "k_0: a grid of (1, 1, 65536), at most (2147483647, 65535, 65535) are possible"),
        ("thread.x", 1025, "k_0: a block of (1025, 1, 1), at most (1024, 1024, 64) are possible"),
        ("thread.z", 65, "k_0: a block of (1, 1, 65), at most (1024, 1024, 64) are possible"),
    ],
)
def test_launches_too_large_are_refused(kind: str, size: int, message: str) -> None:
    text = f"kernel k(n: int64) -> (y: int32[n]):\n    {kind} for i in 0..n:\n        y[i] = 1i32\n"
    recorder = Recorder()
    with pytest.raises(DeviceLimitError) as caught:
        execute(emit(parse_kernel(text)), {"n": size}, recorder)
    assert str(caught.value) == message
    execute(emit(parse_kernel(text)), {"n": size - 1}, recorder)
    assert len(recorder.log) == 1


def test_too_many_threads_in_all_are_refused() -> None:
    text = """
kernel k(n: int64) -> (y: int32[n, n]):
    thread.y for j in 0..n:
        thread.x for i in 0..n:
            y[j, i] = 1i32
"""
    execute(emit(parse_kernel(text)), {"n": 32}, Recorder())
    with pytest.raises(DeviceLimitError, match=r"^k_0: 1089 threads in a block, at most 1024 are possible$"):
        execute(emit(parse_kernel(text)), {"n": 33}, Recorder())


def test_a_promise_about_a_parameter_is_checked() -> None:
    text = "kernel k(n: int32 in [2, 5]) -> (y: int32[1]):\n    y[0] = n\n"
    for value in (1, 6):
        with pytest.raises(ArgumentValueError) as caught:
            execute(emit(parse_kernel(text)), {"n": value}, Recorder())
        assert str(caught.value) == f"k: argument 'n': expected a value from 2 to 5, given {value}"
