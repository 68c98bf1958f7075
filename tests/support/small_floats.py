"""Numbers around those of small floating types."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from opgen.dtypes import (
    DType,
    small_value,
)

SEED = 20


def numbers(dtype: DType) -> NDArray[np.float64]:
    """All numbers of a floating type, the middles between them, what is next to these, and what is far beyond."""
    finite = np.unique([v for c in range(1 << dtype.digits) if math.isfinite(v := small_value(c, dtype))])
    middles = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, finite[-1:] + np.diff(finite[-2:]) / 2])
    middles = np.concatenate([middles, -middles]).astype(np.float32)
    near = [np.nextafter(middles, np.float32(to)) for to in (np.inf, -np.inf)]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3e38, -3e38], np.float32)
    random = (np.random.default_rng(SEED).uniform(-1, 1, 300) * finite[-1]).astype(np.float32)
    return np.concatenate([middles, *near, special, random]).astype(np.float64)
