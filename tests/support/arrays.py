"""Comparisons of arrays."""

from __future__ import annotations

import numpy as np

from tests.codegen.cuda.kernels import Array


def assert_same(found: Array, expected: Array, exact: bool, where: str) -> None:
    """Equal to the bit, but that any NaN equals any other; or within some last bits."""
    assert found.dtype == expected.dtype, where
    assert found.shape == expected.shape, where
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected, where)
        return
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        wide, other = found.astype(np.float64), expected.astype(np.float64)
    if not exact:
        np.testing.assert_allclose(wide, other, rtol=16 * np.finfo(found.dtype).eps, err_msg=where)
        return
    np.testing.assert_array_equal(wide, other, where)
    np.testing.assert_array_equal(np.signbit(wide) & ~np.isnan(wide), np.signbit(other) & ~np.isnan(other), where)
