"""Elementary functions in decimal arithmetic, as references, and errors in units in the last place."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from functools import cache

import numpy as np

from opgen.dtypes import DType
from tests.support.elementwise import NUMPY

DIGITS = Context(prec=60, Emin=-999999, Emax=999999)
PI = Context(prec=450)
SEED = 20


def erf(x: Decimal) -> Decimal:
    """The series of erf(x) * exp(x * x), whose terms have one sign."""
    x, sign = min(abs(x), Decimal(8)), x
    term = total = x
    n = 0
    while term > total * Decimal("1e-50"):
        n += 1
        term = term * 2 * x * x / (2 * n + 1)
        total += term
    root_pi = Decimal("1.77245385090551602729816748334114518279754945612238712821")
    return (2 / root_pi * total * (-x * x).exp()).copy_sign(sign)


@cache
def half_pi() -> Decimal:
    """pi / 2 by J. Machin's formula."""
    with localcontext(PI):

        def arctan(n: int) -> Decimal:
            return sum((Decimal((-1) ** k) / ((2 * k + 1) * Decimal(n) ** (2 * k + 1)) for k in range(330)), Decimal(0))

        return 8 * arctan(5) - 2 * arctan(239)


def wave(x: Decimal, first: int) -> Decimal:
    """sin x with 1, cos x with 0: the series, of what is left of x by multiples of pi / 2."""
    with localcontext(PI):
        quarters = (x / half_pi()).to_integral_value()
        rest = x - quarters * half_pi()
    turn = int(quarters) % 4
    power = (first + turn) % 2
    with localcontext(DIGITS):
        size = sum((-1) ** k * rest ** (2 * k + power) / math.factorial(2 * k + power) for k in range(1, 24))
        size += rest if power else 1
        return -size if turn in ((2, 3) if first else (1, 2)) else size


def arctan(x: Decimal) -> Decimal:
    """The series, of an argument that is halved until it is small."""
    size = abs(x)
    if size > 1:
        return (half_pi() - arctan(1 / size)).copy_sign(x)
    turns = 0
    while size > Decimal("0.01"):
        size, turns = size / (1 + (1 + size * size).sqrt()), turns + 1
    total = sum((Decimal((-1) ** k) * size ** (2 * k + 1) / (2 * k + 1) for k in range(16)), Decimal(0))
    return (2**turns * total).copy_sign(x)


def units(got: float, want: Decimal | float, dtype: DType) -> float:
    """How far a result is off, in units in the last place of the right one; 0 if it is the right one rounded."""
    kind = NUMPY[dtype.name].type
    if not isinstance(want, Decimal):
        return 0.0 if np.array_equal(kind(got), kind(want), equal_nan=True) else math.inf
    with np.errstate(over="ignore"):
        rounded = kind(float(want))
    if got == rounded:
        return 0.0
    if not math.isfinite(got) or not math.isfinite(rounded):
        return math.inf
    with localcontext(DIGITS):
        return float(abs(Decimal(got) - want) / Decimal(float(np.spacing(abs(rounded)))))
