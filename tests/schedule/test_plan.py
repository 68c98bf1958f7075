"""The choice of contractions' nests: estimated traffic, and what follows from it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from opgen.grad import gradient
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.verify import verify
from opgen.machine import typical
from opgen.machine.model import Cache, Machine
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.auto.accesses import accesses
from opgen.schedule.auto.nests import nests
from opgen.schedule.cost.traffic import Access, Loop, Region, Traffic, region
from opgen.schedule.default import scheduled
from tests.harness import Call, random_arrays
from tests.support.convolutions import DENSE, MODULE

L1 = Cache(32 * 1024, 8, 64, 220e9)


def test_regions_are_rows() -> None:
    filter_rows = Access("w", 4, {"k": 4, "c": 2048, "s": 2048 * 64})
    lanes, channels = Loop("k", 32), Loop("c", 64)
    assert region(filter_rows, [lanes]) == Region(128)
    assert region(filter_rows, [lanes, channels]) == Region(128, 64, 2048)
    assert region(filter_rows, [lanes, channels, Loop("s", 3)]) == Region(128, 192, 2048)
    assert region(filter_rows, [Loop("k", 512), channels]) == Region(2048 * 64)


def test_windows_overlap() -> None:
    window = Access("x", 4, {"c": 4, "x": 256, "s": 256, "y": 256 * 56, "r": 256 * 56})
    assert region(window, [Loop("c", 64), Loop("s", 3), Loop("x", 7)]) == Region(256 * 9)
    assert region(window, [Loop("c", 32), Loop("s", 3), Loop("x", 7)]).rows == 9


def test_rows_a_power_of_two_apart_do_not_fit() -> None:
    assert Region(64, 16, 2048).fits(L1)
    assert not Region(64, 17, 2048).fits(L1)
    assert Region(64, 256, 2048 + 64).fits(L1)


def test_what_fits_is_fetched_once() -> None:
    operand, other = Access("a", 4, {"i": 4}), Access("b", 4, {"j": 4})
    short, long = Loop("i", 1024), Loop("i", 1 << 20)
    again = Loop("j", 16)
    assert Traffic((operand, other)).into([L1], [again, short]) == [4096 + 64]
    (fetched,) = Traffic((operand, other)).into([L1], [again, long])
    assert fetched >= 16 * (4 << 20)


def layer(direction: str | None, size: int, channels: int, outputs: int, taps: int, stride: int = 1) -> Kernel:
    shapes = {"input": (1, size, size, channels), "filter": (taps, taps, channels, outputs)}
    return the_kernel(direction, shapes, {"strides": [1, stride, stride, 1], "padding": "SAME"})[0]


def the_kernel(
    direction: str | None, shapes: dict[str, tuple[int, ...]], attrs: dict[str, object], dtype: str = "float32"
) -> tuple[Kernel, dict[str, tuple[int, ...]]]:
    call = Call(MODULE, DENSE, shapes, attrs, dtype=dtype)
    if direction is not None:
        shapes = {**shapes, "grad_output": tuple(call.environment.output_shapes["output"])}
        call = Call(MODULE, gradient(MODULE, DENSE, direction), shapes, attrs, dtype=dtype)
    lowered, parameters = call.kernel()
    return simplify(bind(lowered, parameters)), shapes


def text_of(kernel: Kernel) -> str:
    return str(scheduled(kernel, "cpu", typical())[0])


def test_partial_sums_wait_where_inputs_do_not_fit() -> None:
    shapes = {"input": (8, 56, 56, 64), "filter": (1, 1, 64, 96)}
    text = text_of(the_kernel("filter", shapes, {"strides": [1, 1, 1, 1], "padding": "SAME"})[0])
    assert "carry n at=k_o\n" in text
    assert "split c 8 " in text


def test_few_channels_are_joined_by_the_taps_beside_them() -> None:
    text = text_of(layer("filter", 224, 3, 64, 7, 2))
    assert "unroll s\nunroll c\n" in text


def test_plans_print_their_cost() -> None:
    kernel = layer(None, 14, 64, 64, 1)
    found = accesses(nests(kernel)[0])
    assert found is not None
    assert {a.buffer for a in found} == {"input", "filter", "output"}


# Every class against the unscheduled program, on a machine so small that small shapes need blocks ----


def tiny() -> Machine:
    """Small caches, and all of it so slow that beginning something together costs nothing beside it."""
    second = Cache(4096, 4, 64, 1e6)
    machine = replace(typical(16), l1=Cache(1024, 2, 64, 4e6), l2=second, l3=replace(second, size=1 << 16))
    return replace(machine, fma_per_second=3.7e6, memory_bytes_per_second=26e6)


def random_shapes(rng: random.Random) -> tuple[dict[str, tuple[int, ...]], dict[str, object]]:
    channels, outputs = rng.choice([(3, 8), (16, 12), (32, 16), (16, 20), (20, 16)])
    taps = (rng.randint(1, 3), rng.randint(1, 3))
    shapes = {
        "input": (rng.choice([1, 2]), rng.choice([4, 7, 8]), rng.choice([4, 7, 14]), channels),
        "filter": (*taps, channels, outputs),
    }
    stride = rng.choice([1, 1, 2])
    attrs = {"strides": [1, stride, stride, 1], "padding": rng.choice(["SAME", "SAME", "VALID"])}
    return shapes, attrs


def same_as_unscheduled(direction: str | None, seed: int) -> str:
    """The schedule's text, once its results have been compared for one and two threads."""
    rng = random.Random(seed)
    shapes, attrs = random_shapes(rng)
    kernel, shapes = the_kernel(direction, shapes, attrs, rng.choice(["float32", "float32", "float64", "bfloat16"]))
    schedule, after = scheduled(kernel, "cpu", tiny())
    legal = legalize(after)
    verify(legal, bounds=True)
    dtype = kernel.inputs[0].dtype.name
    arrays = random_arrays(shapes, dtype, seed)
    inputs = {b.name: arrays[b.name] for b in kernel.inputs}
    for name, expected in interpret(kernel, inputs, {}).items():
        for threads in (1, 2):
            found = run_kernel(legal, inputs, {}, threads, guarded=True)[name]
            story = f"seed {seed}, {shapes} {attrs}, {threads} threads\n{schedule}"
            assert found.tobytes() == expected.tobytes(), story
    return str(schedule)


@pytest.mark.parametrize("direction", [None, "filter", "input"])
@pytest.mark.parametrize("seed", range(10))
def test_small_caches(direction: str | None, seed: int) -> None:
    """Of these 30, more than ten are carried."""
    text = same_as_unscheduled(direction, seed)
    if (direction, seed) in {(None, 3), (None, 7), ("filter", 4), ("input", 8)}:
        assert "carry" in text


SHORT_ROWS = [
    ((2, 6, 6, 16), (3, 3, 16, 64), 2),
    ((1, 12, 6, 64), (3, 3, 64, 96), 2),
    ((4, 3, 3, 64), (1, 1, 64, 64), 1),  # three rows would be nine positions
    ((2, 9, 8, 64), (2, 2, 64, 64), 1),  # rows of seven
]


@pytest.mark.parametrize(("input", "filter", "rows"), SHORT_ROWS)
def test_short_rows_share_a_tile(input: tuple[int, ...], filter: tuple[int, ...], rows: int) -> None:
    """So that vectors of what the lanes read are used for up to eight positions, if no border is in the way."""
    kernel, shapes = the_kernel(None, {"input": input, "filter": filter}, {"strides": [1, 1, 1, 1], "padding": "VALID"})
    schedule, after = scheduled(kernel, "cpu", typical())
    assert (f"split y {rows} tail=exact" in str(schedule) and "unroll y_i\nunroll x" in str(schedule)) == (rows > 1)
    arrays = random_arrays(shapes, "float32", rows)
    inputs = {b.name: arrays[b.name] for b in kernel.inputs}
    (expected,) = interpret(kernel, inputs).values()
    for threads in (1, 2):
        (found,) = run_kernel(legalize(after), inputs, {}, threads, guarded=True).values()
        assert found.tobytes() == expected.tobytes(), str(schedule)


@pytest.mark.parametrize("seed", range(5))
def test_taps_join_few_channels(seed: int) -> None:
    """Taps are unrolled beside the channels, whether some fall outside or not."""
    rng = random.Random(seed)
    shapes = {"input": (rng.choice([1, 2]), 9, 14, 3), "filter": (rng.randint(1, 3), rng.choice([3, 5, 7]), 3, 4)}
    attrs = {"strides": [1, 2, 2, 1] if seed % 2 else [1, 1, 1, 1], "padding": "SAME" if seed else "VALID"}
    kernel, shapes = the_kernel("filter", shapes, attrs)
    schedule, after = scheduled(kernel, "cpu", typical(16))
    assert "unroll s\nunroll c\n" in str(schedule)
    legal = legalize(after)
    verify(legal, bounds=True)
    arrays = random_arrays(shapes, "float32", seed)
    inputs = {b.name: arrays[b.name] for b in kernel.inputs}
    (expected,), (found,) = interpret(kernel, inputs).values(), run_kernel(legal, inputs, {}, 2, guarded=True).values()
    assert found.tobytes() == expected.tobytes(), f"seed {seed}, {shapes} {attrs}\n{schedule}"
