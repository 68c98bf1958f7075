"""Sizes that are worked out of elements, by every path.

Shapes and values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.bindings.c.build import chosen
from opgen.diagnostics.calls import ArgumentError
from opgen.loop.interpret import interpret
from opgen.loop.verify import verify
from opgen.lower import Variant, lower
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.call.recording import CaptureError
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import compile_emulated
from opgen.schedule.default import scheduled
from opgen.spec.call.shapes import evaluate, solve
from opgen.spec.loading import load_text
from opgen.spec.syntax.format import format_source
from tests.bindings.c.library import OK, Library, built, of
from tests.bindings.modules import ROOT, generated, spec

Array = npt.NDArray[Any]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
COUNTED = ROOT / "tests" / "specs" / "counted.op"


def _drawn(n: int, dtype: str = "float32") -> Array:
    print(f"OPGEN_TEST_SEED={SEED}: {n}, {dtype}")
    return np.random.default_rng([SEED, n]).integers(-9, 9, n).astype(dtype)


@pytest.mark.parametrize(("dtype", "policy"), [("float16", "never"), ("float32", "always"), ("int32", "never")])
def test_a_function_gives_arrays_of_the_right_size(dtype: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
    ops = opgen.load(COUNTED)
    for n in (0, 7, 300):
        x = _drawn(n, dtype)
        y, places = ops.above(x, limit=2, scale=3)
        assert np.array_equal(places, np.flatnonzero(x > 2))
        assert np.array_equal(y, x[x > 2] * 3)
        assert y.dtype == x.dtype
        assert ops.above_count(x, limit=2) == len(y)
        if len(y):
            assert np.array_equal(ops.above(x, limit=2, found=1)[0], x[x > 2][:1])


def test_a_generic_op_too() -> None:
    ops = generated(COUNTED)
    for shape in ((), (4,), (3, 5), (2, 3, 4), (2, 0, 3)):
        x = _drawn(int(np.prod(shape))).reshape(shape)
        assert np.array_equal(ops.above_of_rank(x, limit=1), x[x > 1])
    assert int(ops.above_of_rank_count(np.float32([[1, 2], [3, -4]]))) == 3


def test_what_goes_wrong_is_said() -> None:
    ops = generated(COUNTED)
    with pytest.raises(ArgumentError, match=r"Above: argument 'found': expected a 64-bit integer >= 0, given -1"):
        ops.above(_drawn(3), found=-1)
    with pytest.raises(ArgumentError, match=r"argument 'found': expected a 64-bit integer >= 0, given nothing"):
        ops.prepare.above(_drawn(3))
    with pytest.raises(CaptureError, match="Above: the size 'found' follows from elements"):
        opgen.compile(lambda x: ops.above(x)[0])(_drawn(3))


def test_loop_ir_and_cuda() -> None:
    """The interpreter on both ops, as lowered and as scheduled; CUDA C, run on the CPU."""
    module, x = spec(COUNTED), _drawn(40)
    right = {"AboveCount": (np.sum(x > 1),), "Above": (x[x > 1], np.flatnonzero(x > 1))}
    for name, wanted in right.items():
        op = module.op(name)
        attrs = {"limit": 1} if name == "AboveCount" else {"limit": 1, "scale": 1, "found": int(np.sum(x > 1))}
        lowered = lower(module, op, Variant({"T": "float32"}, {}))
        call = solve(op, module, {"x": x.shape}, {}, attrs)
        numbers = [int(evaluate(a, call)) for a in lowered.arguments]
        values = {p.name: v for p, v in zip(lowered.kernel.parameters, numbers, strict=True)}
        verify(lowered.kernel, bounds=True)
        fast = legalize(scheduled(simplify(lowered.kernel))[1])
        found = [interpret(k, {"x": x}, values) for k in (lowered.kernel, fast)]
        if emulation.compiler() is not None:
            (program,) = compile_emulated([legalize(scheduled(simplify(lowered.kernel), "cuda")[1])])
            found.append(program({"x": x}, values))
        for results in found:
            for result, expected in zip(results.values(), wanted, strict=True):
                np.testing.assert_array_equal(result, expected)


def test_c_asks_for_the_size_first() -> None:
    module = chosen(spec(COUNTED), ("Above", "AboveCount"))
    library = Library(module, built(COUNTED, None, ("Above", "AboveCount")))
    x, count = _drawn(60), np.zeros((), np.int64)
    assert library.run(module.op("AboveCount"), [of(x)], {"limit": 3}, [of(count)]) == OK, library.error()
    assert int(count) == np.sum(x > 3)
    y, places = np.zeros(int(count), np.float32), np.zeros(int(count), np.int64)
    attrs = {"limit": 3, "scale": 2, "found": int(count)}
    assert library.run(module.op("Above"), [of(x)], attrs, [of(y), of(places)]) == OK, library.error()
    assert np.array_equal(y, x[x > 3] * 2)
    assert np.array_equal(places, np.flatnonzero(x > 3))


def test_elements_of_what_is_computed_step_by_step_at_places_that_are_values() -> None:
    ops = generated(COUNTED)
    x, ids = _drawn(9, "int64"), np.array([8, 0, 3, 3], np.int64)
    assert np.array_equal(ops.running_at(x, ids), np.cumsum(x)[ids])
    back = np.cumsum(x[::-1])[::-1]
    assert np.array_equal(ops.running_at_backward(x, [8, 0, -1, 9, 4]), [back[8], back[0], -1, -1, back[4]])
    with pytest.raises(ArgumentError, match=r"expected integers from 0 to 8 .*given 9"):
        ops.running_at(x, [9])


def test_the_layout_of_a_count() -> None:
    text = "op A { input x: int32[n] count k=sum[i](int64(x[i])) output y: int32[k] y[j] = 0 }"
    assert "  count k = sum[i](int64(x[i]))\n" in format_source(text)
    assert [o.name for o in load_text(text).ops] == ["ACount", "A"]
