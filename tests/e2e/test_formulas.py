"""Functions of one's own in plain and generic ops, of elements, sizes and indices, and in files that import them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

import opgen
from opgen.loop.interpret import interpret
from opgen.passes.legalize import legalize
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import run_emulated
from opgen.schedule.default import scheduled
from tests.bindings.modules import ROOT, generated, spec
from tests.harness import Call

FORMULAS = ROOT / "tests" / "specs" / "formulas.op"
X = np.linspace(-3, 3, 9)


def _gelu(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    value: npt.NDArray[np.float64] = x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return value


def test_by_every_path() -> None:
    kernel, parameters = Call(spec(FORMULAS), spec(FORMULAS).op("Activate"), {"x": X.shape}, dtype="float64").kernel()
    names = ("smooth", "bent", "near")
    runs = [dict(zip(names, generated(FORMULAS).activate(X), strict=True)), interpret(kernel, {"x": X}, parameters)]
    if emulation.compiler() is not None:
        runs.append(run_emulated(legalize(scheduled(kernel, "cuda")[1]), {"x": X}, parameters))
    gelu = _gelu(X)
    for found in runs:
        np.testing.assert_allclose(found["smooth"], gelu, rtol=1e-13)
        np.testing.assert_allclose(found["bent"], np.where(gelu > 0, gelu, gelu / 2), rtol=1e-13)
        np.testing.assert_array_equal(found["near"], np.clip(np.concatenate([X[:1], X[:-1]]), -1, 1))


def test_the_derivative_is_derived() -> None:
    zeros, step = np.zeros_like(X), 1e-6
    gradient = opgen.gradient(generated(FORMULAS).activate, wrt="x")
    found = gradient(X, grad_smooth=np.ones_like(X), grad_bent=zeros, grad_near=zeros)
    np.testing.assert_allclose(found, (_gelu(X + step) - _gelu(X - step)) / (2 * step), atol=1e-8)


def test_in_generic_ops_and_of_sizes() -> None:
    ops, x = generated(FORMULAS), np.arange(20, dtype=np.uint8).reshape(4, 5)
    assert np.array_equal(ops.every(x), x % 8)
    assert ops.every(np.int64(-1)) == 7
    for n in (0, 2, 5):
        assert ops.front(np.arange(n, dtype=np.float32)).tolist() == list(range(min(n, 3)))


def test_of_an_imported_file(tmp_path: Path) -> None:
    (tmp_path / "shared.op").write_text("function cube(x) = x * x * x\n")
    (tmp_path / "own.op").write_text(
        'import "shared.op"\n\nop Cubes {\n  type T in {float32}\n  input x: T[n]\n  output y: T[n]\n'
        "  y[i] = cube(x[i] + 1)\n}\n"
    )
    ops = opgen.load(tmp_path / "own.op")
    assert ops.cubes(np.array([0, 1, 2], np.float32)).tolist() == [1, 8, 27]
