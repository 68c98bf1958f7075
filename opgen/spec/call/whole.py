"""Rounding of floats to 64-bit integer sizes; it imports nothing of a spec, because calls need it too."""

from __future__ import annotations

import math
from collections.abc import Callable

from opgen.diagnostics import UserError

LIMIT = 2**63


class EvaluationError(UserError):
    """Error for an expression without a value: a division by zero, or an integer beyond 64 bits."""


_ROUNDED: dict[str, Callable[[float], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
}


def rounded(function: str, value: float) -> int:
    """Round a float with a function of `Whole`.  Raises EvaluationError if the result exceeds 64 bits."""
    if not -float(LIMIT) <= value < float(LIMIT):
        raise EvaluationError("a float that does not fit in 64 bits")
    return _ROUNDED[function](value)
