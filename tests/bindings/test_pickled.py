"""Functions of specs, gradients and prepared calls go to other processes, and are copied."""

from __future__ import annotations

import copy
import gc
import inspect
import multiprocessing
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opgen
from opgen.diagnostics import Diagnostic, DiagnosticError, UserError
from opgen.ops import nn, onnx
from opgen.schedule.errors import ScheduleError
from tests.bindings.modules import OPS, generated

SPEC = """
op Blend {
  type T in {float32, float64}
  input x: T[n]
  input y: T[n]
  attr weight: float = 0.25
  output z: T[n]
  z[i] = weight * x[i] * x[i] + (1.0 - weight) * y[i]
}
op live { input place: float32[n] output y: float32[n] output z: float32[n] y[i] = 2.0 * place[i] z[i] = place[i] }
"""
X, Y, G = np.array([1.0, 2, 3]), np.array([4.0, 5, 6]), np.array([1.0, 10, 100])
IMAGE, TAPS = np.ones((1, 4, 4, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """A process that shares nothing with this one."""
    with multiprocessing.get_context("spawn").Pool(1) as started:
        yield started


@pytest.fixture
def mine(tmp_path: Path) -> Any:
    """The module of a user's spec, which has a name that modules cannot have."""
    path = tmp_path / "a %2E b.c.op"
    path.write_text(SPEC, encoding="utf-8")
    return opgen.load(path)


def called(function: Callable[..., Any], *given: object) -> Any:
    return function(*given)


def blended(module: Any, *given: object) -> Any:
    return module.blend(*given)


def agree(pool: Pool, function: Callable[..., Any], *given: object) -> None:
    """Compare the results of a function with those of its copies, here and in another process."""
    expected = function(*given)
    for found in (
        pool.apply(called, (function, *given)),
        pool.starmap(called, [(function, *given)] * 2)[1],
        pickle.loads(pickle.dumps(function))(*given),
        copy.deepcopy(function)(*given),
    ):
        assert type(found) is type(expected)
        for one, other in zip(_all(found), _all(expected), strict=True):
            np.testing.assert_array_equal(one, other)


def _all(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_functions_of_a_loaded_spec(pool: Pool, mine: Any) -> None:
    agree(pool, mine.blend, X, Y)
    agree(pool, mine.live, X.astype(np.float32))
    agree(pool, mine.prepare.blend(X, Y), X, Y)
    agree(pool, mine.prepare.live(X.astype(np.float32)), X.astype(np.float32))
    assert pool.apply(mine.raw_ops.Blend, (), {"x": X, "y": Y}).tolist() == mine.blend(X, Y).tolist()
    assert pool.apply(blended, (mine, X, Y)).tolist() == mine.blend(X, Y).tolist()
    assert copy.deepcopy(mine) is pickle.loads(pickle.dumps(mine)) is mine
    assert pickle.loads(pickle.dumps(mine.blend)) is mine.blend


def test_gradients(pool: Pool, mine: Any) -> None:
    by_x = opgen.gradient(mine.blend, wrt="x")
    agree(pool, by_x, X, Y, G)
    agree(pool, opgen.gradient(mine.blend, wrt=["x", "y"]), X, Y, G)
    agree(pool, opgen.gradient(by_x, wrt="x"), X, Y, G, X)
    agree(pool, opgen.gradient(opgen.compile(mine.blend), wrt=["y", "x"]), X, Y)
    agree(pool, opgen.gradient(nn.conv2d, wrt="filter"), IMAGE, TAPS, IMAGE, [1, 1, 1, 1], "SAME")
    agree(pool, opgen.gradient(nn.conv2d, wrt=("filter", "input")), IMAGE, TAPS, IMAGE, [1, 1, 1, 1], "SAME")


def test_functions_of_generated_modules(pool: Pool) -> None:
    agree(pool, nn.conv2d, IMAGE, TAPS, [1, 1, 1, 1], "SAME")
    agree(pool, nn.prepare.conv2d(IMAGE, TAPS, [1, 1, 1, 1], "SAME"), IMAGE, TAPS)
    agree(pool, onnx.transpose, IMAGE)
    agree(pool, onnx.prepare.transpose(IMAGE, perm=[3, 0, 2, 1]), IMAGE)


def test_prepared_calls_keep_the_algorithms_that_were_asked_for() -> None:
    image, taps = np.random.default_rng(5).random((1, 16, 16, 16), np.float32), np.ones((3, 3, 16, 16), np.float32)
    with opgen.algorithms("off"):
        prepared = nn.prepare.conv2d(image, taps, [1, 1, 1, 1], "SAME")
    again = pickle.loads(pickle.dumps(prepared))
    assert again._plan is prepared._plan


def test_a_spec_that_comes_with_opgen_is_found_by_its_name(pool: Pool) -> None:
    agree(pool, opgen.load("nn_ops.op").conv2d, IMAGE, TAPS, [1, 1, 1, 1], "SAME")


def test_what_is_pickled_is_small() -> None:
    x = np.zeros((1 << 20,), np.float32)
    assert len(pickle.dumps(onnx.prepare.relu(x))) < 4000


def test_a_spec_that_changed_is_told_by_the_call(pool: Pool, tmp_path: Path) -> None:
    path, imported = tmp_path / "mine.op", tmp_path / "half.op"
    imported.write_text("function halved(x) = 0.5 * x\n", encoding="utf-8")
    path.write_text(
        'import "half.op"\nop Small { input x: float32[n] output y: float32[n] y[i] = halved(x[i]) }\n',
        encoding="utf-8",
    )
    mine = opgen.load(path)
    x = X.astype(np.float32)
    gradient = opgen.gradient(mine.small, wrt=["x"])
    again = opgen.load(path)
    imported.write_text("function halved(x) = 0.25 * x\n", encoding="utf-8")
    for function, given in ((mine.small, (x,)), (gradient, (x, x)), (mine.prepare.small(x), (x,))):
        with pytest.raises(UserError, match=r"mine\.op' is not as it was when its functions were pickled: load it"):
            pool.apply(called, (function, *given))
    path.unlink()
    with pytest.raises(UserError, match=r"cannot make in this process .* cannot read"):
        pool.apply(called, (again.small, x))


def test_what_cannot_be_pickled_says_why() -> None:
    alone = generated(OPS)
    with pytest.raises(TypeError, match=r"what is prepared of .* cannot be pickled: no module that can be imported"):
        pickle.dumps(alone.prepare.conv2d(IMAGE, TAPS, [1, 1, 1, 1], "SAME"))


def test_a_module_that_nothing_refers_to_is_given_back(mine: Any, tmp_path: Path) -> None:
    loaded = opgen.load(next(tmp_path.glob("*.op")))
    known, blend = weakref.ref(loaded), loaded.blend
    del loaded
    gc.collect()
    assert pickle.loads(pickle.dumps(opgen.load(next(tmp_path.glob("*.op"))).blend))(X, Y).tolist()
    assert known() is not None
    del blend
    gc.collect()
    assert known() is None


def test_what_is_pickled_looks_as_before(mine: Any) -> None:
    before = repr(mine), inspect.getsource(mine.blend)
    pickle.dumps(mine.blend)
    assert (repr(mine), inspect.getsource(mine.blend)) == before
    assert inspect.getmodule(mine.blend) is mine


def test_a_process_without_opgen_loaded_reads_them(mine: Any, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(pickle.dumps([mine.blend, opgen.gradient(mine.blend, wrt="x")]))
    code = (
        "import pickle, sys; blend, by_x = pickle.load(open(sys.argv[1], 'rb')); print(blend.__name__, by_x.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "f"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["blend", "blend_gradient_x"]


def test_errors_come_back_as_they_were() -> None:
    for error in (
        UserError("no"),
        DiagnosticError([Diagnostic("S001", "no"), Diagnostic("S002", "never", help="try")]),
        ScheduleError("no", "try"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
