"""exp, log, tanh, erf and atan of float32 and float64, all lanes at once, in some tens of instructions.

The arithmetic is the same for any number of lanes, so that a result does not depend on a schedule.  Errors are below
2 units in the last place, of erf of float32 below 1.4; denormals, infinities and NaN are as IEEE 754
recommends.  Sources of the formulas: reduction of the argument by W. J. Cody and W. Waite, "Software Manual for the
Elementary Functions" (1980); the logarithm as 2 artanh(f / (2 + f)) by P. T. P. Tang (1990); Lambert's continued
fraction of tanh; the series of erf and of exp(x * x) * erfc(x) in M. Abramowitz and I. A. Stegun, "Handbook of
Mathematical Functions" (1964), 7.1.5 and 7.1.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache

from opgen.codegen.llvm.bodies import HALF_PI, Body, called, nodes, through
from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value

BY_ROOT_PI = Fraction("1.12837916709551257389615890312154517168810125865799771368817144")
"""2 / sqrt(pi)."""
_SMALL = 0.625
"""Below it tanh is a fraction of polynomials, above it follows from exp without loss."""


def _exp(b: Body, x: str) -> str:
    """2**n * e**r with |r| <= log(2) / 2."""
    f = b.format
    low, high, shifter = b.number(f.low), b.number(f.high), b.number(f.shifter)
    x = b.where("olt", x, low, low, x)
    x = b.where("ogt", x, high, high, x)
    shifted = b.fma(x, b.number(1 / math.log(2)), shifter)
    n = b.apply("fsub", shifted, shifter)
    above, below = f.ln2
    r = b.fma(n, b.number(-below), b.fma(n, b.number(-above), x))
    value = b.polynomial(r, [Fraction(1, math.factorial(k)) for k in range(f.exp_terms)])
    return scaled(b, value, shifted)


def scaled(b: Body, value: str, shifted: str) -> str:
    """2**n * value, n + shifter being given, in two factors, as n may exceed the exponents there are."""
    f = b.format
    power = b.apply("sub", b.to_integer(shifted), b.integer(f.bits(f.shifter)))
    half = b.apply("ashr", power, b.integer(1))
    for part in (half, b.apply("sub", power, half)):
        biased = b.apply("add", part, b.integer(f.bias))
        value = b.apply("fmul", value, b.to_real(b.apply("shl", biased, b.integer(f.fraction))))
    return value


def _log(b: Body, x: str) -> str:
    """e * log 2 + log(1 + f), 1 + f between the roots of 1/2 and 2, where log(1 + f) = 2 artanh(f / (2 + f))."""
    f = b.format
    e, mantissa = apart(b, x)
    rest = b.apply("fsub", mantissa, b.number(1.0))
    s = b.apply("fdiv", rest, b.apply("fadd", rest, b.number(2.0)))
    z = b.apply("fmul", s, s)
    series = b.apply("fmul", z, b.polynomial(z, [Fraction(2, 2 * k + 3) for k in range(f.log_terms)]))
    square = b.apply("fmul", b.apply("fmul", rest, b.number(0.5)), rest)
    above, below = f.ln2
    small = b.fma(s, b.apply("fadd", square, series), b.apply("fmul", e, b.number(below)))
    value = b.fma(e, b.number(above), b.apply("fsub", rest, b.apply("fsub", square, small)))
    value = b.where("olt", x, b.number(0.0), b.number(math.nan), value)
    value = b.where("oeq", x, b.number(0.0), b.number(-math.inf), value)
    return b.where("ueq", x, b.number(math.inf), x, value)


def apart(b: Body, x: str) -> tuple[str, str]:
    """x = 2**e * m, m between the roots of 1/2 and 2."""
    f = b.format
    least, up = 2.0 ** (1 - f.bias), f.fraction + 2
    y = b.where("olt", x, b.number(least), b.apply("fmul", x, b.number(2.0**up)), x)
    correction = b.where("olt", x, b.number(least), b.number(up), b.number(0.0))
    bits = b.to_integer(y)
    exponent = b.apply("ashr", b.apply("sub", bits, b.integer(f.bits(math.sqrt(0.5)))), b.integer(f.fraction))
    mantissa = b.to_real(b.apply("sub", bits, b.apply("shl", exponent, b.integer(f.fraction))))
    counted = b.to_real(b.apply("add", exponent, b.integer(f.bits(f.shifter))))
    return b.apply("fsub", b.apply("fsub", counted, b.number(f.shifter)), correction), mantissa


def _tanh(b: Body, x: str) -> str:
    f = b.format
    sign = b.apply("and", b.to_integer(x), b.integer(-(1 << (f.dtype.bits - 1))))
    size = b.to_real(b.apply("xor", b.to_integer(x), sign))
    z = b.apply("fmul", x, x)
    above, below = _lambert(f.tanh_terms)
    change = b.apply("fdiv", b.apply("fmul", z, b.polynomial(z, above)), b.polynomial(z, below))
    small = b.fma(size, change, size)
    grown = b.apply("fadd", _exp(b, b.apply("fadd", size, size)), b.number(1.0))
    large = b.apply("fsub", b.number(1.0), b.apply("fdiv", b.number(2.0), grown))
    value = b.where("olt", size, b.number(_SMALL), small, large)
    return b.to_real(b.apply("or", b.to_integer(value), sign))


def _lambert(terms: int) -> tuple[list[Fraction], list[Fraction]]:
    """Return polynomials p, q in z = x * x such that tanh x = x + x z p / q.

    They come from the continued fraction x / (1 + z / (3 + z / (5 + ...))).
    """
    p, q = [Fraction(1)], [Fraction(2 * terms - 1)]
    for k in range(terms - 1, 0, -1):
        shifted = [Fraction(0), *p]
        width = max(len(q), len(shifted))
        p, q = q, [(2 * k - 1) * _at(q, i) + _at(shifted, i) for i in range(width)]
    return [(_at(p, i) - q[i]) / q[0] for i in range(1, len(q))], [c / q[0] for c in q]


def _at(coefficients: Sequence[Fraction], i: int) -> Fraction:
    return coefficients[i] if i < len(coefficients) else Fraction(0)


_ERF_TERMS, _ERFC_TERMS, _ERF_IS_ONE = 18, 30, 6.0
"""Numbers of terms for float64: the truncation error is below a quarter of a unit in the last place."""


def _erf(b: Body, x: str) -> str:
    """Up to 1 the series; beyond it 1 - exp(-x * x) * p(x), as erfc(x) is too small there for its errors to count."""
    f = b.format
    if f.dtype.bits == 32:
        return _erf_of_float(b, x)
    sign = b.apply("and", b.to_integer(x), b.integer(-(1 << (f.dtype.bits - 1))))
    size = b.to_real(b.apply("xor", b.to_integer(x), sign))
    z = b.apply("fmul", x, x)
    small = b.fma(size, b.polynomial(z, _erf_series(_ERF_TERMS)), size)
    near = b.where("ogt", size, b.number(_ERF_IS_ONE), b.number(_ERF_IS_ONE), size)
    square = b.apply("fmul", near, b.apply("fsub", b.number(-0.0), near))
    middle, half = (_ERF_IS_ONE + 1) / 2, (_ERF_IS_ONE - 1) / 2
    place = b.apply("fmul", b.apply("fsub", near, b.number(middle)), b.number(1 / half))
    scaled = b.polynomial(place, _scaled_erfc(_ERFC_TERMS, 1.0, _ERF_IS_ONE))
    rest = b.apply("fmul", _exp(b, square), scaled)
    value = b.where("olt", size, b.number(1.0), small, b.apply("fsub", b.number(1.0), rest))
    return b.to_real(b.apply("or", b.to_integer(value), sign))


def _erf_series(terms: int) -> list[Fraction]:
    """Return the polynomial p in z = x * x of erf x = x + x p."""
    factors = [Fraction((-1) ** k, math.factorial(k) * (2 * k + 1)) for k in range(terms)]
    return [BY_ROOT_PI * c - (k == 0) for k, c in enumerate(factors)]


_ERF_NEAR = 1.14
"""Below it, erf of float32 is x + x p(x * x); from it on, 1 - q(|x|)**4, where q is the fourth root of erfc."""
_ERF_END = 4.0
"""From it on, erf is 1."""
_ERF_NEAR_TERMS = (0.12837917, -0.3761258, 0.112830974, -0.026834216, 0.005152766, -0.00077130145, 6.9224865e-05)
_ERF_FAR_TERMS = (
    1.0056856,
    -0.30952173,
    -0.062207505,
    -0.05157885,
    0.06670554,
    -0.022395598,
    0.0032651469,
    -0.00018170249,
)
"""p and q minimise the greatest error, in units in the last place of erf, for these numbers of terms.

It is 1.4 with all roundings.  They were found by linear programming, the last bits by trial.
"""


def _erf_of_float(b: Body, x: str) -> str:
    """Compute both sides of erf, and select one."""
    size = b.to_real(b.apply("and", b.to_integer(x), b.integer((1 << 31) - 1)))
    near = b.fma(x, b.polynomial(b.apply("fmul", x, x), _ERF_NEAR_TERMS), x)
    end = b.number(_ERF_END)
    root = b.polynomial(b.where("ogt", size, end, end, size), _ERF_FAR_TERMS)
    square = b.apply("fmul", root, root)
    far = b.fma(b.define(f"fneg {b.real} {square}"), square, b.number(1.0))
    sign = b.apply("and", b.to_integer(x), b.integer(-(1 << 31)))
    far = b.to_real(b.apply("or", b.to_integer(far), sign))
    return b.where("ult", size, b.number(_ERF_NEAR), near, far)


@cache
def _scaled_erfc(terms: int, low: float, high: float) -> list[Decimal]:
    """Return the polynomial in t that is exp(x * x) * erfc(x), x = (low + high) / 2 + t (high - low) / 2."""
    with localcontext(Context(prec=45)):
        middle, half = Decimal(low + high) / 2, Decimal(high - low) / 2
        return through(nodes(terms), [_scaled_erfc_at(middle + half * t) for t in nodes(terms)])


def _scaled_erfc_at(x: Decimal) -> Decimal:
    """exp(x * x) less the series of exp(x * x) * erf(x), to more than twenty digits for x up to 6."""
    term, total, n = x, x, 0
    while term > Decimal("1e-30"):
        n += 1
        term = term * 2 * x * x / (2 * n + 1)
        total += term
    return (x * x).exp() - total * _decimal(BY_ROOT_PI)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator


_ATAN_TERMS = {"float32": 6, "float64": 12}
"""Numbers of terms: the truncation error is below a quarter of a unit in the last place."""
_EIGHTH, _THREE_EIGHTHS = math.tan(math.pi / 8), math.tan(3 * math.pi / 8)


def _atan(b: Body, x: str) -> str:
    """Reduce atan |x| to an argument below tan(pi / 8), where it is q + q**3 p(q**2).

    The argument is -1 / |x| (plus a quarter turn), (|x| - 1) / (|x| + 1) (plus an eighth), or |x|.
    """
    f = b.format
    sign = b.apply("and", b.to_integer(x), b.integer(-(1 << (f.dtype.bits - 1))))
    size = b.to_real(b.apply("xor", b.to_integer(x), sign))
    one, zero, eighth, more = b.number(1.0), b.number(0.0), b.number(_EIGHTH), b.number(_THREE_EIGHTHS)
    above = b.where("ogt", size, eighth, b.apply("fsub", size, one), size)
    above = b.where("ogt", size, more, b.number(-1.0), above)
    below = b.where("ogt", size, eighth, b.apply("fadd", size, one), one)
    below = b.where("ogt", size, more, size, below)
    q = b.apply("fdiv", above, below)
    z = b.apply("fmul", q, q)
    series = b.fma(b.apply("fmul", q, z), b.polynomial(z, _atan_series(_ATAN_TERMS[f.dtype.name])), q)
    turns = [f.parts(HALF_PI / 2, 2), f.parts(HALF_PI, 2)]
    high, low = (
        b.where("ogt", size, more, b.number(quarter), b.where("ogt", size, eighth, b.number(half), zero))
        for half, quarter in zip(*turns, strict=True)
    )
    value = b.apply("fadd", high, b.apply("fadd", low, series))
    return b.to_real(b.apply("or", b.to_integer(value), sign))


@cache
def _atan_series(terms: int) -> list[Decimal]:
    """Return the polynomial in z = q * q that is (atan(q) - q) / q**3, q up to tan(pi / 8)."""
    with localcontext(Context(prec=45)):
        places = [(1 + t) * Decimal("0.0858") for t in nodes(terms)]
        return through(places, [sum((-((-z) ** k) / (2 * k + 3) for k in range(60)), Decimal(0)) for z in places])


FUNCTIONS: dict[str, Callable[[Body, str], str]] = {
    "exp": _exp,
    "log": _log,
    "tanh": _tanh,
    "erf": _erf,
    "atan": _atan,
}


def elementary(fn: Function, function: str, x: Value) -> Value:
    """Return one of FUNCTIONS: a helper, which LLVM inlines."""
    return called(fn, function, lambda body: FUNCTIONS[function](body, "%x"), {"x": x})
