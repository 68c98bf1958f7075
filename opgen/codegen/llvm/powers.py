"""pow of float32 and float64, all lanes at once: exp(y * log |x|), with more digits in between than the result has.

Errors are below 0.51 units in the last place of float32, which is computed in float64, and below 0.7 of float64.  A
power that can be represented is exact.  0, infinities and NaN follow IEEE 754.  For float64 the logarithm, 2 artanh(f /
(2 + f)), and the product are sums of two numbers (T. J. Dekker, "A Floating-Point Technique for Extending the Available
Precision", 1971).
"""

from __future__ import annotations

import math
from fractions import Fraction

from opgen.codegen.llvm.bodies import FORMATS, LN2, Body, called
from opgen.codegen.llvm.elementary import apart, scaled
from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value

_LOG_TERMS, _EXP_TERMS = 7, 10
"""Terms of the series in a power of float32: the truncation error is below 2**-36."""
_LONG_LOG_TERMS, _LONG_EXP_TERMS = 11, 15
"""The same for float64: the truncation error is below 2**-64 of the logarithm, and below 2**-60."""
_TWO_THIRDS = Fraction(2, 3)


def power(fn: Function, x: Value, y: Value) -> Value:
    """x to the power of y: a helper, which LLVM inlines."""
    return called(fn, "pow", lambda body: _pow(body, "%x", "%y"), {"x": x, "y": y})


def _pow(b: Body, x: str, y: str) -> str:
    """Emit pow: the sign is that of x where y is odd."""
    top = 1 << (b.format.dtype.bits - 1)
    size = b.to_real(b.apply("and", b.to_integer(x), b.integer(top - 1)))
    value = _power_of_float(b, size, y) if b.format.dtype.bits == 32 else _power_of_double(b, size, y)
    value = b.where("oeq", size, b.number(1.0), b.number(1.0), value)
    half = b.apply("fmul", y, b.number(0.5))
    sign = b.where("oeq", b.floor(half), half, size, x)
    sign = b.apply("and", b.to_integer(b.where("oeq", b.floor(y), y, sign, size)), b.integer(-top))
    value = b.to_real(b.apply("or", b.to_integer(value), sign))
    below = b.where("oeq", b.floor(y), y, value, b.number(math.nan))
    below = b.where("oeq", size, b.number(math.inf), value, below)
    value = b.where("olt", x, b.number(0.0), below, value)
    value = b.where("uno", x, y, b.number(math.nan), value)
    value = b.where("oeq", x, b.number(1.0), b.number(1.0), value)
    return b.where("oeq", y, b.number(0.0), b.number(1.0), value)


def _power_of_float(b: Body, size: str, y: str) -> str:
    """Compute the power in float64, rounded once."""
    wide = Body(b.fn, FORMATS["float64"], b.lanes, b.lines)
    base, exponent = (b.define(f"fpext {b.real} {v} to {wide.real}") for v in (size, y))
    product = wide.apply("fmul", exponent, _log_of_float(wide, base))
    return b.define(f"fptrunc {wide.real} {_exp_to_float(wide, product)} to {b.real}")


def _log_of_float(b: Body, x: str) -> str:
    """Compute log of a float32 that is not negative, in float64: within 2**-36 of the right one."""
    f = b.format
    bits = b.to_integer(x)
    exponent = b.apply("ashr", b.apply("sub", bits, b.integer(f.bits(math.sqrt(0.5)))), b.integer(f.fraction))
    mantissa = b.to_real(b.apply("sub", bits, b.apply("shl", exponent, b.integer(f.fraction))))
    counted = b.to_real(b.apply("add", exponent, b.integer(f.bits(f.shifter))))
    e = b.apply("fsub", counted, b.number(f.shifter))
    rest = b.apply("fsub", mantissa, b.number(1.0))
    s = b.apply("fdiv", rest, b.apply("fadd", rest, b.number(2.0)))
    z = b.apply("fmul", s, s)
    series = b.polynomial(z, [Fraction(2, 2 * k + 1) for k in range(_LOG_TERMS + 1)])
    value = b.fma(e, b.number(float(LN2)), b.apply("fmul", s, series))
    value = b.where("oeq", x, b.number(0.0), b.number(-math.inf), value)
    return b.where("oeq", x, b.number(math.inf), x, value)


def _exp_to_float(b: Body, x: str) -> str:
    """Return exp in float64, within 2**-36; results that are 0 or infinite in float32 are only 0 or infinite."""
    f, narrow = b.format, FORMATS["float32"]
    low, high, shifter = b.number(narrow.low), b.number(narrow.high), b.number(f.shifter)
    x = b.where("olt", x, low, low, x)
    x = b.where("ogt", x, high, high, x)
    shifted = b.fma(x, b.number(1 / math.log(2)), shifter)
    r = b.fma(b.apply("fsub", shifted, shifter), b.number(-float(LN2)), x)
    value = b.polynomial(r, [Fraction(1, math.factorial(k)) for k in range(_EXP_TERMS)])
    power = b.apply("sub", b.to_integer(shifted), b.integer(f.bits(f.shifter)))
    return b.to_real(b.apply("add", b.to_integer(value), b.apply("shl", power, b.integer(f.fraction))))


def _power_of_double(b: Body, size: str, y: str) -> str:
    high, low = _long_log(b, size)
    product = b.apply("fmul", y, high)
    rest = b.fma(y, low, b.fma(y, high, b.define(f"fneg {b.real} {product}")))
    f = b.format
    least, most = b.number(f.low), b.number(f.high)
    near = b.where("olt", product, least, least, product)
    near = b.where("ogt", near, most, most, near)
    return _long_exp(b, near, b.where("oeq", near, product, rest, b.number(0.0)))


def _long_log(b: Body, x: str) -> tuple[str, str]:
    """e * log 2 + log(1 + f) as a sum of two numbers, right to 64 bits."""
    f = b.format
    e, mantissa = apart(b, x)
    rest = b.apply("fsub", mantissa, b.number(1.0))
    high, low = _long_artanh(b, rest)
    above, below = f.ln2
    high, error = _sum(b, b.apply("fmul", e, b.number(above)), high)
    low = b.fma(e, b.number(below), b.apply("fadd", low, error))
    high, low = _sum(b, high, low)
    high = b.where("oeq", x, b.number(0.0), b.number(-math.inf), high)
    return b.where("oeq", x, b.number(math.inf), x, high), low


def _long_artanh(b: Body, f: str) -> tuple[str, str]:
    """2 artanh(s) = 2 s + s**3 (2/3 + 2/5 s**2 + ...), s = f / (2 + f)."""
    below, below_rest = _sum(b, b.number(2.0), f)
    inverse = b.apply("fdiv", b.number(1.0), below)
    s = b.apply("fmul", f, inverse)
    minus = b.define(f"fneg {b.real} {s}")
    s_rest = b.apply("fmul", b.fma(minus, below_rest, b.fma(minus, below, f)), inverse)
    z, z_rest = _product(b, (s, s_rest), (s, s_rest))
    series = b.polynomial(z, [Fraction(2, 2 * k + 3) for k in range(1, _LONG_LOG_TERMS)])
    first, second = b.format.parts(_TWO_THIRDS, 2)
    factor, factor_rest = _sum(b, b.number(first), b.apply("fmul", z, series))
    factor_rest = b.apply("fadd", factor_rest, b.number(second))
    cube = _product(b, (s, s_rest), (z, z_rest))
    term, term_rest = _product(b, cube, (factor, factor_rest))
    high, error = _sum(b, b.apply("fadd", s, s), term)
    return high, b.apply("fadd", b.fma(s_rest, b.number(2.0), term_rest), error)


def _sum(b: Body, large: str, small: str) -> tuple[str, str]:
    """Return the sum of two numbers, and its error, exact where the first is the larger or 0."""
    total = b.apply("fadd", large, small)
    return total, b.apply("fsub", small, b.apply("fsub", total, large))


def _product(b: Body, x: tuple[str, str], y: tuple[str, str]) -> tuple[str, str]:
    """Multiply two sums of a number and a small one."""
    high = b.apply("fmul", x[0], y[0])
    error = b.fma(x[0], y[0], b.define(f"fneg {b.real} {high}"))
    return high, b.fma(x[0], y[1], b.fma(x[1], y[0], error))


def _long_exp(b: Body, x: str, rest: str) -> str:
    """Return 2**n * e**r, where e**r is 1 + r minus its error, plus small terms."""
    f = b.format
    shifter, one = b.number(f.shifter), b.number(1.0)
    shifted = b.fma(x, b.number(1 / math.log(2)), shifter)
    n = b.apply("fsub", shifted, shifter)
    above, below = f.ln2
    r, error = _sum(b, b.fma(n, b.number(-above), x), b.fma(n, b.number(-below), rest))
    series = b.polynomial(r, [Fraction(1, math.factorial(k)) for k in range(2, _LONG_EXP_TERMS)])
    high, low = _sum(b, one, r)
    low = b.apply("fadd", low, b.fma(b.apply("fmul", r, r), series, error))
    return scaled(b, b.apply("fadd", high, low), shifted)
