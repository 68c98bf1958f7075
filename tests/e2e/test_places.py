"""argmax and argmin as numpy has them: the first of equals, or of NaN; and -1 where there is no term."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.loop.interpret import interpret
from opgen.passes.legalize import legalize
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import run_emulated
from opgen.schedule.default import scheduled
from tests.bindings.modules import ROOT, generated, spec
from tests.harness import Call as Lowered

PLACES = ROOT / "tests" / "specs" / "places.op"
TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int32, np.uint8]
SEED = 3


def _drawn(shape: tuple[int, int], dtype: type) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Values of which many are equal and some NaN, and which of them count: in the first row none."""
    rng = np.random.default_rng(SEED)
    x = rng.integers(0, 9, shape).astype(dtype)
    if dtype not in (np.int32, np.uint8):
        x[rng.random(shape) < 0.05] = np.nan
    chosen = rng.random(shape) < 0.5
    chosen[:1] = False
    return x, chosen


def _expected(x: npt.NDArray[Any], chosen: npt.NDArray[np.bool_]) -> dict[str, Any]:
    values = x.astype(np.float64)
    least = np.argmin(np.where(chosen, values, np.inf), axis=1)
    return {
        "largest": np.argmax(values, axis=1).tolist(),
        "least": np.where(chosen.any(axis=1), least, -1).tolist(),
        "apart": (np.argmax(values, axis=0) - np.argmin(values, axis=0)).tolist(),
        "first": int(np.argmax(values[0, :2])),
    }


@pytest.mark.parametrize("shape", [(5, 7), (33, 64), (2, 2)])
@pytest.mark.parametrize("dtype", TYPES)
def test_like_numpy(dtype: type, shape: tuple[int, int]) -> None:
    x, chosen = _drawn(shape, dtype)
    found = generated(PLACES).places(x, chosen)
    assert dict(zip(_expected(x, chosen), (a.tolist() for a in found), strict=True)) == _expected(x, chosen)


def test_interpreted_and_as_cuda() -> None:
    x, chosen = _drawn((5, 9), np.float32)
    lowered = Lowered(spec(PLACES), spec(PLACES).op("Places"), {"x": x.shape, "chosen": x.shape}, dtype="float32")
    kernel, parameters = lowered.kernel()
    runs = [interpret(kernel, {"x": x, "chosen": chosen}, parameters)]
    if emulation.compiler() is not None:
        given = {"x": x, "chosen": chosen}
        runs.append(run_emulated(legalize(scheduled(kernel, "cuda")[1]), given, parameters))
    for found in runs:
        assert {name: a.tolist() for name, a in found.items()} == _expected(x, chosen)


def test_nothing_has_no_place() -> None:
    largest, least, apart, first = generated(PLACES).places(np.ones((1, 0), np.int32), np.ones((1, 0), bool))
    assert (largest.tolist(), least.tolist(), apart.tolist(), first.tolist()) == ([-1], [-1], [], -1)


def test_the_gradient_goes_to_the_place() -> None:
    x = np.array([[3.0, 1, 1], [5, 7, 2]])
    gradient = opgen.gradient(generated(PLACES).least, wrt="x")
    assert gradient(x, grad_y=np.array([10.0, 20])).tolist() == [[0, 10, 0], [0, 0, 20]]


def test_step_by_step() -> None:
    x, state = np.random.default_rng(SEED).random((9, 5)).astype(np.float32), np.zeros(5, np.float32)
    for n, at in enumerate(generated(PLACES).spent(x).tolist()):
        assert at == np.argmax(state)
        state[at] = 0
        state += x[n]
