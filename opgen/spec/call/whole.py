"""Integers of 64 bits made of floats, as sizes are; it imports nothing of a spec, as calls need it, too."""

from __future__ import annotations

import math
from collections.abc import Callable

from opgen.diagnostics import UserError

LIMIT = 2**63


class EvaluationError(UserError):
    """An expression without a value: a division by zero, or an integer beyond 64 bits."""


_ROUNDED: dict[str, Callable[[float], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
}


def rounded(function: str, value: float) -> int:
    """The integer that a float is rounded to by a function of `Whole`.  Raises EvaluationError if there is none."""
    if not -float(LIMIT) <= value < float(LIMIT):
        raise EvaluationError("a float that does not fit in 64 bits")
    return _ROUNDED[function](value)
