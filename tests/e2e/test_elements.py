"""Reads at indices that are values: as numpy has them by every path, and refused before anything is written.

Shapes and values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.diagnostics import CheckFailed
from opgen.diagnostics.calls import ArgumentValueError
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import loads, loops_in
from opgen.lower import Variant, lower
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import compile_emulated
from opgen.schedule.default import scheduled
from opgen.spec.call.shapes import evaluate, solve
from tests.bindings.c.library import INVALID, OK, Library, built, of
from tests.bindings.modules import ROOT, generated, spec

Array = npt.NDArray[np.generic]
Arrays = dict[str, Array]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
ELEMENTS = ROOT / "tests" / "specs" / "elements.op"


@dataclass(frozen=True)
class Case:
    """Random inputs of an op, what numpy makes of them, and how to spoil them: which input, and the range of what it
    may hold (None where anything may).
    """

    inputs: Callable[[np.random.Generator], Arrays]
    right: Callable[..., Array]
    spoilt: str | None = None
    least: int = 0
    dimension: tuple[str, int] = ("x", 0)
    tolerance: float = 0.0


def _sizes(rng: np.random.Generator, count: int) -> list[int]:
    return [int(n) for n in rng.choice([1, 2, 3, 7, 16, 19, 40], count)]


def _values(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def _rows(rng: np.random.Generator) -> Arrays:
    n, columns, count = _sizes(rng, 3)
    dtype = rng.choice([np.float16, np.float32])
    ids = rng.integers(0, n, count).astype(rng.choice([np.int32, np.int64]))
    return {"table": rng.standard_normal((n, columns)).astype(dtype), "ids": ids}


def _taken(rng: np.random.Generator) -> Arrays:
    outer, n, inner, count = _sizes(rng, 4)
    ids = rng.integers(-n, n, count).astype(rng.choice([np.int32, np.int64]))
    return {"x": _values(rng, outer, n, inner), "ids": ids}


def _along(rng: np.random.Generator) -> Arrays:
    rows, n, count = _sizes(rng, 3)
    return {"x": _values(rng, rows, n), "ids": rng.integers(-n, n, (rows, count))}


def _columns(rng: np.random.Generator) -> Arrays:
    rows, n, count = _sizes(rng, 3)
    return {"x": _values(rng, rows, n), "order": rng.integers(0, n, count).astype(np.int32)}


def _points(rng: np.random.Generator) -> Arrays:
    rows, columns, depth, count = _sizes(rng, 4)
    at = np.stack([rng.integers(0, rows, count), rng.integers(0, columns, count)], 1).astype(np.int32)
    return {"x": _values(rng, rows, columns, depth), "at": at}


def _padded(rng: np.random.Generator) -> Arrays:
    rows, columns, count = _sizes(rng, 3)
    return {"x": _values(rng, rows, columns), "ids": rng.integers(-3, rows + 3, count)}


def _loss(rng: np.random.Generator) -> Arrays:
    rows, classes = _sizes(rng, 2)
    target = np.where(rng.random(rows) < 0.3, -100, rng.integers(0, classes, rows))
    target[0] = 0
    return {"x": _values(rng, rows, classes), "target": target}


def _bag(rng: np.random.Generator) -> Arrays:
    rows, columns, bags, count = _sizes(rng, 4)
    return {"table": _values(rng, rows, columns), "ids": rng.integers(0, rows, (bags, count))}


def _mixed(rng: np.random.Generator) -> Arrays:
    rows, depth, count, columns = _sizes(rng, 4)
    ids = rng.integers(0, rows, count).astype(np.int32)
    return {"table": _values(rng, rows, depth), "ids": ids, "w": _values(rng, depth, columns)}


def _chained(rng: np.random.Generator) -> Arrays:
    n, m, count = _sizes(rng, 3)
    return {
        "x": _values(rng, n), "ids": rng.integers(0, n, m).astype(np.int32), "of": rng.integers(0, m, count)
    }  # fmt: skip


def _split(rng: np.random.Generator) -> Arrays:
    rows, width, count = _sizes(rng, 3)
    return {"x": _values(rng, rows, width), "ids": rng.integers(-2 * width, (rows + 2) * width, count)}


def _masked(rng: np.random.Generator) -> Arrays:
    n, count = _sizes(rng, 2)
    flag = rng.random(count) < 0.6
    flag[0] = True
    return {"x": _values(rng, n), "ids": np.where(flag, rng.integers(0, n, count), 2**40), "flag": flag}


def _split_right(x: Array, ids: Array) -> Array:
    rows, width = x.shape
    wide = np.zeros((rows, width + 2), np.float32)
    wide[:, 1:-1] = x
    inside = (ids >= 0) & (ids < rows * width)
    flat = np.where(inside, ids, 0)
    found = np.stack([wide[flat // width, flat % width + r] for r in range(3)], 1)
    return np.where(inside[:, None], found, np.float32(0))


CASES: Mapping[str, Case] = {
    "Embedded": Case(_rows, lambda table, ids: table[ids], "ids", dimension=("table", 0)),
    "Taken": Case(_taken, lambda x, ids: x[:, ids], "ids", -1, ("x", 1)),
    "Along": Case(_along, lambda x, ids: np.take_along_axis(x, ids, 1), "ids", -1, ("x", 1)),
    "Columns": Case(_columns, lambda x, order: x[:, order], "order", dimension=("x", 1)),
    "Points": Case(_points, lambda x, at: x[at[:, 0], at[:, 1]], "at", dimension=("x", 0)),
    "Filled": Case(
        _padded, lambda x, ids: np.where(((ids >= 0) & (ids < len(x)))[:, None], x[np.clip(ids, 0, len(x) - 1)], 7)
    ),
    "Loss": Case(
        _loss,
        lambda x, target: -np.sum([r[t] for r, t in zip(x, target, strict=True) if t != -100], keepdims=True),
        "target", dimension=("x", 1), tolerance=1e-5,
    ),
    "Bag": Case(_bag, lambda table, ids: table[ids].sum(1), "ids", dimension=("table", 0), tolerance=1e-5),
    "Mixed": Case(
        _mixed, lambda table, ids, w: table[ids].astype(np.float64) @ w, "ids", dimension=("table", 0), tolerance=1e-5
    ),
    "Chained": Case(_chained, lambda x, ids, of: x[ids[of]], "of", dimension=("ids", 0)),
    "Split": Case(_split, _split_right),
    "Masked": Case(_masked, lambda x, ids, flag: np.where(flag, x[np.where(flag, ids, 0)], 0), "ids"),
}  # fmt: skip

CELLS = [(name, number) for name in CASES for number in range(4)]


def _drawn(name: str, number: int) -> tuple[Case, Arrays, np.random.Generator]:
    print(f"OPGEN_TEST_SEED={SEED}: {name}, {number}")
    rng = np.random.default_rng([SEED, sorted(CASES).index(name), number])
    case = CASES[name]
    return case, case.inputs(rng), rng


def _assert_right(case: Case, found: object, arrays: Arrays) -> None:
    right = case.right(**arrays)
    np.testing.assert_allclose(np.asarray(found), right, rtol=case.tolerance, atol=case.tolerance)


def _spoil(case: Case, arrays: Arrays, rng: np.random.Generator) -> tuple[Arrays, int, int]:
    """The inputs with one wrong number, that number, and the size of the dimension."""
    assert case.spoilt is not None
    wrong = arrays[case.spoilt].copy()
    size = arrays[case.dimension[0]].shape[case.dimension[1]]
    given = int(rng.choice([size, size + 5, -1 + case.least * size, -7 + case.least * size]))
    place = tuple(int(rng.integers(n)) for n in wrong.shape)
    place = (place[0], 0) if case.spoilt == "at" else place  # of points, the number of the first dimension
    place = (0,) if case.spoilt in ("target",) or "flag" in arrays else place  # one that is looked at
    wrong[place] = given
    return {**arrays, case.spoilt: wrong}, given, size


def _kernel(name: str, arrays: Arrays) -> tuple[Kernel, dict[str, int | float]]:
    """The generic kernel of a call, and its parameters."""
    module, op = spec(ELEMENTS), spec(ELEMENTS).op(name)
    types = {
        v.name: next(str(arrays[t.name].dtype) for t in op.tensors if t.dtype == v.name) for v in op.type_variables
    }
    lowered = lower(module, op, Variant(types, {}))
    call = solve(op, module, {n: a.shape for n, a in arrays.items()}, {}, {})
    values = [evaluate(a, call) for a in lowered.arguments]
    return lowered.kernel, {p.name: v for p, v in zip(lowered.kernel.parameters, values, strict=True)}


def _integers(kernel: Kernel, parameters: Mapping[str, int | float]) -> dict[str, int]:
    return {p.name: int(parameters[p.name]) for p in kernel.parameters}


@pytest.mark.parametrize(("name", "number"), CELLS)
def test_calls(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case, arrays, rng = _drawn(name, number)
    op = spec(ELEMENTS).op(name)
    for policy in ("always", "never"):
        monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
        function = getattr(opgen.load(ELEMENTS), op.function_name)
        _assert_right(case, function(**arrays), arrays)
        if case.spoilt is None:
            continue
        wrong, given, size = _spoil(case, arrays, rng)
        out = np.full_like(function(**arrays), 3)
        for _ in range(2):  # the second time by the short way of known calls
            with pytest.raises(ArgumentValueError) as refused:
                function(**wrong, out=out)
            tensor, axis = case.dimension
            expected = f"integers from {case.least * size} to {size - 1} (dimension {axis} of '{tensor}' has {size})"
            assert str(refused.value) == f"{name}: argument '{case.spoilt}': expected {expected}, given {given}"
            assert (out == 3).all(), "something was written"


@pytest.mark.parametrize(("name", "number"), [(n, k) for n, k in CELLS if k < 2])
def test_loop_ir(name: str, number: int) -> None:
    """The interpreter, on the kernel as lowered and as scheduled for a CPU, generic and bound; all reads inside."""
    case, arrays, rng = _drawn(name, number)
    kernel, parameters = _kernel(name, arrays)
    verify(kernel, bounds=True)
    assert parse_kernel(print_kernel(kernel)) == kernel
    bound = simplify(bind(kernel, _integers(kernel, parameters)))
    for seen, left in ((kernel, parameters), (bound, {})):
        fast = legalize(scheduled(simplify(seen))[1])
        verify(fast, bounds=True)
        for k in (seen, fast):
            _assert_right(case, interpret(k, arrays, left, seed=number)["y"], arrays)
            if case.spoilt is not None:
                wrong, given, size = _spoil(case, arrays, rng)
                with pytest.raises(CheckFailed) as failed:
                    interpret(k, wrong, left)
                assert failed.value.number == 0
                assert not 0 <= failed.value.value < size
                assert failed.value.value in (given, given - case.least * size)


@pytest.mark.skipif(emulation.compiler() is None, reason="needs a C++ compiler")
def test_cuda() -> None:
    """CUDA C of every op, run on the CPU."""
    drawn = {name: _drawn(name, 0) for name in CASES}
    kernels = {name: _kernel(name, arrays) for name, (_, arrays, _) in drawn.items()}
    programs = compile_emulated([legalize(scheduled(simplify(k), "cuda")[1]) for k, _ in kernels.values()])
    for (name, (case, arrays, rng)), program in zip(drawn.items(), programs, strict=True):
        _assert_right(case, program(arrays, kernels[name][1])["y"], arrays)
        if case.spoilt is not None:
            wrong, _, size = _spoil(case, arrays, rng)
            with pytest.raises(CheckFailed) as failed:
                program(wrong, kernels[name][1])
            assert not 0 <= failed.value.value < size


@pytest.mark.parametrize("name", CASES)
def test_c(name: str) -> None:
    case, arrays, rng = _drawn(name, 1)
    library, op = Library(spec(ELEMENTS), built(ELEMENTS)), spec(ELEMENTS).op(name)
    right = getattr(generated(ELEMENTS), op.function_name)(**arrays)
    result = np.full_like(right, 3)
    given = [of(arrays[i.name]) for i in op.inputs]
    assert library.run(op, given, {}, [of(result)]) == OK, library.error()
    np.testing.assert_allclose(result, right, rtol=case.tolerance, atol=case.tolerance)
    if case.spoilt is not None:
        wrong, _, _ = _spoil(case, arrays, rng)
        result[...] = 3
        assert library.run(op, [of(wrong[i.name]) for i in op.inputs], {}, [of(result)]) == INVALID
        with pytest.raises(ArgumentValueError) as refused:
            getattr(generated(ELEMENTS), op.function_name)(**wrong)
        assert library.error() == str(refused.value)
        assert (result == 3).all()


def test_nothing_to_subscript() -> None:
    """An empty table: fine if nothing is looked for in it."""
    embedded = generated(ELEMENTS).embedded
    empty = np.zeros((0, 3), np.float32)
    assert embedded(empty, np.zeros(0, np.int32)).shape == (0, 3)
    with pytest.raises(ArgumentValueError) as refused:
        embedded(empty, np.zeros(1, np.int32))
    expected = "no elements, as dimension 0 of 'table' is empty"
    assert str(refused.value) == f"Embedded: argument 'ids': expected {expected}, given 0"
    padded = generated(ELEMENTS).filled(empty, np.zeros(2, np.int64))
    assert padded.tolist() == [[7.0] * 3] * 2


@pytest.mark.parametrize("given", [-(2**63), 2**63 - 1, -1, 2**31])
def test_far_outside(given: int) -> None:
    with pytest.raises(ArgumentValueError) as refused:
        generated(ELEMENTS).embedded(np.zeros((5, 2), np.float32), np.array([0, given], np.int64))
    assert str(refused.value).endswith(f", given {given}")
    with pytest.raises(ArgumentValueError, match=r"argument 'ids': expected integers from -5 to 4 \(dimension 1"):
        generated(ELEMENTS).taken(np.zeros((1, 5, 2), np.float32), np.array([0, given - 9 * (given == -1)], np.int64))


def test_gradients() -> None:
    """By what is read at elements, and by what is not."""
    rng = np.random.default_rng(SEED)
    arrays = _mixed(rng)
    seed = _values(rng, len(arrays["ids"]), arrays["w"].shape[1])
    mixed = generated(ELEMENTS).mixed
    by_table = opgen.gradient(mixed, wrt="table")(*arrays.values(), seed)
    expected = np.zeros_like(arrays["table"])
    np.add.at(expected, arrays["ids"], seed @ arrays["w"].T)
    np.testing.assert_allclose(by_table, expected, rtol=1e-4, atol=1e-4)
    found = opgen.gradient(mixed, wrt="w")(*arrays.values(), seed)
    np.testing.assert_allclose(found, arrays["table"][arrays["ids"]].T @ seed, rtol=1e-4, atol=1e-4)
    arrays["ids"][0] = len(arrays["table"])
    with pytest.raises(ArgumentValueError, match="argument 'ids': expected integers from 0"):
        opgen.gradient(mixed, wrt="w")(*arrays.values(), seed)


def test_rows_are_copied_in_whole_vectors() -> None:
    """Eight bytes of a place say nothing of the lanes of what is copied, and it is looked up once for a row."""
    arrays = {"table": np.zeros((50, 64), np.float32), "ids": np.zeros(300, np.int64)}
    kernel, parameters = _kernel("Embedded", arrays)
    fast = scheduled(simplify(bind(kernel, _integers(kernel, parameters))), machine=typical(64))[1]
    (around,) = (s for s in loops_in(fast.body) if s.kind == "parallel")
    assert around.var == "i"
    assert {e.type.lanes for e in loads(legalize(fast).body) if e.buffer == "table"} == {16}
