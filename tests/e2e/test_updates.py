"""Writes at indices that are values: as numpy has them by every path, and refused before anything is written.

Shapes and values are drawn from OPGEN_TEST_SEED (0); indices stand several times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import ml_dtypes
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
from opgen.loop.walk import loops_in
from opgen.lower import Variant, lower
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import compile_emulated
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.reorder import reorder
from opgen.spec.call.shapes import evaluate, solve
from tests.bindings.c.library import INVALID, OK, Library, built, of
from tests.bindings.modules import ROOT, generated, spec

Array = npt.NDArray[np.generic]
Arrays = dict[str, Array]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
UPDATES = ROOT / "tests" / "specs" / "updates.op"


@dataclass(frozen=True)
class Case:
    """Random arguments of an op, what numpy makes of them, and how to spoil them.

    `low` times the size of the dimension is the least index; `spoilt` is the input of indices.
    """

    inputs: Callable[[np.random.Generator], Arrays]
    right: Callable[..., Array]
    spoilt: str | None
    attrs: Mapping[str, int] = field(default_factory=dict)
    low: int = 0
    size: Callable[[Arrays], int] = lambda arrays: arrays["x"].shape[0]
    axis: int = 0


def _sizes(rng: np.random.Generator, count: int) -> list[int]:
    return [int(n) for n in rng.choice([1, 2, 3, 7, 16, 19, 40], count)]


def _values(rng: np.random.Generator, dtype: type, *shape: int) -> Array:
    if dtype is bool:
        return rng.random(shape) < 0.5
    kind = np.dtype(dtype).kind
    low = 0 if kind == "u" else -4
    return (rng.standard_normal(shape) if kind not in "iu" else rng.integers(low, 5, shape)).astype(dtype)


def _rows(*dtypes: type, low: int = 0) -> Callable[[np.random.Generator], Arrays]:
    def drawn(rng: np.random.Generator) -> Arrays:
        n, columns, count = _sizes(rng, 3)
        dtype = dtypes[rng.integers(len(dtypes))]
        ids = rng.integers(low * n, n, count).astype(np.int64 if low == 0 else rng.choice([np.int32, np.int64]))
        return {"x": _values(rng, dtype, n, columns), "ids": ids, "v": _values(rng, dtype, count, columns)}

    return drawn


def _along(rng: np.random.Generator) -> Arrays:
    rows, n, count = _sizes(rng, 3)
    dtype = [np.float32, np.float64, np.int32][rng.integers(3)]
    ids = rng.integers(0, n, (rows, count))
    return {"x": _values(rng, dtype, rows, n), "ids": ids, "v": _values(rng, dtype, rows, count)}


def _first(rng: np.random.Generator) -> Arrays:
    n, columns, count = _sizes(rng, 3)
    dtype = [np.float32, np.float64, np.int32, np.uint64][rng.integers(4)]
    ids = rng.integers(0, n, (count, columns)).astype(np.int32)
    return {"x": _values(rng, dtype, n, columns), "ids": ids, "v": _values(rng, dtype, count, columns)}


def _points(rng: np.random.Generator) -> Arrays:
    rows, columns, depth, count = _sizes(rng, 4)
    dtype = [np.float32, np.float64, np.int8][rng.integers(3)]
    at = np.stack([rng.integers(0, rows, count), rng.integers(0, columns, count)], 1).astype(np.int32)
    return {"x": _values(rng, dtype, rows, columns, depth), "at": at, "v": _values(rng, dtype, count, depth)}


def _table(rng: np.random.Generator) -> Arrays:
    n, rows, columns = _sizes(rng, 3)
    ids = rng.integers(0, n, (rows, columns))
    return {"x": _values(rng, np.float32, n), "ids": ids, "v": _values(rng, np.float32, rows, columns)}


def _segments(rng: np.random.Generator) -> Arrays:
    count, columns = _sizes(rng, 2)
    return {
        "x": _values(rng, np.float64, count, columns),
        "weight": _values(rng, np.float64, count) + 1,
        "ids": rng.integers(-2, 3, count),
    }


def _windows(rng: np.random.Generator) -> Arrays:
    windows, taps = _sizes(rng, 2)
    return {"x": _values(rng, [np.float32, np.float64][rng.integers(2)], windows, taps)}


def _some(rng: np.random.Generator) -> Arrays:
    n, count = _sizes(rng, 2)
    return {"x": _values(rng, np.float64, n)[:count], "ids": rng.integers(0, min(n, count), min(n, count))}


def _at(function: np.ufunc, x: Array, at: object, v: Array) -> Array:
    """What is computed in float32 is rounded once."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x.copy()
    function.at(wide, at, v.astype(wide.dtype))
    return wide.astype(x.dtype)


def _set(x: Array, ids: Array, v: Array) -> Array:
    y = x.copy()
    for i, row in zip(ids, v, strict=True):
        y[i] = row
    return y


def _means(x: Array, weight: Array, ids: Array, segments: int) -> Array:
    total, number = np.zeros((segments, x.shape[1])), np.zeros(segments)
    taken = (ids >= 0) & (weight > 0)
    np.add.at(total, ids[taken], x[taken] * weight[taken][:, None])
    np.add.at(number, ids[taken], weight[taken])
    return np.where(number[:, None] > 0, total / np.where(number > 0, number, 1)[:, None], 0)


def _folded(x: Array, reach: int) -> Array:
    y = np.ones(reach, x.dtype)
    for w, row in enumerate(x):
        for r, value in enumerate(row):
            if 0 <= w * 2 + r - 1 < reach:
                y[w * 2 + r - 1] += value
    return np.maximum(y, 0)


ROWS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.int64, np.uint8, np.uint32)
CASES: Mapping[str, Case] = {
    "AddRows": Case(_rows(*ROWS, low=-1), lambda x, ids, v: _at(np.add, x, ids, v), "ids", low=-1),
    "SetRows": Case(_rows(bool, np.float16, np.float32, np.int16), _set, "ids"),
    "MulAlong": Case(
        _along, lambda x, ids, v: _at(np.multiply, x, (np.arange(len(x))[:, None], ids), v), "ids",
        size=lambda arrays: arrays["x"].shape[1], axis=1,
    ),
    "MaxFirst": Case(_first, lambda x, ids, v: _at(np.maximum, x, (ids, np.arange(x.shape[1])), v), "ids"),
    "MinPoints": Case(_points, lambda x, at, v: _at(np.minimum, x, (at[:, 0], at[:, 1]), v), "at"),
    "Counts": Case(
        lambda rng: {"ids": rng.integers(0, 7, _sizes(rng, 1))}, lambda ids, bins: np.bincount(ids, minlength=bins),
        "ids", {"bins": 7}, size=lambda arrays: 7,
    ),
    "Segments": Case(_segments, _means, "ids", {"segments": 3}, size=lambda arrays: 3),
    "Folded": Case(_windows, _folded, None, {"reach": 12}),
    "Flat": Case(_table, lambda x, ids, v: _at(np.add, x, ids, v), "ids"),
    "Scalar": Case(_some, lambda x, ids: np.sum(x[ids]), "ids"),
}  # fmt: skip

CELLS = [(name, number) for name in CASES for number in range(2)]


def _drawn(name: str, number: int) -> tuple[Case, Arrays, np.random.Generator]:
    print(f"OPGEN_TEST_SEED={SEED}: {name}, {number}")
    rng = np.random.default_rng([SEED, sorted(CASES).index(name), number])
    case = CASES[name]
    return case, case.inputs(rng), rng


def _assert_right(case: Case, found: object, arrays: Arrays) -> None:
    right = np.asarray(case.right(**arrays, **case.attrs))
    given = np.asarray(found)
    assert given.dtype == right.dtype
    if right.dtype == np.float64 or given.ndim == 0:  # numpy sums in pairs, or divides otherwise
        np.testing.assert_allclose(given, right, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(given, right)


def _spoil(case: Case, arrays: Arrays, rng: np.random.Generator) -> tuple[Arrays, int, int]:
    """The inputs with one wrong number, that number, and the size of the dimension."""
    assert case.spoilt is not None
    wrong = arrays[case.spoilt].copy()
    size = case.size(arrays)
    given = int(rng.choice([size, size + 5, *([] if "weight" in arrays else [-1 + case.low * size])]))
    place = tuple(int(rng.integers(n)) for n in wrong.shape)
    wrong[(place[0], 0) if case.spoilt == "at" else place] = given
    if "weight" in arrays:
        arrays = {**arrays, "weight": np.abs(arrays["weight"]) + 1}
    return {**arrays, case.spoilt: wrong}, given, size


def _kernel(name: str, arrays: Arrays) -> tuple[Kernel, dict[str, int | float]]:
    """The generic kernel of a call, and its parameters."""
    module, op = spec(UPDATES), spec(UPDATES).op(name)
    types = {
        v.name: next(str(arrays[t.name].dtype) for t in op.tensors if t.dtype == v.name) for v in op.type_variables
    }
    lowered = lower(module, op, Variant(types, {}))
    call = solve(op, module, {n: a.shape for n, a in arrays.items()}, {}, dict(CASES[name].attrs))
    values = [evaluate(a, call) for a in lowered.arguments]
    return lowered.kernel, {p.name: v for p, v in zip(lowered.kernel.parameters, values, strict=True)}


def _integers(kernel: Kernel, parameters: Mapping[str, int | float]) -> dict[str, int]:
    return {p.name: int(parameters[p.name]) for p in kernel.parameters}


@pytest.mark.parametrize(("name", "number"), CELLS)
def test_calls(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case, arrays, rng = _drawn(name, number)
    op = spec(UPDATES).op(name)
    for policy in ("always", "never"):
        monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
        function = getattr(opgen.load(UPDATES), op.function_name)
        _assert_right(case, function(**arrays, **case.attrs), arrays)
        if case.spoilt is None:
            continue
        wrong, given, size = _spoil(case, arrays, rng)
        out = np.full_like(function(**arrays, **case.attrs), 3)
        with pytest.raises(ArgumentValueError) as refused:
            function(**wrong, **case.attrs, out=out)
        message = str(refused.value)
        assert message.startswith(f"{name}: argument '{case.spoilt}': expected integers from {case.low * size} to ")
        assert message.endswith(f"has {size}), given {given}")
        assert (out == np.full_like(out, 3)).all(), "something was written"


@pytest.mark.parametrize(("name", "number"), [(n, k) for n, k in CELLS if k < 1])
def test_loop_ir(name: str, number: int) -> None:
    """The interpreter, on the kernel as lowered and as scheduled for a CPU, generic and bound; all writes inside."""
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
                wrong, _, size = _spoil(case, arrays, rng)
                with pytest.raises(CheckFailed) as failed:
                    interpret(k, wrong, left)
                assert not 0 <= failed.value.value < size


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
    library, op = Library(spec(UPDATES), built(UPDATES)), spec(UPDATES).op(name)
    right = getattr(generated(UPDATES), op.function_name)(**arrays, **case.attrs)
    result = np.full_like(right, 3)
    given = [of(arrays[i.name]) for i in op.inputs]
    assert library.run(op, given, dict(case.attrs), [of(result)]) == OK, library.error()
    np.testing.assert_array_equal(result, right)
    if case.spoilt is not None:
        wrong, _, _ = _spoil(case, arrays, rng)
        result[...] = 3
        assert library.run(op, [of(wrong[i.name]) for i in op.inputs], dict(case.attrs), [of(result)]) == INVALID
        with pytest.raises(ArgumentValueError) as refused:
            getattr(generated(UPDATES), op.function_name)(**wrong, **case.attrs)
        assert library.error() == str(refused.value)
        assert (result == np.full_like(result, 3)).all()


def test_nothing_to_update() -> None:
    """An empty table: fine if nothing is to be written into it."""
    add = generated(UPDATES).add_rows
    empty = np.zeros((0, 3), np.float32)
    assert add(empty, np.zeros(0, np.int32), empty).shape == (0, 3)
    with pytest.raises(ArgumentValueError) as refused:
        add(empty, np.zeros(1, np.int32), np.zeros((1, 3), np.float32))
    expected = "no elements, as dimension 0 of 'y' is empty"
    assert str(refused.value) == f"AddRows: argument 'ids': expected {expected}, given 0"
    rows = np.ones((2, 0), np.float32)
    assert add(rows, np.zeros(5, np.int32), np.zeros((5, 0), np.float32)).shape == (2, 0)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits however many threads there are: updates are in order."""
    monkeypatch.setenv("OPGEN_NUM_THREADS", str(threads))
    monkeypatch.setenv("OPGEN_SPECIALIZE", "always")
    rng = np.random.default_rng(SEED)
    x, v = _values(rng, np.float32, 11, 300), _values(rng, np.float32, 4000, 300)
    ids = rng.integers(0, 11, 4000)
    np.testing.assert_array_equal(generated(UPDATES).add_rows(x, ids, v), _at(np.add, x, ids, v))


def test_threads_have_columns_of_their_own() -> None:
    """Rows that several updates change are shared by columns: of each element the updates stay in order."""
    arrays = {"x": np.zeros((5, 64), np.float32), "ids": np.zeros(9, np.int64), "v": np.ones((9, 64), np.float32)}
    kernel, parameters = _kernel("AddRows", arrays)
    fast = scheduled(simplify(bind(kernel, _integers(kernel, parameters))), machine=replace(typical(64), cores=2))[1]
    around = next(s for s in loops_in(fast.body) if s.kind == "parallel" and s.var.startswith("y_at"))
    assert [s.kind for s in loops_in(around)] == ["parallel", "serial", "serial", "vector"]
    assert (interpret(fast, arrays, {})["y"] == [[9.0] * 64] + [[0.0] * 64] * 4).all()


def test_updates_stay_in_order() -> None:
    """A loop over what tells the places moves inside one that owns elements, and no other."""
    flat, _ = _kernel("Flat", _table(np.random.default_rng(SEED)))
    with pytest.raises(ScheduleError, match="the iterations of 'y_at_i' are not known to be independent"):
        reorder(flat, ["y_at_j", "y_at_i"])
    rows, _ = _kernel("AddRows", _rows(np.float32)(np.random.default_rng(SEED)))
    moved = reorder(rows, ["y_at_j_", "y_at_i"])
    assert [s.var for s in loops_in(moved.body)][-2:] == ["y_at_j_", "y_at_i"]
