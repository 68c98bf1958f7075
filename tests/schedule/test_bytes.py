"""Sums of products of bytes taken four at a time: exact, the same in machine code as interpreted, with and without the
instruction.
"""

from __future__ import annotations

import dataclasses
from math import prod

import numpy as np
import pytest

from opgen.codegen.llvm.compile import assembly
from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Const, Dot, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import buffers_in, walk_exprs
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.kernel import compile_kernel
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule

WITH_QUADS = dataclasses.replace(typical(64), quads=True)

PRODUCT = """
kernel product(x: {T}[{m}, {c}], w: {S}[{c}, {k}], zx: {T}[], zw: {S}[{k}]) -> (y: int32[{m}, {k}]):
  for i in 0..{m}:
    for j in 0..{k}:
      alloc acc: int32[] register
      acc[] = 0i32
      for c in 0..{c}:
        acc[] = acc[] + {X} * {W}
      y[i, j] = acc[]
"""
PLAIN = ("int32(x[i, c])", "int32(w[c, j])")
MOVED = ("(int32(x[i, c]) - int32(zx[]))", "(int32(w[c, j]) - int32(zw[j]))")

WINDOW = """
kernel window(x: {T}[8, 7, 6], w: int8[16, 8, 3, 3], zx: {T}[], zw: int32[16]) -> (y: int32[16, 7, 6]):
  for k in 0..16:
    for i in 0..7:
      for j in 0..6:
        alloc acc: int32[] register
        acc[] = 0i32
        for c in 0..8:
          for r in 0..3:
            if i + r - 1 >= 0 and i + r - 1 < 7:
              for s in 0..3:
                if j + s - 1 >= 0 and j + s - 1 < 6:
                  acc[] = acc[] + (int32(x[c, i + r - 1, j + s - 1]) - int32(zx[])) * (int32(w[k, c, r, s]) - zw[k])
        y[k, i, j] = acc[]
"""


def product(types: tuple[str, str], sizes: tuple[int, int, int], factors: tuple[str, str] = MOVED) -> Kernel:
    named = dict(zip("TSmckXW", (*types, *sizes, *factors), strict=True))
    return parse_kernel(PRODUCT.format(**named))


def extremes(kernel: Kernel, seed: int) -> dict[str, np.ndarray]:
    """The ends of each type's range, and what lies between."""
    rng = np.random.default_rng(seed)
    found = {}
    for b in kernel.inputs:
        of = np.iinfo(np.int8 if b.dtype.name == "int32" else b.dtype.name)
        shape = tuple(int(getattr(n, "value", 0)) for n in b.shape)
        whole = rng.integers(of.min, of.max + 1, shape)
        found[b.name] = np.where(rng.random(shape) < 0.6, rng.choice([of.min, of.max], shape), whole).astype(
            b.dtype.name
        )
    return found


def by_numpy(given: dict[str, np.ndarray], moved: bool) -> np.ndarray:
    x, w = (given[n].astype(np.int32) for n in "xw")
    return (x - given["zx"]) @ (w - given["zw"].astype(np.int32)) if moved else x @ w


def without_the_instruction(kernel: Kernel, given: dict[str, np.ndarray]) -> np.ndarray:
    y = np.empty_like(interpret(kernel, given)["y"])
    compile_kernel(kernel, Target.generic())([*(given[b.name].ctypes.data for b in kernel.inputs), y.ctypes.data], [])
    return y


@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "uint8"), ("int8", "int8"), ("uint8", "uint8")])
@pytest.mark.parametrize(("terms", "lanes"), [(8, 1), (11, 16), (64, 4)])
def test_four_at_once(types: tuple[str, str], terms: int, lanes: int) -> None:
    for factors in (PLAIN, MOVED):
        kernel = product(types, (3, terms, 32), factors)
        alike, moved = types[0] == types[1], factors is MOVED
        steps = ["recode w"] * alike + ["distribute c"] * (alike or moved) + ["pair c -> x, w_quads"]
        if lanes > 1:
            steps += [f"split j {lanes} tail=exact", "vectorize j_i"]
        after = apply(kernel, parse_schedule("\n".join(steps)))
        assert apply(parse_kernel(print_kernel(after)), parse_schedule("")) == after
        legal = legalize(after)
        verify(legal, bounds=True)
        assert any(isinstance(e, Dot) for e in walk_exprs(legal.body))
        given = extremes(kernel, terms)
        found = (
            interpret(kernel, given)["y"],
            interpret(after, given)["y"],
            run_kernel(legal, given, {}, 1, guarded=True)["y"],
            without_the_instruction(legal, given),
        )
        assert all(np.array_equal(y, by_numpy(given, moved)) for y in found)


def test_sums_overflow_as_they_did() -> None:
    """Modulo 2**32: 70,000 terms of 255 times -128."""
    kernel = product(("uint8", "int8"), (1, 70_000, 1), PLAIN)
    given = {"x": np.full((1, 70_000), 255, np.uint8), "w": np.full((70_000, 1), -128, np.int8)}
    given |= {"zx": np.zeros((), np.uint8), "zw": np.zeros(1, np.int8)}
    legal = legalize(apply(kernel, parse_schedule("pair c -> x, w_quads")))
    exact = -255 * 128 * 70_000
    assert run_kernel(legal, given, {}, 1, guarded=True)["y"].item() == (exact + 2**31) % 2**32 - 2**31 != exact


REFUSED = {
    "pair c": "does not add one product of two bfloat16 elements, or of a uint8 and an int8",
    "pair c -> x, w": "does not add one product",
    "distribute j": "does not add one product of two factors without a condition",
    "distribute c -> x, s": "the name 'x' is taken",
    "distribute c\ndistribute c": "nothing is added to a factor",
    "recode y": "there is no such input or local buffer",
    "recode x -> w": "the name 'w' is taken",
    "vectorize j\ndistribute c\npair c -> x, w": "four steps are not next to each other in 'w'",
    "recode w\ndistribute c\npair c": "does not add one product of two bfloat16 elements, or of a uint8 and an int8",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(ScheduleError, match=REFUSED[text]):
        apply(product(("uint8", "int8"), (3, 8, 32)), parse_schedule(text))


@pytest.mark.parametrize(
    ("change", "text", "why"),
    [
        (("int32(zx[])", "int32(w[c, j])"), "distribute c", "what is added to a factor is not the same for all terms"),
        (("acc[] = 0i32", "acc[] = 1i32"), "distribute c", "its sum does not begin with 0 just before"),
        (("for c in 0 .. 8", "for c in 0 .. j"), "distribute c", "how many terms there are is not known"),
        (("w[c, j]) -", "w[7 - c, j]) -"), "distribute c\npair c", "do not walk along one dimension of 'w'"),
        (("int32(x[i, c]) -", "int32(float32(x[i, c])) -"), "recode x", "not every read of it is cast to int32"),
        (("acc[] = acc[] +", "acc[] = acc[] -"), "distribute c", "does not add a product of two elements as int32"),
    ],
)
def test_refused_of_other_sums(change: tuple[str, str], text: str, why: str) -> None:
    plain = print_kernel(product(("uint8", "int8"), (3, 8, 32)))
    assert change[0] in plain
    with pytest.raises(ScheduleError, match=why):
        apply(parse_kernel(plain.replace(*change)), parse_schedule(text))


DIAGONALS = """
kernel diagonals(x: uint8[15], w: int8[15], p: uint8[], q: int8[]) -> (y: int32[9]):
  for i in 0..9:
    y[i] = 0i32
    if i {condition}:
      alloc acc: int32[] register
      acc[] = 0i32
      for c in i..i + 8:
        acc[] = acc[] + (int32(x[c]) - int32(p[])) * (int32(w[c]) - int32(q[]))
      y[i] = acc[]
"""


def test_sums_are_where_the_terms_are() -> None:
    with pytest.raises(ScheduleError, match="without the conditions around, reads of 'x' may lie outside"):
        apply(parse_kernel(DIAGONALS.format(condition="< 8")), parse_schedule("distribute c"))
    kernel = parse_kernel(DIAGONALS.format(condition=">= 0").replace("9", "8"))
    given = extremes(kernel, 7)
    found = interpret(apply(kernel, parse_schedule("distribute c\npair c")), given)["y"]
    assert np.array_equal(found, interpret(kernel, given)["y"])


@pytest.mark.parametrize(("dtype", "other"), [("uint8", ""), ("int8", "recode w"), ("int8", "recode x_padded")])
def test_windows_have_zero_points_around(dtype: str, other: str) -> None:
    kernel = parse_kernel(WINDOW.format(T=dtype))
    given = extremes(kernel, 5)
    steps = ["pad x 1, 2", other, "distribute c", "regroup c, r", "regroup c, s", "pair c"]
    steps += ["permute c_right 1, 2, 3, 0", "reorder i, j, r, s, c, k", "vectorize k"]
    after = apply(kernel, parse_schedule("\n".join(steps)))
    expected = interpret(kernel, given)["y"]
    assert np.array_equal(interpret(after, given)["y"], expected)
    assert np.array_equal(run_kernel(legalize(after), given, {}, 1, guarded=True)["y"], expected)
    made = "alloc z: {T}[] register\n        z[] = zx[]\n        acc[] = 0"  # not there yet where the copy is made
    local = WINDOW.replace("zx[])", "z[])").replace("acc[] = 0", made)
    for other in (WINDOW.replace("int32(zx[])", "int32(zx[]) * 2i32"), local):
        with pytest.raises(ScheduleError, match="no sum of products with it is under a condition that zeros would"):
            apply(parse_kernel(other.format(T=dtype)), parse_schedule("pad x 1, 2"))


@pytest.mark.parametrize("channels", [3, 7])
def test_what_is_left_over_is_a_word(channels: int) -> None:
    """With zeros behind the last channel, in the filter's words and the image's."""
    text = WINDOW.format(T="uint8").replace("[8,", f"[{channels},").replace("[16, 8,", f"[16, {channels},")
    kernel = parse_kernel(text.replace("c in 0..8", f"c in 0..{channels}"))
    schedule, after = scheduled(kernel, "cpu", WITH_QUADS)
    assert "pair " in str(schedule)
    assert "_last" not in print_kernel(after)
    given = extremes(kernel, channels)
    expected = interpret(kernel, given)["y"]
    assert np.array_equal(interpret(after, given)["y"], expected)
    legal = legalize(after)
    verify(legal, bounds=True)
    assert np.array_equal(run_kernel(legal, given, {}, 1, guarded=True)["y"], expected)


@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "int8")])
def test_the_scheduler_takes_them_where_the_machine_has_them(types: tuple[str, str]) -> None:
    for kernel in (product(types, (14, 66, 64)), parse_kernel(WINDOW.format(T=types[0]))):
        without, _ = scheduled(kernel, "cpu", typical(64))
        schedule, after = scheduled(kernel, "cpu", WITH_QUADS)
        text = str(schedule)
        assert "pair " not in str(without)
        assert "pair c -> " in text
        assert "distribute c -> " in text
        assert ("recode " in text) == (types[0] == types[1])
        assert ("pad x 1, 2" in text) == (kernel.name == "window")
        given = extremes(kernel, 6)
        legal = legalize(after)
        verify(legal, bounds=True)
        expected = interpret(kernel, given)["y"]
        for threads in (1, 2):
            assert np.array_equal(run_kernel(legal, given, {}, threads, guarded=True)["y"], expected)


@pytest.mark.parametrize("columns", [1024, 3072, 4096])
def test_rows_of_words_do_not_conflict(columns: int) -> None:
    """Rows a multiple of 4 KiB apart fall into the same sets of the first cache: copies are in blocks, or have room."""
    _, made = scheduled(product(("uint8", "int8"), (64, 768, columns), PLAIN), "cpu", WITH_QUADS)
    words = [o for o in buffers_in(made.body) if o.space == "heap"]
    assert words
    for o in words:
        row = o.dtype.bytes * prod(int(e.value) for e in o.shape[1:] if isinstance(e, Const))
        assert row % 4096, (o.name, o.shape)


@pytest.mark.parametrize(
    ("features", "widest"),
    [("+avx2,+fma,+avxvnni", 8), ("+avx512f,+avx512vl,+avx512vnni", 16), ("+avx2,+fma", 0)],
)
def test_the_instruction(features: str, widest: int) -> None:
    """For machines that this one need not be."""
    target = dataclasses.replace(Target.generic(), features=features)
    assert target.machine.quads == (widest > 0)
    for lanes in (8, 16):
        steps = f"pair c -> x, w_quads\nsplit j {lanes} tail=exact\nvectorize j_i"
        legal = legalize(apply(product(("uint8", "int8"), (3, 8, 32), PLAIN), parse_schedule(steps)))
        text = assembly(emit(legal, target), target)
        assert ("vpdpbusd" in text) == (lanes <= widest)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_lanes_gather_bytes_that_are_packed(dtype: str) -> None:
    """Rows of three taps are too short for squares that are transposed."""
    kernel = parse_kernel(WINDOW.format(T=dtype))
    schedule, after = scheduled(kernel, "cpu", WITH_QUADS)
    copy = "reorder w_packed_3_o, w_packed_0, w_packed_1, w_packed_2, w_packed_3_l\nvectorize w_packed_3_l\n"
    assert copy in str(schedule)
    given = extremes(kernel, 6)
    found = run_kernel(legalize(after), given, {}, 2, guarded=True)["y"]
    np.testing.assert_array_equal(found, interpret(kernel, given)["y"])
