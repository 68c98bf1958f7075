"""Exact numbers rounded to a floating type by integer arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

from opgen.dtypes import (
    DType,
)

# (significand bits, least exponent of a unit in the last place, greatest finite number)
FORMATS = {
    "float16": (11, -24, Fraction(65504)),
    "bfloat16": (8, -133, Fraction(2**128 - 2**120)),
    "float32": (24, -149, Fraction(2**128 - 2**104)),
    "float64": (53, -1074, Fraction(2**1024 - 2**971)),
}


def rounded(exact: Fraction, dtype: DType) -> float:
    """An exact number rounded to nearest, ties to even, by integer arithmetic only."""
    bits, smallest, largest = FORMATS[dtype.name]
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - bits + 1, smallest)
    whole = round(size / unit) * unit  # Fraction rounds ties to even
    result = math.inf if whole > largest else float(whole)
    return math.copysign(result, -1.0 if exact < 0 else 1.0)
