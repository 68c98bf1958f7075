"""Kernels for part of a call: windows bound, sizes open; bit for bit as unscheduled, at any size."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import pytest

from opgen.grad import gradient
from opgen.loop.bind import bind
from opgen.loop.nodes import If, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import walk
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.passes.unmask import unmask
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import Schedule, apply, parse_schedule
from opgen.schedule.steps import Rfactor
from opgen.spec import load
from opgen.spec.model.model import OpSpec
from tests.harness import Call, random_arrays

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")
WINDOWS = {(1, 1): 1, (3, 1): 2, (3, 2): 2, (5, 1): 2, (7, 2): 1}
BOUND = (
    "filter_height",
    "filter_width",
    "strides_H",
    "strides_W",
    "dilations_H",
    "dilations_W",
    "groups",
    "multiplier",
)


def a_call(rng: random.Random, lanes: bool, direction: str | None, taps: int, stride: int) -> Call:
    """A call with a window of that kind and any sizes: small, of one tile, ragged, of many tiles."""
    op = MODULE.op("DepthwiseConv2dNative" if lanes else "Conv2D")
    width = rng.choice([1, 5, 7, 8, 9, 13, 14, 15, 16, 28, 40]) * rng.choice([1, stride])
    shapes = {"input": (rng.choice([1, 2]), rng.choice([4, 7, 8, 14, 16]), width, rng.choice([3, 8, 16, 20, 35, 64]))}
    shapes["filter"] = (taps, taps, shapes["input"][3], 1 if lanes else rng.choice([3, 16, 19, 32, 40]))
    return with_window(rng, op, shapes, direction, stride)


def of_a_picture(rng: random.Random, direction: str | None, taps: int, stride: int) -> Call:
    """A call with three channels, of rows that are short, of one tile, of several."""
    shapes = {"input": (rng.choice([1, 2]), rng.choice([7, 8]), rng.choice([7, 30, 68, 77, 101, 150, 224]), 3)}
    shapes["filter"] = (taps, taps, 3, rng.choice([3, 16, 21, 32]))
    return with_window(rng, MODULE.op("Conv2D"), shapes, direction, stride)


def with_window(
    rng: random.Random, op: OpSpec, shapes: dict[str, tuple[int, ...]], direction: str | None, stride: int
) -> Call:
    """A call with some padding."""
    width, taps = shapes["input"][2], shapes["filter"][0]
    before, after = rng.randint(0, 2), rng.randint(0, 2)
    enough = min(width, shapes["input"][1]) >= taps
    padding = rng.choice(["SAME", "SAME", *(["VALID", "EXPLICIT"] if enough else [])])
    attrs: dict[str, object] = {"strides": [1, stride, stride, 1], "padding": padding}
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = [0, 0, before, after, after, before, 0, 0]
    call = Call(MODULE, op, shapes, attrs, dtype="float32")
    if direction is None:
        return call
    cotangent = tuple(call.environment.output_shapes["output"])
    return Call(MODULE, gradient(MODULE, op, direction), {**shapes, "grad_output": cotangent}, attrs, dtype="float32")


@pytest.mark.parametrize("direction", [None, "input", "filter"])
@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize(("taps", "stride"), list(WINDOWS))
def test_any_size_is_as_unscheduled(taps: int, stride: int, lanes: bool, direction: str | None) -> None:
    rng = random.Random(f"{100 * taps + 10 * stride + lanes} {direction}")
    compare_calls(rng, lambda: a_call(rng, lanes, direction, taps, stride), BOUND)


@pytest.mark.parametrize("direction", [None, "input", "filter"])
@pytest.mark.parametrize(("taps", "stride"), [(3, 1), (3, 2), (7, 2)])
def test_any_picture_is_as_unscheduled(taps: int, stride: int, direction: str | None) -> None:
    rng = random.Random(f"{100 * taps + 10 * stride} {direction}")
    compare_calls(rng, lambda: of_a_picture(rng, direction, taps, stride), (*BOUND, "group_channels"))


def compare_calls(rng: random.Random, a_call: Callable[[], Call], bound: Collection[str]) -> None:
    """One kernel for all calls of a kind, against the same without a schedule."""
    lowered, parameters = a_call().kernel()
    kernel = simplify(bind(lowered, {n: v for n, v in parameters.items() if n in bound}))
    machine = typical(rng.choice([32, 64, 64]))
    schedule, after = scheduled(kernel, "cpu", machine)
    plain, legal = legalize(kernel), legalize(after)
    verify(legal, bounds=True)
    assert parse_schedule(str(schedule)) == schedule
    for turn in range(8):
        call = a_call()
        parameters = call.kernel()[1]
        arrays = with_infinities(random_arrays(call.shapes, "float32", turn), rng)
        inputs = {b.name: arrays[b.name] for b in lowered.inputs}
        left = {p.name: parameters[p.name] for p in legal.parameters}
        found = run_kernel(legal, inputs, left, rng.choice([1, 2]), guarded=True)
        expected = run_kernel(plain, inputs, left)
        apart = {name: np.zeros(()) for name in expected}
        if any(isinstance(s, Rfactor) for s in schedule.steps):
            terms = max(a.size for a in inputs.values())
            sizes = run_kernel(plain, {n: np.abs(a) for n, a in inputs.items()}, left)
            apart = {n: 2 * terms * 2.0**-24 * np.nan_to_num(a.astype(np.float64), posinf=0) for n, a in sizes.items()}
        for name, array in expected.items():
            text = f"turn {turn}, {call.op.name} {dict(call.shapes)} {dict(call.attrs)}\n{schedule}"
            assert within(found[name], array, apart[name]).all(), text


def within(found: np.ndarray, array: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Where two results are equal, or finite and not further apart than sums in another order can be."""
    same = (found == array) | (np.isnan(found) & np.isnan(array))
    with np.errstate(invalid="ignore"):
        close = np.abs(found.astype(np.float64) - array.astype(np.float64)) <= apart
    return same | (close & np.isfinite(found) & np.isfinite(array))


def with_infinities(arrays: dict[str, np.ndarray], rng: random.Random) -> dict[str, np.ndarray]:
    """Sometimes one element of an array is infinite: a tap outside must be left out, not multiplied by 0."""
    for array in arrays.values():
        if array.size and rng.random() < 0.3:
            array.reshape(-1)[rng.randrange(array.size)] = np.inf
    return arrays


def test_the_usual_sizes_have_versions() -> None:
    rng = random.Random(0)
    for lanes in (False, True):
        for direction in (None, "input", "filter"):
            lowered, parameters = a_call(rng, lanes, direction, 3, 1).kernel()
            schedule, _ = scheduled(simplify(bind(lowered, {n: v for n, v in parameters.items() if n in BOUND})))
            assert "version" in str(schedule), f"{lanes} {direction}"


# The primitive --------------------------------------------------------------------------------------

SUM = """
kernel sums(x: float32[n, m], n: int64 in [0, inf], m: int64 in [0, inf]) -> (y: float32[n]):
    for i in 0 .. n:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for j in 0 .. m:
            acc[] = acc[] + x[i, j]
        y[i] = acc[]
"""


def version_of(condition: str) -> Kernel:
    return apply(parse_kernel(SUM), parse_schedule(f"version i {condition} -> few\n"))


@pytest.mark.parametrize("sizes", [(3, 4), (3, 5), (0, 4), (9, 4)])
def test_a_version_is_the_same(sizes: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(sizes, np.float32)
    parameters = {"n": sizes[0], "m": sizes[1]}
    expected = run_kernel(legalize(parse_kernel(SUM)), {"x": x}, parameters)["y"]
    found = run_kernel(legalize(version_of("m == 4 and n < 9")), {"x": x}, parameters)["y"]
    np.testing.assert_array_equal(found, expected)


def test_a_version_knows_its_sizes_and_has_its_own_names() -> None:
    kernel = version_of("m == 4 and n < 9")
    branch = next(s for s in walk(kernel.body) if isinstance(s, If))
    text = str(parse_schedule("version i m == 4 and n < 9 -> few  # a comment\n"))
    assert text == "version i m == 4 and n < 9 -> few\n"
    assert "j_few" in repr(branch.then)
    assert "'m'" not in repr(branch.then)
    assert "j_few" not in repr(branch.otherwise)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("version i m == k -> few", "'k' is no parameter of the kernel"),
        ("version z m == 4 -> few", "there is no loop 'z'"),
        ("version i m == -> few", "is not a condition"),
        ("version i", "version is not complete"),
    ],
)
def test_a_wrong_version_is_refused(step: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        apply(parse_kernel(SUM), parse_schedule(step + "\n"))


def test_masks_stay_where_lanes_could_be_seen() -> None:
    """An unmasked load of what is stored under a mask, or another mask, keeps the buffer masked."""
    schedule = parse_schedule("split i 8 tail=guard -> i_o, i_l\nreorder i_o, j, i_l\nvectorize i_l\n")
    kernel = legalize(apply(parse_kernel(SUM), schedule))
    assert "acc[ramp(0, 1, 8)]" in str_of(kernel)
    other = parse_kernel(
        str_of(kernel).replace("acc[ramp(0, 1, 8)]", "acc[ramp(0, 1, 8) if ramp(0, 1, 8) < broadcast(n, 8)]", 1)
    )
    assert unmask(other) is other
    assert apply(kernel, Schedule()) is kernel


def str_of(kernel: Kernel) -> str:
    from opgen.loop.print import print_kernel

    return print_kernel(kernel)
