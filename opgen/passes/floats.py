"""Folding of floating operations, only if the result is the same to the last bit."""

from __future__ import annotations

import math
import struct

from opgen.dtypes import FLOAT32, FLOAT64
from opgen.loop.nodes import Binary, Const, Expr


def fold_float(e: Binary) -> Expr:
    """Return a simpler expression with the same bits for every operand, or the same object."""
    if isinstance(e.left, Const) and isinstance(e.right, Const):
        return _fold_literals(e, float(e.left.value), float(e.right.value))
    if not isinstance(e.right, Const):
        return e
    right = float(e.right.value)
    if e.op in ("mul", "div") and right == 1.0:
        return e.left
    minus_zero = right == 0.0 and math.copysign(1.0, right) < 0
    plus_zero = right == 0.0 and not minus_zero
    if (e.op == "sub" and plus_zero) or (e.op == "add" and minus_zero):
        return e.left
    return e


def _fold_literals(e: Binary, left: float, right: float) -> Expr:
    """Fold two literals.

    Sums, differences and products of float64 are Python's.  Those of float32 are rounded once more, which is innocuous
    (53 >= 2 * 24 + 2 bits).
    """
    if e.type.dtype not in (FLOAT32, FLOAT64) or not (math.isfinite(left) and math.isfinite(right)):
        return e
    match e.op:
        case "add":
            value = left + right
        case "sub":
            value = left - right
        case "mul":
            value = left * right
        case _:
            return e
    if e.type.dtype == FLOAT32:
        if abs(value) > 3.0e38:
            return e
        value = float(struct.unpack("<f", struct.pack("<f", value))[0])
    return Const(value, e.type) if math.isfinite(value) else e
