"""Definitions of several sums, and of sums that conditions choose: the same bits, each sum with loops of its own."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgen.grad import load, load_text
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import If, Kernel, Var
from opgen.loop.print import print_kernel
from opgen.loop.walk import allocs_in, free_vars, loops_in, walk
from opgen.lower.cases import ByCases
from opgen.lower.parts import Parts
from opgen.machine import typical
from opgen.passes.simplify import simplify
from opgen.schedule.default import default_schedule
from tests.harness import Call, random_arrays
from tests.support.convolutions import assert_scheduled_is_the_same

PARTS = load(Path(__file__).parents[1] / "specs" / "parts.op")
SEEDS = range(4)
WIDE = typical(64)
TURNED = [(False, False), (False, True), (True, False), (True, True)]


def call(op: str, dtype: str = "float32", attrs: Mapping[str, object] | None = None, **shapes: tuple[int, ...]) -> Call:
    return Call(PARTS, PARTS.op(op), shapes, attrs or {}, dtype=dtype)


def two(rows: int, depth: int, state: int, columns: int, dtype: str = "float32") -> Call:
    return call("Two", dtype, x=(rows, depth), w=(depth, columns), h=(rows, state), r=(state, columns))


def two_read(rows: int, state: int, columns: int) -> Call:
    return call("TwoRead", first=(rows, columns), h=(rows, state), r=(state, columns))


def gated(op: str, rows: int, depth: int, columns: int, dtype: str = "float32") -> Call:
    shapes = {"x": (rows, depth), "w": (depth, columns), "v": (depth, columns)}
    return call(op, dtype, **shapes, **({"dy": (rows, columns)} if op.endswith("Input") else {}))


def inside(rows: int, depth: int, columns: int, width: int) -> Call:
    return call("Inside", x=(rows, depth), w=(depth, columns), v=(columns, width))


def gemm(op: str, rows: int, depth: int, columns: int, turned: tuple[bool, bool]) -> Call:
    a, b = (rows, depth), (depth, columns)
    attrs = {"transpose_a": turned[0], "transpose_b": turned[1]}
    return call(op, attrs=attrs, a=a[::-1] if turned[0] else a, b=b[::-1] if turned[1] else b)


def groups(batch: int, depth: int, size: int) -> Call:
    return call("Groups", x=(batch, depth), w=(4 * size, depth), b=(4 * size,))


KINDS: Mapping[str, Callable[[int, int, int, int], Call]] = {
    "two": two,
    "two of half": lambda a, b, c, d: two(a, b, c, d, "half"),
    "two of int32": lambda a, b, c, d: two(a, b, c, d, "int32"),
    "gated": lambda a, b, c, d: gated("Gated", a, b, c),
    "gradient of gated": lambda a, b, c, d: gated("GatedByInput", a, b, c),
    "inside": inside,
    "windows": lambda a, b, c, d: call("Windows", x=(a, b)),
    "gemm": lambda a, b, c, d: gemm("Gemm", a, b, c, (d % 2 > 0, d % 3 > 0)),
    "groups": lambda a, b, c, d: groups(a, b, c),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_the_same_bits(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter's results are those of the definition as it is written."""
    rng = random.Random(f"{kind} {seed}")
    made = KINDS[kind](*(rng.choice([1, 2, 3, 5, 7]) for _ in range(4)))
    arrays = random_arrays({t.name: made.shapes[t.name] for t in made.op.tensors}, "float32", seed)
    arrays = {n: x.astype(_memory_type(made.dtype)) for n, x in arrays.items()}
    found = made.run(arrays)
    monkeypatch.setattr(Parts, "of", lambda _, definition: (definition,))
    monkeypatch.setattr(ByCases, "of", lambda _, definition: definition)
    for name, expected in made.run(arrays).items():
        same = np.array_equal(found[name].view(np.uint8), expected.view(np.uint8))
        assert same, f"{kind}, seed {seed}: {dict(made.shapes)}\n{found[name]}\n{expected}"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["two", "gradient of gated", "gemm", "groups"])
def test_scheduled_parts_are_the_same_bits(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    assert_scheduled_is_the_same(KINDS[kind](*(rng.choice([4, 17, 32, 48]) for _ in range(4))), seed, WIDE)


def test_sums_are_scheduled_as_if_they_stood_alone() -> None:
    product = call("MatMul", a=(64, 96), b=(96, 80))
    alone = [_shape_of(product), _shape_of(two_read(64, 112, 80))]
    assert _shape_of(two(64, 96, 112, 80)) == alone[0] + alone[1] != []
    assert _nests(two(64, 96, 112, 80)) == 2
    lets = call("TwoLets", x=(64, 96), w=(96, 80), h=(64, 112), r=(112, 80))
    assert _shape_of(lets) == alone[0] + alone[1]


@pytest.mark.parametrize("turned", TURNED)
@pytest.mark.parametrize("op", ["Gemm", "GemmInside"])
def test_the_side_taken_alone_counts(op: str, turned: tuple[bool, bool]) -> None:
    """What the other side would read lies outside here."""
    made = gemm(op, 2, 7, 4, turned)
    arrays = random_arrays(made.shapes, "int32", 0)
    a, b = (x.T if flag else x for x, flag in zip(arrays.values(), turned, strict=True))
    assert np.array_equal(made.run({n: x.astype(np.float32) for n, x in arrays.items()})["y"], a @ b)


@pytest.mark.parametrize("turned", TURNED)
@pytest.mark.parametrize("op", ["Gemm", "GemmInside"])
def test_a_known_flag_leaves_one_side(op: str, turned: tuple[bool, bool]) -> None:
    kernel = _known(gemm(op, 64, 96, 80, turned))
    assert [len(list(loops_in(kernel.body))), _count(kernel, If)] == [3, 0], print_kernel(kernel)
    if not any(turned):
        assert _shape_of(gemm(op, 64, 96, 80, turned)) == _shape_of(call("MatMul", a=(64, 96), b=(96, 80)))


@pytest.mark.parametrize("op", ["Gemm", "GemmInside"])
def test_an_open_flag_is_asked_once(op: str) -> None:
    """Around the loops; in each case the sizes are known for what they are there."""
    kernel = simplify(gemm(op, 64, 96, 80, (False, True)).kernel()[0])
    flags = [s for s in walk(kernel.body) if isinstance(s, If) and isinstance(s.condition, Var)]
    assert len(flags) == 3, print_kernel(kernel)
    inner = [s for loop in loops_in(kernel.body) for s in walk(loop.body) if isinstance(s, If)]
    asked = {n for s in inner for n in free_vars(s.condition)}
    assert not asked & {"transpose_a", "transpose_b", "rows", "columns", "depth"}, print_kernel(kernel)


def test_a_sum_that_nothing_reads_is_not_computed() -> None:
    text = """op Chosen { type T in {float32} input x: T[n] attr flag: int = 0 output y: T[n]
      y[i] = if i >= 0 or flag > 0 then x[i] else sum[k < n](x[k]) }"""
    module = load_text(text)
    kernel = _known(Call(module, module.op("Chosen"), {"x": (8,)}, dtype="float32"))
    assert [s.var for s in loops_in(kernel.body)] == ["i"], print_kernel(kernel)


def test_short_sums_stay_together() -> None:
    assert _nests(call("Windows", x=(20, 64))) == 1


def test_what_does_not_change_is_computed_once() -> None:
    """Of each of the two results the sums inside have as many loops as a tensor of their own."""
    kernel = simplify(inside(8, 16, 24, 32).kernel()[0])
    assert max(_depth(loop) for loop in loops_in(kernel.body)) == 3, print_kernel(kernel)


def test_panels_have_no_gaps() -> None:
    """Rows of a table in groups are copied group by group, not with all that lies between them."""
    schedule = assert_scheduled_is_the_same(groups(64, 256, 256), 0, WIDE)
    assert re.search(r"^pack w 1, 0 at=g -> w_panel$", schedule, re.MULTILINE), schedule


def test_a_case_allocates_for_itself() -> None:
    text = """op Chosen { type T in {float32} input x: T[n, n] input w: T[n, n] attr flag: bool output y: T[n, n]
      y[i, j] = if flag then sum[k](x[i, k] * w[k, j]) + sum[k](x[k, i] * w[k, j]) else x[i, j] }"""
    module = load_text(text)
    made = Call(module, module.op("Chosen"), {"x": (3, 3), "w": (3, 3)}, {"flag": True}, dtype="float32")
    kernel, _ = made.kernel()
    (choice,) = (s for s in walk(kernel.body) if isinstance(s, If))
    assert [x.name for s in allocs_in(choice.then) for x in s.buffers if x.space == "heap"] == ["y_sum"]
    x, w = (np.random.default_rng(seed).integers(-9, 9, (3, 3)).astype(np.float32) for seed in (0, 1))
    assert np.array_equal(made.run({"x": x, "w": w}, interpret)["y"], x @ w + x.T @ w)


def _memory_type(dtype: str) -> Any:
    return np.dtype("float16" if dtype == "half" else dtype)


def _known(made: Call) -> Kernel:
    return simplify(bind(*made.kernel()))


def _count(kernel: Kernel, kind: type) -> int:
    return sum(isinstance(s, kind) for s in walk(kernel.body))


def _nests(made: Call) -> int:
    """How many results and intermediates have loops of their own."""
    kernel = _known(made)
    return len(kernel.outputs) + sum(len(s.buffers) for s in allocs_in(kernel.body) if s.space == "heap")


def _depth(loop: Any) -> int:
    return 1 + max((_depth(inner) for inner in loops_in(loop.body)), default=0)


def _shape_of(made: Call) -> list[str]:
    """The steps of a schedule without the names, and without those that place intermediates."""
    steps = str(default_schedule(_known(made), "cpu", WIDE)).splitlines()
    return [re.sub(r"[a-z]\w*(?==)|(?<=\s)[a-z]\w*", "", s) for s in steps if not s.startswith("pitch")]
