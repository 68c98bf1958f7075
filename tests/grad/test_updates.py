"""Gradients of updates, and of reads at elements: against central differences in float64, first and second.

Values are drawn from OPGEN_TEST_SEED (0); indices stand several times, and differences cross no kink.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.diagnostics import UserError
from opgen.diagnostics.calls import ArgumentValueError
from opgen.grad import gradient, load_text
from opgen.spec.unparse import write_op
from tests.bindings.modules import ROOT, generated

Array = npt.NDArray[np.float64]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
UPDATES = generated(ROOT / "tests" / "specs" / "updates.op")
ELEMENTS = generated(ROOT / "tests" / "specs" / "elements.op")
STEP = 1e-6

SPEC = '''
op Changed {
  """A table changed in four ways, one after the other, and read at elements again."""
  type T in {float32, float64}
  input x: T[n, columns] """The table."""
  input ids: int64[count] """Which rows."""
  input v: T[count, columns] """The changes."""
  output y: T[count, columns] """Rows of what comes of it."""
  let a[p, j] = x[p, j] * x[p, j]
  a[ids[i], j] mul= sum[k](v[k, j]) * v[i, j] if ids[i] != 1
  a[ids[i], j] add= x[ids[i], j] * v[i, j]
  a[ids[i], columns - 1 - j] max= sin(v[i, j])
  a[ids[count - 1 - i], 2 * j] set= v[i, j] * v[i, j] if ids[i] > 2
  y[i, j] = a[ids[i], j] * (a[ids[i] + 1, j] else 3)
}

op Zeros {
  """Products among whose factors may be 0."""
  type T in {float64}
  input x: T[n] """The first factors."""
  input ids: int64[count] """Which is multiplied."""
  input v: T[count] """The factors."""
  output y: T[n] """The products."""
  y[p] = x[p]
  y[ids[i]] mul= v[i]
}
'''

GUARDED = '''
op CrossEntropy {
  """Of scores and their own classes, but those that are ignored."""
  type T in {float64}
  input x: T[n, c] """Scores."""
  input t: int64[n] """Classes."""
  output y: T[n] """Losses."""
  y[i] = if t[i] != -100 then log(sum[k](exp(x[i, k]))) - x[i, t[i]] else 0
}

op Nested {
  """A read within a sum within a choice."""
  type T in {float64}
  input x: T[n, c] """Scores."""
  input t: int64[n] """Classes."""
  output y: T[n] """Losses."""
  y[i] = if t[i] >= 0 then log(sum[k](exp(x[i, k] - x[i, t[i]]))) else 0
}

op Weighted {
  """The mean of what counts."""
  type T in {float64}
  input x: T[n, c] """Scores."""
  input w: T[c] """Weights."""
  input t: int64[n] """Classes."""
  output y: T[] """The mean."""
  let all[] = sum[i](if t[i] >= 0 then w[t[i]] else 0)
  y[] = sum[i](if t[i] >= 0 then w[t[i]] * x[i, t[i]] * x[i, t[i]] else 0) / all[]
}

op Flagged {
  """A condition in a tensor, and a read of what is computed."""
  type T in {float64}
  input x: T[n, c] """Scores."""
  input t: int64[n] """Classes."""
  output y: T[n] """Exponentials."""
  let counts[i] = t[i] != -100
  let e[i, k] = exp(x[i, k])
  y[i] = if not counts[i] then (x[i, 0] else 0) * 2 else e[i, t[i]] * e[i, c - 1 - t[i]]
}

op Best {
  """The largest of some."""
  type T in {float64}
  input x: T[n, c] """Scores."""
  input t: int64[n] """Classes."""
  output y: T[n] """The largest."""
  y[i] = max[j < n](if t[j] >= 0 then sin(x[i, t[j]]) else -9)
}
'''


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("specs") / "guarded.op"
    path.write_text(GUARDED)
    return opgen.load(path)


@pytest.mark.parametrize("name", ["cross_entropy", "nested", "weighted", "flagged", "best"])
def test_a_read_that_is_not_taken_may_be_anywhere(guarded: ModuleType, name: str) -> None:
    """-100 is the class of what is ignored; one that is taken and outside is refused, by gradients too."""
    rng = np.random.default_rng(SEED)
    function = getattr(guarded, name)
    arguments: dict[str, npt.NDArray[np.generic]] = {"x": rng.standard_normal((6, 4))}
    if name == "weighted":
        arguments["w"] = rng.random(4) + 0.5
    arguments["t"] = np.array([0, -100, 3, 1, 3, -100])
    for wrt in [k for k in arguments if k != "t"]:
        _assert_slopes(function, arguments, wrt)
        seed = np.ones(np.shape(function(**arguments)))
        with pytest.raises(ArgumentValueError, match="argument 't': expected integers"):
            opgen.gradient(function, wrt=wrt)(**{**arguments, "t": np.array([0, 1, 2, 3, 4, 0])}, grad_y=seed)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("specs") / "changed.op"
    path.write_text(SPEC)
    return opgen.load(path)


def _assert_slopes(function: Callable[..., object], arguments: dict[str, npt.NDArray[np.generic]], wrt: str) -> None:
    """The gradient with respect to one argument, in a random direction."""
    print(f"OPGEN_TEST_SEED={SEED}")
    rng = np.random.default_rng(SEED)
    result = np.asarray(function(**arguments))
    seed = rng.standard_normal(result.shape)
    found = np.asarray(opgen.gradient(function, wrt=wrt)(*arguments.values(), seed))
    way = rng.standard_normal(found.shape)
    ends = [np.asarray(function(**{**arguments, wrt: arguments[wrt] + h * way})) for h in (STEP, -STEP)]
    slope = np.sum(seed * (ends[0] - ends[1])) / (2 * STEP)
    np.testing.assert_allclose(np.sum(found * way), slope, rtol=1e-6, atol=1e-6)


def _arguments(name: str) -> dict[str, npt.NDArray[np.generic]]:
    rng = np.random.default_rng(SEED)
    x, v = rng.standard_normal((5, 4)), rng.standard_normal((7, 4))
    ids = rng.integers(0, 5, 7)
    return {
        "add_rows": {"x": x, "ids": ids, "v": v},
        "mul_along": {"x": x.T.copy(), "ids": rng.integers(0, 5, (4, 7)), "v": v.T.copy()},
        "max_first": {"x": x, "ids": rng.integers(0, 5, (7, 4)).astype(np.int32), "v": v},
        "min_points": {
            "x": rng.standard_normal((5, 3, 4)), "at": rng.integers(0, 3, (7, 2)).astype(np.int32), "v": v
        },
        "segments": {"x": v, "weight": rng.standard_normal(7) + 0.5, "ids": rng.integers(-1, 3, 7)},
        "folded": {"x": v},
        "scalar": {"x": v[:, 0].copy(), "ids": ids},
    }[name]  # fmt: skip


CELLS = [
    (name, wrt)
    for name in ("add_rows", "mul_along", "max_first", "min_points", "segments", "folded", "scalar")
    for wrt in _arguments(name)
    if wrt in ("x", "v", "weight")
]


@pytest.mark.parametrize(("name", "wrt"), CELLS)
def test_updates(name: str, wrt: str) -> None:
    _assert_slopes(getattr(UPDATES, name), _arguments(name), wrt)


@pytest.mark.parametrize("wrt", ["x", "v"])
def test_a_chain_of_updates(changed: ModuleType, wrt: str) -> None:
    rng = np.random.default_rng(SEED)
    arguments = {"x": rng.standard_normal((5, 4)), "ids": rng.integers(0, 5, 7), "v": rng.standard_normal((7, 4))}
    _assert_slopes(changed.changed, arguments, wrt)


@pytest.mark.parametrize("wrt", ["x", "v"])
def test_products_with_zeros(changed: ModuleType, wrt: str) -> None:
    """One factor of 0, and two: what is multiplied is not divided out."""
    v = np.array([0.0, 2.0, 3.0, 0.0, 0.0, 5.0])
    arguments = {"x": np.array([1.5, 2.5, 0.0, 7.0]), "ids": np.array([0, 0, 1, 1, 1, 2]), "v": v}
    _assert_slopes(changed.zeros, arguments, wrt)


@pytest.mark.parametrize("wrt", ["x", "v"])
@pytest.mark.parametrize("of", ["x", "v"])
def test_second_derivatives_of_products_with_zeros(changed: ModuleType, of: str, wrt: str) -> None:
    v = np.array([0.0, 2.0, 3.0, 0.0, 5.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0])
    ids = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3])
    arguments = {"x": np.array([1.5, 0.0, 2.5, 7.0]), "ids": ids, "v": v, "grad_y": np.array([1.0, -2.0, 3.0, 4.0])}
    _assert_slopes(opgen.gradient(changed.zeros, wrt=of), arguments, wrt)


def test_a_third_derivative_of_products_is_refused(changed: ModuleType) -> None:
    """It would be wrong where several factors are 0.  By the seed, in which all is linear, there is one."""
    second = opgen.gradient(opgen.gradient(changed.zeros, wrt="v"), wrt="x")
    ids, v = np.array([0, 0, 0]), np.array([2.0, 0.0, 5.0])
    given = (np.array([3.0]), ids, v, np.array([1.0]), np.array([1.0, 1.0, 1.0]))
    by_seed = opgen.gradient(second, wrt="grad_y")(*given, np.array([1.0]))
    np.testing.assert_array_equal(by_seed, [10.0])
    for wrt in ("x", "v"):
        with pytest.raises(UserError, match=r"'ZerosGradient_vGradient_x'.*`mul=`.*no derivative of order 3"):
            opgen.gradient(second, wrt=wrt)


def test_a_third_derivative_is_refused_of_a_second_one_that_was_written_down() -> None:
    module = load_text(SPEC, "zeros.op")
    second = gradient(module, gradient(module, module.op("Zeros"), "v"), "x")
    written = load_text(write_op(module, second), "written.op")
    with pytest.raises(UserError, match="no derivative of order 3"):
        gradient(written, written.op(second.name), "v")


def test_the_last_set_counts() -> None:
    x, v = np.zeros((3, 2), np.float32), np.ones((3, 2), np.float32)
    ids, seed = np.array([1, 0, 1]), np.arange(6, dtype=np.float32).reshape(3, 2)
    by_value = opgen.gradient(UPDATES.set_rows, wrt="v")(x, ids, v, seed)
    np.testing.assert_array_equal(by_value, [[0, 0], [0, 1], [2, 3]])
    by_table = opgen.gradient(UPDATES.set_rows, wrt="x")(x, ids, v, seed)
    np.testing.assert_array_equal(by_table, [[0, 0], [0, 0], [4, 5]])


def test_second_derivatives() -> None:
    """The gradient of a gather is an update, whose gradient is a gather."""
    arguments = _arguments("mul_along")
    by_v = opgen.gradient(UPDATES.mul_along, wrt="v")
    shape = np.shape(UPDATES.mul_along(**arguments))
    given = {**arguments, "grad_y": np.random.default_rng(SEED).standard_normal(shape)}
    for wrt in ("x", "v", "grad_y"):
        _assert_slopes(by_v, given, wrt)


@pytest.mark.parametrize("name", ["embedded", "taken", "along", "points", "filled", "bag", "masked"])
def test_reads_at_elements(name: str) -> None:
    """A gather's gradient is a scatter: what is read several times gains several times, in float32."""
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((5, 4)).astype(np.float32)
    ids = rng.integers(0, 4, (5, 7))
    given: dict[str, tuple[npt.NDArray[np.generic], ...]] = {
        "embedded": (x, ids[0]), "taken": (x[None], ids[0] - 2), "along": (x, ids - 4),
        "points": (x[None], np.stack([0 * ids[0], ids[0]], 1).astype(np.int32)), "filled": (x, ids[0] - 1),
        "bag": (x, ids), "masked": (x[0], ids[0], ids[0] > 1),
    }  # fmt: skip
    function = getattr(ELEMENTS, name)
    seed = rng.standard_normal(function(*given[name]).shape).astype(np.float32)
    first = "table" if name in ("embedded", "bag") else "x"
    found = opgen.gradient(function, wrt=first)(*given[name], seed)
    way = rng.standard_normal(found.shape).astype(np.float32)
    table, *rest = given[name]
    difference = function((table + way).astype(np.float32), *rest) - function(table, *rest)  # it is linear
    np.testing.assert_allclose(np.sum(found * way), np.sum(seed * difference), rtol=1e-4, atol=1e-4)


def test_an_index_outside() -> None:
    """Gradients look at the indices before they write, too."""
    table, seed = np.ones((5, 2), np.float32), np.ones((2, 2), np.float32)
    with pytest.raises(ArgumentValueError, match="argument 'ids': expected integers from 0 to 4"):
        opgen.gradient(ELEMENTS.embedded, wrt="table")(table, np.array([0, 5]), seed)
    with pytest.raises(ArgumentValueError, match="argument 'ids': expected integers from -5 to 4"):
        opgen.gradient(UPDATES.add_rows, wrt="v")(table, np.array([0, -6]), seed, table)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_captured_functions(reduction: str) -> None:
    """ONNX's scatters and gathers between other ops: a program of its own makes the gradient."""
    ops = importlib.import_module("generated.onnx_ops")
    rng = np.random.default_rng(SEED)
    rows = rng.permutation(5)[:4] if reduction == "none" else rng.integers(-5, 5, 4)
    at = np.stack([rows, rng.integers(0, 3, 4)], 1)

    def total(x: Array, v: Array) -> Array:
        y = ops.scatter_nd(ops.mul(x, x), at, ops.sin(v), reduction=reduction)
        taken = ops.gather(y, rows[:3], axis=0)
        found: Array = ops.reduce_sum(ops.mul(ops.exp(y), y), keepdims=False) + ops.reduce_sum(taken, keepdims=False)
        return found

    x, v = rng.standard_normal((5, 3)), rng.standard_normal(4)
    for wrt, value in (("x", x), ("v", v)):
        way = rng.standard_normal(value.shape)
        found = opgen.gradient(opgen.compile(total), wrt=wrt)(x, v)
        ends = [total(**{"x": x, "v": v, wrt: value + h * way}) for h in (STEP, -STEP)]
        slope = (float(ends[0]) - float(ends[1])) / (2 * STEP)
        np.testing.assert_allclose(np.sum(np.asarray(found) * way), slope, rtol=1e-6, atol=1e-6)
