"""Fourier transforms, as numpy has them.

Values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from opgen.diagnostics import UserError

pytest.importorskip("onnx")
from tests.onnx.one_node import found_by, model_of

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
Array = npt.NDArray[Any]


@pytest.mark.parametrize("size", [1, 7, 36, 100])
def test_fourier_transforms(size: int) -> None:
    """Of complex and real signals, forwards and back, by lengths with many factors and with none, as numpy has them."""
    rng = np.random.default_rng([SEED, size])
    z = rng.standard_normal((2, size, 3)) + 1j * rng.standard_normal((2, size, 3))
    parts = np.stack([z.real, z.imag], -1)

    def transformed(x: Array, opset: int = 17, **attributes: object) -> Array:
        found = found_by(model_of("DFT", {"x": x}, opset, **attributes), {"x": x})
        return found[..., 0] + 1j * found[..., 1] if found.shape[-1] == 2 else found[..., 0]

    near = {"rtol": 1e-9, "atol": 1e-9 * size}
    np.testing.assert_allclose(transformed(parts), np.fft.fft(z, axis=1), **near)
    np.testing.assert_allclose(transformed(parts, inverse=1), np.fft.ifft(z, axis=1), **near)
    real = z.real[..., None]
    half = np.fft.rfft(z.real, axis=1)
    np.testing.assert_allclose(transformed(real, onesided=1), half, **near)
    if size > 1:
        halves = np.stack([half.real, half.imag], -1)
        even = np.fft.irfft(half, axis=1)
        np.testing.assert_allclose(transformed(halves, inverse=1, onesided=1), even, **near)


def test_fourier_transforms_of_other_lengths_and_dimensions() -> None:
    x = np.random.default_rng(SEED).standard_normal((3, 10, 2, 1)).astype(np.float32)
    for axis, length in ((1, 16), (-2, 5)):
        given = {"x": x, "length": np.array(length), "axis": np.array(axis)}
        right = np.fft.fft(x[..., 0], n=length, axis=axis + 1 if axis < 0 else axis)
        found = found_by(model_of("DFT", given, 20), given)
        np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], right, rtol=1e-4, atol=1e-5)


def test_short_time_transforms() -> None:
    rng = np.random.default_rng(SEED)
    x, window = rng.standard_normal((2, 50, 1)), rng.random(16)
    for weights in (window, np.array([])):
        given = {"x": x, "step": np.array(5), "window": weights, "length": np.array(16)}
        found = found_by(model_of("STFT", given, 17), given)
        frames = np.stack([x[:, t : t + 16, 0] * (window if weights.size else 1) for t in range(0, 35, 5)], 1)
        np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], np.fft.rfft(frames), rtol=1e-9, atol=1e-9)
        flat = {**given, "x": x[..., 0]}  # as torch exports it
        np.testing.assert_array_equal(found_by(model_of("STFT", flat, 17), flat), found)
    too_long = {"x": x, "step": np.array(5), "window": np.array([]), "length": np.array(60)}
    model = model_of("STFT", too_long, 17)
    with pytest.raises(UserError, match=r"STFT.*at least as many samples"):
        found_by(model, too_long)
