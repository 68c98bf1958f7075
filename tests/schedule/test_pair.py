"""Sums of bfloat16 products taken two by two: near the plain sum, and the same in machine code as interpreted."""

from __future__ import annotations

import dataclasses
import random
import re

import ml_dtypes
import numpy as np
import pytest

from opgen.codegen.llvm.target import Target
from opgen.grad import gradient
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Dot
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import walk_exprs
from opgen.machine import typical
from opgen.machine.model import Cache
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.kernel import compile_kernel
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from opgen.schedule.steps import Pair
from tests.harness import Call, random_arrays
from tests.support.convolutions import DENSE, DIRECTIONS, LANES, MODULE, assert_scheduled_is_the_same, the_call
from tests.support.pair_product import PRODUCT, product

USUAL = dataclasses.replace(typical(64), pairs=True)


def arrays(m: int, c: int, k: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    made = {"x": rng.standard_normal((m, c)), "w": rng.standard_normal((c, k))}
    return {name: a.astype(ml_dtypes.bfloat16) for name, a in made.items()}


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("seed", range(4))
def test_pairs(seed: int, lanes: int) -> None:
    """float32 sums of c terms in another order: at most 2 * c roundings of 2**-24 apart, of the terms' sizes."""
    rng = random.Random(seed)
    m, c, k = rng.randint(1, 3), 2 * rng.randint(1, 9), rng.choice([16, 32])
    kernel, given = product(m, c, k), arrays(m, c, k, seed)
    text = "pair c" if lanes == 1 else f"pair c\nsplit j {lanes} tail=exact\nvectorize j_i"
    paired = apply(kernel, parse_schedule(text))
    assert apply(parse_kernel(print_kernel(paired)), parse_schedule("")) == paired
    legal = legalize(paired)
    verify(legal, bounds=True)
    assert any(isinstance(e, Dot) for e in walk_exprs(legal.body))
    expected, plain = interpret(paired, given)["y"], interpret(kernel, given)["y"]
    found = run_kernel(legal, given, {}, 1, guarded=True)["y"]
    assert np.array_equal(found, expected), f"seed {seed}"
    size = np.abs(given["x"].astype(np.float64)) @ np.abs(given["w"].astype(np.float64))
    assert np.all(np.abs(found - plain) <= 2 * c * 2.0**-24 * size), f"seed {seed}"


def test_without_the_instruction() -> None:
    """Another CPU adds the same two products."""
    kernel, given = product(2, 8, 16), arrays(2, 8, 16, 5)
    legal = legalize(apply(kernel, parse_schedule("pair c\nsplit j 16 tail=exact\nvectorize j_i")))
    y = np.empty((2, 16), np.float32)
    compile_kernel(legal, Target.generic())([given["x"].ctypes.data, given["w"].ctypes.data, y.ctypes.data], [])
    assert np.array_equal(y, interpret(legal, given)["y"])


def test_the_scheduler_takes_pairs_where_the_machine_has_them() -> None:
    kernel, given = product(14, 64, 64), arrays(14, 64, 64, 6)
    without, _ = scheduled(kernel, "cpu", typical(64))
    schedule, after = scheduled(kernel, "cpu", dataclasses.replace(typical(64), pairs=True))
    assert "pair c -> x, w_pairs" in str(schedule)
    assert "pair" not in str(without)
    legal = legalize(after)
    verify(legal, bounds=True)
    assert np.array_equal(run_kernel(legal, given, {}, 2, guarded=True)["y"], interpret(after, given)["y"])


def test_a_name_that_begins_like_another_one() -> None:
    """The copy of each input is told by what it is of, not by its name."""
    text = PRODUCT.replace("w: bfloat16[{c}, {k}]", "w: bfloat16[{k}, {c}]").replace("w[c, j]", "w[j, c]")
    texts = [text, text.replace("w: ", "x_of_lanes: ").replace("w[", "x_of_lanes[")]
    plain, alike = (parse_kernel(t.replace("{m}", "14").replace("{c}", "64").replace("{k}", "128")) for t in texts)
    expected, found = (scheduled(kernel, "cpu", USUAL)[0] for kernel in (plain, alike))
    assert "permute w_pairs" in str(expected)
    assert str(found) == str(expected).replace("w_pairs", "x_of_lanes_pairs")


@pytest.mark.parametrize("direction", [None, "input"])
@pytest.mark.parametrize(
    ("batch", "taps", "stride"), [(1, 1, 1), (2, 1, 1), (1, 3, 1), (2, 3, 1), (2, 3, 2), (1, 2, 2)]
)
def test_large_copies_are_made_in_blocks(direction: str | None, batch: int, taps: int, stride: int) -> None:
    """Just before a block of results is computed; those that lie across turned as words."""
    inputs, outputs = (8, 64) if direction is None else (64, 8)
    shapes = {
        "input": (batch, 3, 5, inputs),
        "filter": (taps, taps, inputs, outputs),
        "grad_output": (batch, -(-3 // stride), -(-5 // stride), outputs),
    }
    op = DENSE if direction is None else gradient(MODULE, DENSE, direction)
    given = {name: shapes[name] for name in (i.name for i in op.inputs) if name in shapes}
    attrs = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    lowered, parameters = Call(MODULE, op, given, attrs, dtype="bfloat16").kernel()
    kernel = simplify(bind(lowered, parameters))
    second = dataclasses.replace(USUAL.l2, size=2 * inputs * outputs * taps * taps)  # holds half of the copy, not all
    schedule, after = scheduled(kernel, "cpu", dataclasses.replace(USUAL, l2=second, cores=2))
    blocks = "compute_at filter_pairs" in str(schedule)
    assert blocks or stride > 1
    if blocks:
        assert ("transpose filter_pairs" in str(schedule)) == (direction == "input")
    arrays = random_arrays(given, "bfloat16", batch)
    data = {buffer.name: arrays[buffer.name] for buffer in kernel.inputs}
    legal = legalize(after)
    verify(legal, bounds=True)
    (expected,) = interpret(after, data).values()
    for threads in (1, 2):
        (found,) = run_kernel(legal, data, {}, threads, guarded=True).values()
        assert np.array_equal(found, expected)


def test_sums_of_outer_products_wait_in_wide_results() -> None:
    """Of images whose scalars the second cache does not hold by far: each result is rounded once."""
    images, gradients = (4, 14, 14, 128), (4, 14, 14, 64)
    given = {"input": images, "filter": (1, 1, 128, 64), "grad_output": gradients}
    call = Call(
        MODULE, gradient(MODULE, DENSE, "filter"), given, {"strides": [1] * 4, "padding": "SAME"}, dtype="bfloat16"
    )
    kernel = simplify(bind(*call.kernel()))
    caches = {"l2": Cache(32 << 10, 8, 64, 118e9), "l3": Cache(32 << 20, 16, 64, 20e9)}
    small = dataclasses.replace(USUAL, l1=Cache(8 << 10, 8, 64, 220e9), cores=2, **caches)
    schedule, after = scheduled(kernel, "cpu", small)
    for step in ("widen grad_filter -> grad_filter_wide\n", "pair x -> ", "carry n at="):
        assert step in str(schedule)
    inner = re.findall(r"carry (\w+) at=", str(schedule))[-1]
    assert all(f"compute_at {name}_pairs at={inner} " in str(schedule) for name in ("input", "grad_output"))
    near, _ = scheduled(kernel, "cpu", dataclasses.replace(small, l2=Cache(512 << 10, 8, 64, 118e9)))
    assert "widen" not in str(near)
    data = random_arrays({"input": images, "grad_output": gradients}, "bfloat16", 1)
    found = [run_kernel(legalize(after), data, {}, n, guarded=True)["grad_filter"][0, 0] for n in (1, 2)]
    assert np.array_equal(found[0].view(np.uint8), found[1].view(np.uint8))
    x, g = (data[name].astype(np.float64).reshape(-1, data[name].shape[-1]) for name in ("input", "grad_output"))
    apart, terms = np.abs(found[0].astype(np.float64) - x.T @ g), len(x)
    assert np.all(apart <= 2.0**-8 * np.abs(x.T @ g) + 2 * terms * 2.0**-24 * (np.abs(x).T @ np.abs(g)))


@pytest.mark.parametrize(("taps", "stride"), [(2, 1), (3, 1), (3, 2)])
@pytest.mark.parametrize("images", [1, 3])
def test_sums_of_taps_wait_image_by_image(images: int, taps: int, stride: int) -> None:
    """Where the second cache is far from holding what they read."""
    image, outputs = (images, 4, 5, 24), (images, -(-4 // stride), -(-5 // stride), 32)
    given = {"input": image, "filter": (taps, taps, 24, 32), "grad_output": outputs}
    attrs = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    call = Call(MODULE, gradient(MODULE, DENSE, "filter"), given, attrs, dtype="bfloat16")
    caches = {"l1": Cache(512, 8, 64, 220e9), "l2": Cache(1 << 10, 8, 64, 118e9), "l3": Cache(8 << 20, 16, 64, 2e9)}
    text = assert_scheduled_is_the_same(call, images, dataclasses.replace(USUAL, cores=2, **caches))
    assert ("widen grad_filter -> grad_filter_wide\n" in text and "carry n at=" in text) == (images > 1)


def test_one_term_alone_has_no_pair() -> None:
    """Of two places of each row one lies in the padding."""
    given = {"input": (8, 256, 3, 256), "filter": (1, 1, 256, 256), "grad_output": (8, 257, 2, 256)}
    attrs = {"strides": [1, 1, 2, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 0, 1, 1, 0, 0, 0]}
    call = Call(MODULE, gradient(MODULE, DENSE, "filter"), given, attrs, dtype="bfloat16")
    machine = dataclasses.replace(USUAL, l2=Cache(1 << 20, 8, 64, 118e9))
    schedule, after = scheduled(simplify(bind(*call.kernel())), "cpu", machine)
    assert not any(isinstance(step, Pair) for step in schedule.steps)
    data = random_arrays({n: given[n] for n in ("input", "grad_output")}, "bfloat16", 1)
    found = run_kernel(legalize(after), data, {}, 1, guarded=True)["grad_filter"][0, 0].astype(np.float64)
    x, g = data["input"][:, :, 1].astype(np.float64), data["grad_output"][:, :256, 1].astype(np.float64)
    expected, size = (np.einsum("nyc,nyk->ck", a, b) for a, b in ((x, g), (np.abs(x), np.abs(g))))
    assert np.all(np.abs(found - expected) <= 2.0**-8 * np.abs(expected) + 2 * 8 * 256 * 2.0**-24 * size)


@pytest.mark.parametrize(("batch", "latency", "asked"), [(4, 4, True), (4, 8, False), (1, 4, False)])
def test_narrow_scalars_from_afar_are_asked_for_where_one_unit_multiplies(
    batch: int, latency: int, asked: bool
) -> None:
    given = {"input": (batch, 8, 7, 64), "filter": (1, 1, 64, 32)}
    call = Call(MODULE, DENSE, given, {"strides": [1] * 4, "padding": "SAME"}, dtype="bfloat16")
    machine = dataclasses.replace(USUAL, latency=latency, l2=Cache(16 << 10, 8, 64, 118e9))
    assert ("prefetch input at=" in assert_scheduled_is_the_same(call, batch, machine)) == asked


@pytest.mark.parametrize(("outputs", "past"), [(64, True), (16, False), (48, False)])
def test_narrow_results_go_past_the_caches_where_a_tile_has_whole_lines(outputs: int, past: bool) -> None:
    given = {"input": (2, 4, 7, 16), "filter": (1, 1, 16, outputs)}
    call = Call(MODULE, DENSE, given, {"strides": [1] * 4, "padding": "SAME"}, dtype="bfloat16")
    machine = dataclasses.replace(USUAL, l3=Cache(1 << 10, 16, 64, 20e9))
    assert ("stream output" in assert_scheduled_is_the_same(call, outputs, machine)) == past


def test_a_tile_of_all_results_has_no_loop_to_ask_in() -> None:
    shapes = {"input": (4, 8, 9, 10), "filter": (1, 1, 8, 16), "grad_output": (4, 16, 9, 10)}
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NCHW"}
    call = Call(MODULE, gradient(MODULE, DENSE, "filter"), shapes, attrs, dtype="bfloat16")
    small = dataclasses.replace(USUAL, l2=Cache(2 << 10, 8, 64, 118e9))
    assert "prefetch" not in assert_scheduled_is_the_same(call, 0, small)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_windows_are_not_paired(direction: str | None) -> None:
    """Where every read depends on the lanes, tiles share what they read, with or without the dot product of pairs."""
    shapes = {"input": (1, 8, 8, 32), "filter": (3, 3, 32, 1), "grad_output": (1, 8, 8, 32)}
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    op = LANES if direction is None else gradient(MODULE, LANES, direction)
    given = {name: shapes[name] for name in (i.name for i in op.inputs) if name in shapes}
    lowered, parameters = Call(MODULE, op, given, attrs, dtype="bfloat16").kernel()
    kernel = simplify(bind(lowered, parameters))
    without, _ = scheduled(kernel, "cpu", typical(64))
    schedule, _ = scheduled(kernel, "cpu", dataclasses.replace(typical(64), pairs=True))
    assert str(schedule) == str(without)
    assert "unroll" in str(schedule)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(8))
def test_every_direction(seed: int, direction: str | None) -> None:
    """Windows, strides, dilations, odd and even sizes: in machine code as interpreted, and near the plain sum."""
    call = dataclasses.replace(the_call(seed, False, direction), dtype="bfloat16")
    lowered, parameters = call.kernel()
    kernel = simplify(bind(lowered, parameters))
    schedule, after = scheduled(kernel, "cpu", USUAL)
    legal = legalize(after)
    verify(legal, bounds=True)
    arrays = random_arrays(call.shapes, "bfloat16", seed)
    given = {buffer.name: arrays[buffer.name] for buffer in kernel.inputs}
    (expected,), (plain,) = interpret(after, given).values(), interpret(kernel, given).values()
    (sizes,) = interpret(kernel, {name: np.abs(a) for name, a in given.items()}).values()
    (found,) = run_kernel(legal, given, {}, 2, guarded=True).values()
    story = f"seed {seed}, {call.op.name} {dict(call.shapes)} {dict(call.attrs)}\n{schedule}"
    assert np.array_equal(found.view(np.uint8), np.ascontiguousarray(expected).view(np.uint8)), story
    apart = np.abs(found.astype(np.float64) - plain.astype(np.float64))
    terms = max(a.size for a in given.values())
    near = 2.0**-8 * np.abs(plain.astype(np.float64)) + 2 * terms * 2.0**-24 * sizes.astype(np.float64)
    assert np.all(apart <= near), story


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("taps", [4, 5, 7])
def test_windows_wider_than_the_map(width: int, taps: int) -> None:
    """Of some taps no window lies inside, and the bounds of its loop are out of order: nothing is added."""
    shapes = {"input": (1, 3, width, 4), "filter": (1, taps, 4, 16), "grad_output": (1, 3, width, 16)}
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    call = Call(MODULE, gradient(MODULE, DENSE, "filter"), shapes, attrs, dtype="bfloat16")
    lowered, parameters = call.kernel()
    kernel = simplify(bind(lowered, parameters))
    paired = apply(kernel, parse_schedule("tighten x\npair x")) if width > 1 else kernel
    arrays = random_arrays(shapes, "bfloat16", taps)
    given = {buffer.name: arrays[buffer.name] for buffer in kernel.inputs}
    (expected,), (plain,) = interpret(paired, given).values(), interpret(kernel, given).values()
    (found,) = run_kernel(legalize(paired), given, {}, 1, guarded=True).values()
    assert np.array_equal(found, expected)
    np.testing.assert_allclose(found.astype(np.float64), plain.astype(np.float64), rtol=2.0**-7, atol=1e-5)


ODD = PRODUCT.replace("in 0..{c}:\n        acc", "in 1..{c}:\n        acc").replace("x[i, c]", "x[i, c - 1]")


@pytest.mark.parametrize("count", [3, 4, 7])
def test_an_odd_start_and_an_odd_end(count: int) -> None:
    """Pairs at every place, and a last step of its own."""
    kernel = parse_kernel(ODD.replace("{m}", "2").replace("{c}", str(count)).replace("{k}", "16"))
    paired = apply(kernel, parse_schedule("pair c"))
    given = arrays(2, count, 16, count)
    assert "x_pairs" not in print_kernel(paired)
    assert f"alloc c_left: int32[2, {count - 1}]" in print_kernel(paired)
    verify(legalize(paired), bounds=True)
    assert np.array_equal(run_kernel(legalize(paired), given, {}, 1, guarded=True)["y"], interpret(paired, given)["y"])


COPIED = "      alloc t: bfloat16[{c}] stack\n      for u in 0..{c}:\n        t[u] = w[u, j]\n      for c"

READ_BACK = """
kernel read_back(x: bfloat16[4, 8]) -> (y: bfloat16[4, 8], z: float32[4]):
  for i in 0..4:
    for j in 0..8:
      y[i, j] = x[i, j]
  for n in 0..4:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for c in 0..8:
      acc[] = fma(float32(x[n, c]), float32(y[n, c]), acc[])
    z[n] = acc[]
"""


def test_pairs_of_a_result() -> None:
    """A factor may be another result, which is finished by then."""
    kernel = parse_kernel(READ_BACK)
    given = {"x": arrays(4, 8, 16, 1)["x"]}
    found = interpret(apply(kernel, parse_schedule("pair c")), given)["z"]
    np.testing.assert_allclose(found, interpret(kernel, given)["z"], rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PRODUCT.replace("x[i, c]", "x[i, 7 - c]"), "its steps do not walk along one dimension of 'x'"),
        (PRODUCT.replace("x[i, c]", "x[c % 2, c]"), "its steps do not walk along one dimension of 'x'"),
        (PRODUCT.replace("x[i, c]", "x[i, 8*c]").replace("in 0..{c}", "in 0..1"), "not known to hold two steps"),
        (
            PRODUCT.replace("float32(w[c, j])", "float32(t[c])").replace("      for c", COPIED),
            "'t' is written in the nest",
        ),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    kernel = parse_kernel(text.replace("{m}", "2").replace("{c}", "8").replace("{k}", "16"))
    with pytest.raises(ScheduleError, match=reason):
        apply(kernel, parse_schedule("pair c"))
