"""Gradients of what sorts, samples images and transforms signals, by captured functions, against finite differences.

Values are drawn from OPGEN_TEST_SEED (0); places keep away from where functions have kinks.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import opgen

Array = npt.NDArray[Any]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
STEP = 1e-5
OPS = importlib.import_module("generated.onnx_ops")


def _drawn() -> Mapping[str, Array]:
    rng = np.random.default_rng(SEED)
    return {
        "x": rng.standard_normal((1, 2, 4, 5)),
        "grid": (rng.integers(-3, 3, (1, 2, 3, 2)) + rng.uniform(0.2, 0.8, (1, 2, 3, 2))) / 4,
        "w": rng.standard_normal((2, 2, 2, 2)),
        "offset": rng.integers(-1, 2, (1, 8, 3, 4)) + rng.uniform(0.2, 0.8, (1, 8, 3, 4)),
        "mask": rng.random((1, 4, 3, 4)),
        "b": rng.standard_normal(2),
        "rois": np.array([[0.3, 0.4, 3.3, 2.9], [1.1, 0.2, 4.2, 3.7]]),
        "signal": rng.standard_normal((2, 12, 2)),
        "wave": rng.standard_normal((1, 20, 1)),
        "window": rng.random(8),
    }


def _deformed(x: Array, w: Array, offset: Array, b: Array, mask: Array) -> Array:
    found: Array = OPS.deform_conv(x, w, offset, b, mask)
    return found


def _grid(**attributes: object) -> Callable[[Array, Array], Array]:
    def sampled(x: Array, grid: Array) -> Array:
        found: Array = OPS.grid_sample(x, grid, **attributes)
        return found

    return sampled


def _of_x(name: str, *more: object, **attributes: object) -> Callable[[Array], Array]:
    def made(x: Array) -> Array:
        found = getattr(OPS, name)(x, *more, **attributes)
        return found[0] if isinstance(found, tuple) else found  # type: ignore[no-any-return]

    return made


def _aligned(x: Array, rois: Array) -> Array:
    found: Array = OPS.roi_align(x, rois, np.array([0, 0]), output_height=2, output_width=2, sampling_ratio=2)
    return found


def _aligned_largest(x: Array) -> Array:
    rois = _drawn()["rois"]
    found: Array = OPS.roi_align(x, rois, np.array([0, 0]), mode="max", output_height=2, sampling_ratio=1)
    return found


def _regions(x: Array) -> Array:
    rois = np.concatenate([np.zeros((2, 1)), _drawn()["rois"]], 1)
    found: Array = OPS.max_roi_pool(x, rois, [2, 2])
    return found


def _largest(x: Array) -> Array:
    found: Array = OPS.top_k(x, [2], axis=2)[0]
    return found


def _smallest(x: Array) -> Array:
    found: Array = OPS.top_k(x, [3], largest=False)[0]
    return found


def _transformed(signal: Array) -> Array:
    found: Array = OPS.dft(signal, inverse=True)
    return found


def _short(wave: Array, window: Array) -> Array:
    found: Array = OPS.stft(wave, 3, window)
    return found


CASES: Mapping[str, Callable[..., Array]] = {
    "grid": _grid(),
    "grid, cubic, border": _grid(mode="cubic", padding_mode="border", align_corners=True),
    "grid, reflection": _grid(padding_mode="reflection"),
    "deformed": _deformed,
    "aligned": _aligned,
    "aligned, largest": _aligned_largest,
    "regions": _regions,
    "largest": _largest,
    "smallest": _smallest,
    "transformed": _transformed,
    "short": _short,
    "smoothed": _of_x("resize", scales=[1, 1, 0.5, 0.6], mode="linear", antialias=True),
    "cubic": _of_x("resize", scales=[1, 1, 1.5, 0.6], mode="cubic", exclude_outside=True),
}


@pytest.mark.parametrize("name", CASES)
def test_by_each_argument(name: str) -> None:
    print(f"OPGEN_TEST_SEED={SEED}")
    f = CASES[name]
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    given = {n: _drawn()[n] for n in names}
    rng = np.random.default_rng([SEED, 1])
    way = rng.standard_normal(f(**given).shape)

    for wrt in names:

        def total(value: Array, wrt: str = wrt) -> Array:
            found: Array = OPS.reduce_sum(OPS.mul(f(**{**given, wrt: value}), way), keepdims=False)
            return found

        found = opgen.gradient(opgen.compile(lambda value, total=total: total(value)), wrt="value")(given[wrt])
        for _ in range(3):
            along = rng.standard_normal(given[wrt].shape)
            ends = [f(**{**given, wrt: given[wrt] + h * along}) for h in (STEP, -STEP)]
            slope = np.sum((ends[0] - ends[1]) * way) / (2 * STEP)
            np.testing.assert_allclose(np.sum(np.asarray(found) * along), slope, rtol=1e-6, atol=1e-6)
