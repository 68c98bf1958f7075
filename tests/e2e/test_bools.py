"""Bool tensors as conditions, results and intermediates: in Python, C, C++ and CUDA C as numpy has them."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest

from opgen.loop.interpret import interpret
from opgen.passes.legalize import legalize
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import run_emulated
from opgen.schedule.default import scheduled
from tests.bindings.c.library import OK, Library, built, of
from tests.bindings.cpp.library import COMPILERS, Call, call_all
from tests.bindings.modules import ROOT, generated, spec
from tests.harness import Call as Lowered

Array = npt.NDArray[np.generic]
BOOLS = ROOT / "tests" / "specs" / "bools.op"
ROWS, COLUMNS = 5, 37


@functools.cache
def _case(name: str) -> tuple[dict[str, Array], dict[str, bool], dict[str, Array]]:
    """Inputs, attributes and the results that numpy gives for them."""
    rng = np.random.default_rng(len(name))
    a, b = rng.random((2, ROWS, COLUMNS)) < 0.5
    x = rng.integers(-2, 3, (ROWS, COLUMNS)).astype(np.float32)
    if name == "Pick":
        return {"chosen": a, "hidden": b[:1, 0], "x": x}, {}, {"y": np.where(a & ~b[0, 0], x, 0).astype(np.float32)}
    if name == "Logic":
        right = np.concatenate([(a | b)[:, 1:], np.ones((ROWS, 1), np.bool_)], axis=1)
        mixed = np.where(a, b, ~right)
        return {"a": a, "b": b}, {"flip": True}, {"same": a != b, "turned": a.T.copy(), "mixed": mixed}
    flag = b[0]
    flag[-1] = True
    following = np.concatenate([x[:, 1:], np.zeros((ROWS, 1), np.float32)], axis=1)
    total = np.where(flag, np.where(x > 0, x, following), 0).sum(1, dtype=np.float32)
    return {"flag": flag, "x": x}, {}, {"total": total, "any": (flag & (x != 0)).any(1)}


NAMES = ("Pick", "Logic", "Masked")


def _assert_right(name: str, found: Mapping[str, Array]) -> None:
    for result, right in _case(name)[2].items():
        assert found[result].dtype == right.dtype, result
        np.testing.assert_array_equal(found[result], right, err_msg=f"{name}: {result}")


@pytest.mark.parametrize("name", NAMES)
def test_python(name: str) -> None:
    arrays, attrs, right = _case(name)
    found = getattr(generated(BOOLS), name.lower())(**arrays, **attrs)
    _assert_right(name, dict(zip(right, found if len(right) > 1 else (found,), strict=True)))


@pytest.mark.parametrize("name", NAMES)
def test_c(name: str) -> None:
    arrays, attrs, right = _case(name)
    library, op = Library(spec(BOOLS), built(BOOLS)), spec(BOOLS).op(name)
    results = {r: np.full_like(value, 1) for r, value in right.items()}
    status = library.run(op, [of(arrays[i.name]) for i in op.inputs], attrs, [of(r) for r in results.values()])
    assert status == OK, library.error()
    _assert_right(name, results)


@pytest.mark.skipif("g++" not in COMPILERS, reason="needs g++")
@pytest.mark.parametrize("name", NAMES)
def test_cpp(name: str) -> None:
    arrays, attrs, right = _case(name)
    op = spec(BOOLS).op(name)
    (answer,) = call_all(BOOLS, "eager", [Call(op, tuple(arrays[i.name] for i in op.inputs), attrs)])
    assert not answer.message
    _assert_right(name, dict(zip(right, answer.results, strict=True)))


@pytest.mark.parametrize("name", NAMES)
def test_loop_ir_and_cuda(name: str) -> None:
    arrays, attrs, _ = _case(name)
    shapes = {n: a.shape for n, a in arrays.items()}
    kernel, parameters = Lowered(spec(BOOLS), spec(BOOLS).op(name), shapes, attrs, dtype="float32").kernel()
    _assert_right(name, interpret(kernel, arrays, parameters))
    if emulation.compiler() is not None:
        fast = legalize(scheduled(kernel, "cuda")[1])
        _assert_right(name, run_emulated(fast, arrays, parameters))
