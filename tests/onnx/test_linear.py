"""Determinants, running products, and windows, against numpy in float64.

Values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from generated import onnx_ops

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 20])
def test_determinants(size: int) -> None:
    """Of random matrices, of those whose rows must change places, and of singular ones."""
    rng = np.random.default_rng(SEED)
    plain = rng.standard_normal((3, size, size))
    turned = np.stack([np.eye(size)[rng.permutation(size)] * rng.uniform(1, 2, size) for _ in range(3)])
    found = onnx_ops.det(np.stack([plain, turned]))
    np.testing.assert_allclose(found, np.linalg.det(np.stack([plain, turned])), rtol=1e-10, err_msg=f"seed {SEED}")
    if size > 1:
        assert onnx_ops.det(np.ones((size, size))) == 0
        assert np.isnan(onnx_ops.det(np.full((size, size), np.nan)))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_products(axis: int, reverse: bool) -> None:
    x = np.random.default_rng(SEED).integers(-9, 9, (4, 5), dtype=np.int32)
    wanted = (
        np.flip(np.cumprod(np.flip(x, axis), axis, dtype=np.int32), axis)
        if reverse
        else np.cumprod(x, axis, dtype=np.int32)
    )
    np.testing.assert_array_equal(onnx_ops.cum_prod(x, axis, reverse=reverse), wanted, err_msg=f"seed {SEED}")
    before = onnx_ops.cum_prod(x, axis, reverse=reverse, exclusive=True)
    np.testing.assert_array_equal(before * x, wanted, err_msg=f"seed {SEED}")


@pytest.mark.parametrize("size", [1, 2, 9, 64])
@pytest.mark.parametrize("name", ["hann", "hamming", "blackman"])
def test_windows(name: str, size: int) -> None:
    """Symmetric ones are numpy's (with 0.54 for 25/46), periodic ones those one longer, without the end."""
    weights = {"hann": (0.5, 0.5, 0), "hamming": (25 / 46, 21 / 46, 0), "blackman": (0.42, 0.5, 0.08)}[name]
    function = getattr(onnx_ops, f"{name}_window")
    for periodic in (False, True):
        turn = 2 * np.pi * np.arange(size) / (size if periodic else max(1, size - 1))
        wanted = weights[0] - weights[1] * np.cos(turn) + weights[2] * np.cos(2 * turn)
        found = function(size, periodic=periodic, output_datatype="float64")
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15)
    assert function(np.int32(size)).dtype == np.float32
