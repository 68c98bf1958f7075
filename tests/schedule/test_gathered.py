"""Sums of elements at places that values tell: lanes along the loop that has no part in the places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import opgen
from opgen.loop.bind import bind
from opgen.lower import Variant, lower
from opgen.passes.simplify import simplify
from opgen.schedule.default import default_schedule
from opgen.spec.loading import load

SAMPLED = """
op Sampled {
  type T in {float32, float64}
  input x: T[batch, maps, size]
  input place: T[batch, 2, rows, columns]
  output y: T[batch, maps, rows, columns]
  let tap[n, t, r, c] = int64(floor(place[n, 0, r, c])) + int64(t) where t < 3
  let weight[n, t, r, c] = 1 - abs(place[n, 1, r, c] - T(t)) / 4 where t < 3
  y[n, m, r, c] = sum[t < 3](weight[n, t, r, c] * (x[n, m, tap[n, t, r, c]] else 0))
}
"""
SIZES = {"batch": 2, "maps": 37, "size": 50, "rows": 5, "columns": 20}


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("specs") / "sampled.op"
    path.write_text(SAMPLED)
    return path


def schedule(spec: Path, **sizes: int) -> str:
    module = load([spec])
    kernel = lower(module, module.op("Sampled"), Variant({"T": "float32"}, {})).kernel
    return str(default_schedule(simplify(bind(kernel, {**SIZES, **sizes}))))


def test_lanes_go_along_the_maps(spec: Path) -> None:
    steps = schedule(spec)
    assert "pack x 0, 2, 1 -> x_packed\n" in steps
    assert "split m 16 tail=overlap -> m_o, m_l\n" in steps
    assert "pack y 0, 2, 3, 1 at=r -> y_rows\n" in steps


@pytest.mark.parametrize("sizes", [{"maps": 3}, {"size": 5000}])
def test_few_maps_and_few_places_are_gathered(spec: Path, sizes: dict[str, int]) -> None:
    """Vectors would not be full; copies would take longer than gathers."""
    assert "x_packed" not in schedule(spec, **sizes)


def test_results(spec: Path) -> None:
    ops, rng = opgen.load(spec), np.random.default_rng(3)
    x = rng.standard_normal((2, 37, 50)).astype(np.float32)
    place = rng.uniform(-4, 54, (2, 2, 5, 20)).astype(np.float32)
    taps = np.floor(place[:, :1]).astype(int) + np.arange(3)[:, None, None]
    weight = 1 - np.abs(place[:, 1:] - np.arange(3)[:, None, None]) / 4
    inside = (taps >= 0) & (taps < 50)
    read = np.stack([x[n][:, np.clip(taps[n], 0, 49)] for n in range(2)])
    expected = (np.where(inside, weight, 0)[:, None] * read).sum(axis=2)
    np.testing.assert_allclose(ops.sampled(x, place), expected, rtol=1e-5, atol=1e-5)
