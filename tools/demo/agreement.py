"""Agreement of a result with its float64 reference, in units of the rounding that is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from opgen.dtypes import DTYPES
from tools.reference import Sums

Array = npt.NDArray[Any]


LEAST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
"""The least number above 0 of each floating type."""


@dataclass
class Agreement:
    """Results of one op in one type: how many, how many right, and the largest error over its limit."""

    op: str
    dtype: str
    source: str
    count: int = 0
    right: int = 0
    worst: float = 0.0

    def add(self, right: bool, worst: float) -> None:
        self.count += 1
        self.right += right
        self.worst = max(self.worst, worst)


def relative_error(result: Array, expected: Sums, dtype: str, roundings: int = 8) -> float:
    """Return the largest |result - value| over u * |value| + roundings * ua * (the sum of the terms' absolute values).

    u is the unit roundoff of `dtype`, ua that of the type in which its sums are accumulated.  Among denormals, which
    are equally far apart, half that distance replaces u * |value|.  A sum of n terms makes n roundings; for random
    terms they cancel, so that 8 are enough.  Integers must be equal.
    """
    values = expected.values
    if result.shape != values.shape:
        return float("inf")
    kind = DTYPES[dtype]
    if not kind.is_float:
        return 0.0 if np.array_equal(result, values) else float("inf")
    rounding = np.maximum(2.0**-kind.precision * np.abs(values), LEAST[dtype] / 2 * (values != 0))
    limit = rounding + roundings * 2.0**-kind.compute_type.precision * expected.magnitudes
    error = np.abs(result.astype(np.float64) - values)
    return float(np.max(error / np.maximum(limit, np.finfo(np.float64).tiny), initial=0.0))
