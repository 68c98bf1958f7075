"""exp, log, tanh and erf of float32 and float64, and pow of float32, all lanes at once, in some tens of instructions.

The arithmetic is the same for any number of lanes, so that a result does not depend on a schedule.  Errors are below
2 units in the last place, of pow below 0.51; denormals, infinities and NaN are as IEEE 754 recommends.
Sources of the formulas: reduction
of the argument by W. J. Cody and W. Waite, "Software Manual for the Elementary Functions" (1980); the logarithm as
2 artanh(f / (2 + f)) by P. T. P. Tang (1990); Lambert's continued fraction of tanh; the series of erf and of
exp(x * x) * erfc(x) in M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions" (1964), 7.1.5 and 7.1.6.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import zip_longest

from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, literal, scalar_type, suffix, value_type, vector
from opgen.dtypes import DTYPES, DType
from opgen.loop.nodes import Type

LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009")


@dataclass(frozen=True)
class _Format:
    """A floating type: its bits are a sign, an exponent and `fraction` bits.  With these numbers of terms, what is left
    out of a series is below a quarter of a unit in the last place (of erf of float32 one); between `low` and `high` lie
    the arguments of exp whose results are neither 0 nor infinite; from `one` on erf is 1.
    """

    dtype: DType
    integer: DType
    fraction: int
    exp_terms: int
    log_terms: int
    tanh_terms: int
    erf_terms: int
    erfc_terms: int
    one: float
    low: float
    high: float

    @property
    def bias(self) -> int:
        return (1 << (self.dtype.bits - self.fraction - 2)) - 1

    @property
    def shifter(self) -> float:
        """Added to a small number, it leaves the nearest integer in the last bits of the sum."""
        return 1.5 * 2.0**self.fraction

    def bits(self, value: float) -> int:
        narrow = self.dtype.bits == 32
        return int(struct.unpack("<i" if narrow else "<q", struct.pack("<f" if narrow else "<d", value))[0])

    @property
    def ln2(self) -> tuple[float, float]:
        """log 2 in two parts, of which the first leaves room for a product with an exponent."""
        high = Fraction(round(LN2 * 2 ** (self.fraction - 9)), 2 ** (self.fraction - 9))
        return float(high), float(LN2 - high)


_FORMATS = {
    "float32": _Format(DTYPES["float32"], DTYPES["int32"], 23, 8, 5, 5, 6, 9, 4.0, -104.0, 89.0),
    "float64": _Format(DTYPES["float64"], DTYPES["int64"], 52, 14, 11, 9, 18, 30, 6.0, -746.0, 710.0),
}
BY_ROOT_PI = Fraction("1.12837916709551257389615890312154517168810125865799771368817144")
"""2 / sqrt(pi)."""
_SMALL = 0.625
"""Below it tanh is a fraction of polynomials, above it follows from exp without loss."""


@dataclass
class _Body:
    """The instructions of a helper while they are written; values are names of vectors of one format."""

    fn: Function
    format: _Format
    lanes: int
    lines: list[str] = field(default_factory=list)

    @property
    def real(self) -> str:
        return value_type(Type(self.format.dtype, self.lanes))

    @property
    def whole(self) -> str:
        return value_type(Type(self.format.integer, self.lanes))

    def number(self, value: float) -> str:
        return literal(value, Type(self.format.dtype, self.lanes))

    def integer(self, value: int) -> str:
        return literal(value, Type(self.format.integer, self.lanes))

    def define(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def apply(self, op: str, a: str, b: str) -> str:
        """Of floats if the operation's name begins with f, else of integers."""
        return self.define(f"{op} {self.real if op[0] == 'f' else self.whole} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        t = self.real
        name = f"llvm.fma.{suffix(scalar_type(self.format.dtype.name), self.lanes)}"
        symbol = self.fn.module.declare(name, f"{t} @{name}({t}, {t}, {t})")
        return self.define(f"call {t} {symbol}({t} {a}, {t} {b}, {t} {c})")

    def floor(self, a: str) -> str:
        t = self.real
        name = f"llvm.floor.{suffix(scalar_type(self.format.dtype.name), self.lanes)}"
        return self.define(f"call {t} {self.fn.module.declare(name, f'{t} @{name}({t})')}({t} {a})")

    def to_integer(self, a: str) -> str:
        return self.define(f"bitcast {self.real} {a} to {self.whole}")

    def to_real(self, a: str) -> str:
        return self.define(f"bitcast {self.whole} {a} to {self.real}")

    def where(self, comparison: str, a: str, b: str, yes: str, no: str) -> str:
        flags = vector("i1", self.lanes)
        held = self.define(f"fcmp {comparison} {self.real} {a}, {b}")
        return self.define(f"select {flags} {held}, {self.real} {yes}, {self.real} {no}")

    def polynomial(self, x: str, coefficients: Sequence[Fraction | Decimal]) -> str:
        """By Horner's rule, the highest power's coefficient last."""
        *rest, last = [self.number(float(c)) for c in coefficients]
        value = last
        for c in reversed(rest):
            value = self.fma(value, x, c)
        return value


def _exp(b: _Body, x: str) -> str:
    """2**n * e**r with |r| <= log(2) / 2; the power in two factors, as n may exceed the exponents there are."""
    f = b.format
    low, high, shifter = b.number(f.low), b.number(f.high), b.number(f.shifter)
    x = b.where("olt", x, low, low, x)
    x = b.where("ogt", x, high, high, x)
    shifted = b.fma(x, b.number(1 / math.log(2)), shifter)
    n = b.apply("fsub", shifted, shifter)
    above, below = f.ln2
    r = b.fma(n, b.number(-below), b.fma(n, b.number(-above), x))
    value = b.polynomial(r, [Fraction(1, math.factorial(k)) for k in range(f.exp_terms)])
    power = b.apply("sub", b.to_integer(shifted), b.integer(f.bits(f.shifter)))
    half = b.apply("ashr", power, b.integer(1))
    for part in (half, b.apply("sub", power, half)):
        biased = b.apply("add", part, b.integer(f.bias))
        value = b.apply("fmul", value, b.to_real(b.apply("shl", biased, b.integer(f.fraction))))
    return value


def _log(b: _Body, x: str) -> str:
    """e * log 2 + log(1 + f), 1 + f between the roots of 1/2 and 2, where log(1 + f) = 2 artanh(f / (2 + f))."""
    f = b.format
    least, up = 2.0 ** (1 - f.bias), f.fraction + 2
    y = b.where("olt", x, b.number(least), b.apply("fmul", x, b.number(2.0**up)), x)
    correction = b.where("olt", x, b.number(least), b.number(up), b.number(0.0))
    bits = b.to_integer(y)
    exponent = b.apply("ashr", b.apply("sub", bits, b.integer(f.bits(math.sqrt(0.5)))), b.integer(f.fraction))
    mantissa = b.to_real(b.apply("sub", bits, b.apply("shl", exponent, b.integer(f.fraction))))
    counted = b.to_real(b.apply("add", exponent, b.integer(f.bits(f.shifter))))
    e = b.apply("fsub", b.apply("fsub", counted, b.number(f.shifter)), correction)
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


def _tanh(b: _Body, x: str) -> str:
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
    """The polynomials p, q in z = x * x of tanh x = x + x z p / q, from x / (1 + z / (3 + z / (5 + ...)))."""
    p, q = [Fraction(1)], [Fraction(2 * terms - 1)]
    for k in range(terms - 1, 0, -1):
        shifted = [Fraction(0), *p]
        width = max(len(q), len(shifted))
        p, q = q, [(2 * k - 1) * _at(q, i) + _at(shifted, i) for i in range(width)]
    return [(_at(p, i) - q[i]) / q[0] for i in range(1, len(q))], [c / q[0] for c in q]


def _at(coefficients: Sequence[Fraction], i: int) -> Fraction:
    return coefficients[i] if i < len(coefficients) else Fraction(0)


def _erf(b: _Body, x: str) -> str:
    """Up to 1 the series; beyond it 1 - exp(-x * x) * p(x), as erfc(x) is too small there for its errors to count."""
    f = b.format
    if f.dtype.bits == 32:
        return _erf_of_float(b, x)
    sign = b.apply("and", b.to_integer(x), b.integer(-(1 << (f.dtype.bits - 1))))
    size = b.to_real(b.apply("xor", b.to_integer(x), sign))
    z = b.apply("fmul", x, x)
    small = b.fma(size, b.polynomial(z, _erf_series(f.erf_terms)), size)
    near = b.where("ogt", size, b.number(f.one), b.number(f.one), size)
    square = b.apply("fmul", near, b.apply("fsub", b.number(-0.0), near))
    middle, half = (f.one + 1) / 2, (f.one - 1) / 2
    place = b.apply("fmul", b.apply("fsub", near, b.number(middle)), b.number(1 / half))
    scaled = b.polynomial(place, _scaled_erfc(f.erfc_terms, 1.0, f.one))
    rest = b.apply("fmul", _exp(b, square), scaled)
    value = b.where("olt", size, b.number(1.0), small, b.apply("fsub", b.number(1.0), rest))
    return b.to_real(b.apply("or", b.to_integer(value), sign))


def _erf_series(terms: int) -> list[Fraction]:
    """The polynomial p in z = x * x of erf x = x + x p."""
    factors = [Fraction((-1) ** k, math.factorial(k) * (2 * k + 1)) for k in range(terms)]
    return [BY_ROOT_PI * c - (k == 0) for k, c in enumerate(factors)]


_ERF_EXP_TERMS = 7
"""Terms of exp in erf of float32, where its errors count little."""


def _erf_of_float(b: _Body, x: str) -> str:
    """Up to 1 a polynomial; beyond it 1 - exp(q(x)), where a few terms are enough for what is so small."""
    f = b.format
    size = b.to_real(b.apply("and", b.to_integer(x), b.integer((1 << 31) - 1)))
    small = b.fma(x, b.polynomial(b.apply("fmul", x, x), _erf_ratio(f.erf_terms)), x)
    near = b.where("ogt", size, b.number(f.one), b.number(f.one), size)
    middle, half = (f.one + 1) / 2, (f.one - 1) / 2
    place = b.fma(near, b.number(1 / half), b.number(-middle / half))
    power = b.polynomial(place, _log_erfc(f.erfc_terms, 1.0, f.one))
    shifter = b.number(f.shifter)
    shifted = b.fma(power, b.number(1 / math.log(2)), shifter)
    r = b.fma(b.apply("fsub", shifted, shifter), b.number(-float(LN2)), power)
    value = b.polynomial(r, [Fraction(1, math.factorial(k)) for k in range(_ERF_EXP_TERMS)])
    scale = b.apply("shl", b.to_integer(shifted), b.integer(f.fraction))  # the shifter's own bits leave at the top
    rest = b.to_real(b.apply("add", b.to_integer(value), scale))
    sign = b.apply("and", b.to_integer(x), b.integer(-(1 << 31)))
    large = b.to_real(b.apply("or", b.to_integer(b.apply("fsub", b.number(1.0), rest)), sign))
    return b.where("ult", size, b.number(1.0), small, large)


@cache
def _erf_ratio(terms: int) -> list[Decimal]:
    """The polynomial p in z = x * x of erf x = x + x p, z up to 1."""
    places = [(1 + t) / 2 for t in _nodes(terms)]
    return _through(places, [_erf_ratio_at(z) for z in places])


def _erf_ratio_at(z: Decimal) -> Decimal:
    term, total, n = Decimal(1), Decimal(1), 0
    while abs(term) > Decimal("1e-30"):
        n += 1
        term = -term * z / n
        total += term / (2 * n + 1)
    return total * _decimal(BY_ROOT_PI) - 1


@cache
def _log_erfc(terms: int, low: float, high: float) -> list[Decimal]:
    """The polynomial in t that is log(erfc(x)), x = (low + high) / 2 + t (high - low) / 2."""
    with localcontext(Context(prec=45)):
        middle, half = Decimal(low + high) / 2, Decimal(high - low) / 2
        places = [middle + half * t for t in _nodes(terms)]
        return _through(_nodes(terms), [_scaled_erfc_at(x).ln() - x * x for x in places])


@cache
def _scaled_erfc(terms: int, low: float, high: float) -> list[Decimal]:
    """The polynomial in t that is exp(x * x) * erfc(x), x = (low + high) / 2 + t (high - low) / 2."""
    with localcontext(Context(prec=45)):
        middle, half = Decimal(low + high) / 2, Decimal(high - low) / 2
        return _through(_nodes(terms), [_scaled_erfc_at(middle + half * t) for t in _nodes(terms)])


def _nodes(terms: int) -> list[Decimal]:
    """Chebyshev's, between -1 and 1."""
    return [Decimal(math.cos(math.pi * (2 * k + 1) / (2 * terms))) for k in range(terms)]


def _through(nodes: Sequence[Decimal], values: Sequence[Decimal]) -> list[Decimal]:
    """The polynomial that has these values in these nodes: Newton's, multiplied out."""
    with localcontext(Context(prec=45)):
        terms, differences = len(nodes), list(values)
        for step in range(1, terms):
            for k in reversed(range(step, terms)):
                differences[k] = (differences[k] - differences[k - 1]) / (nodes[k] - nodes[k - step])
        found: list[Decimal] = []
        for t, difference in zip(reversed(nodes), reversed(differences), strict=True):
            lower = [difference, *found]
            found = [c - t * above for c, above in zip_longest(lower, found, fillvalue=Decimal(0))]
        return found


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


_LOG_TERMS, _EXP_TERMS = 7, 10
"""Terms of the series in a power of float32: what is left out is below 2**-36."""


def _pow(b: _Body, x: str, y: str) -> str:
    """exp(y * log |x|) of float32 in float64, rounded once; the sign is that of x where y is odd."""
    size = b.to_real(b.apply("and", b.to_integer(x), b.integer((1 << 31) - 1)))
    wide = _Body(b.fn, _FORMATS["float64"], b.lanes, b.lines)
    base, exponent = (b.define(f"fpext {b.real} {v} to {wide.real}") for v in (size, y))
    product = wide.apply("fmul", exponent, _log_of_float(wide, base))
    value = b.define(f"fptrunc {wide.real} {_exp_to_float(wide, product)} to {b.real}")
    value = b.where("oeq", size, b.number(1.0), b.number(1.0), value)
    half = b.apply("fmul", y, b.number(0.5))
    sign = b.where("oeq", b.floor(half), half, size, x)
    sign = b.apply("and", b.to_integer(b.where("oeq", b.floor(y), y, sign, size)), b.integer(-(1 << 31)))
    value = b.to_real(b.apply("or", b.to_integer(value), sign))
    below = b.where("oeq", b.floor(y), y, value, b.number(math.nan))
    below = b.where("oeq", size, b.number(math.inf), value, below)
    value = b.where("olt", x, b.number(0.0), below, value)
    value = b.where("uno", x, y, b.number(math.nan), value)
    value = b.where("oeq", x, b.number(1.0), b.number(1.0), value)
    return b.where("oeq", y, b.number(0.0), b.number(1.0), value)


def _log_of_float(b: _Body, x: str) -> str:
    """Of a float32 that is not negative, in float64: within 2**-36 of the right one."""
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


def _exp_to_float(b: _Body, x: str) -> str:
    """In float64, within 2**-36 of the right one, of what is 0 or infinite in float32 no more than that it is."""
    f, narrow = b.format, _FORMATS["float32"]
    low, high, shifter = b.number(narrow.low), b.number(narrow.high), b.number(f.shifter)
    x = b.where("olt", x, low, low, x)
    x = b.where("ogt", x, high, high, x)
    shifted = b.fma(x, b.number(1 / math.log(2)), shifter)
    r = b.fma(b.apply("fsub", shifted, shifter), b.number(-float(LN2)), x)
    value = b.polynomial(r, [Fraction(1, math.factorial(k)) for k in range(_EXP_TERMS)])
    power = b.apply("sub", b.to_integer(shifted), b.integer(f.bits(f.shifter)))
    return b.to_real(b.apply("add", b.to_integer(value), b.apply("shl", power, b.integer(f.fraction))))


FUNCTIONS: dict[str, Callable[[_Body, str], str]] = {"exp": _exp, "log": _log, "tanh": _tanh, "erf": _erf}


def elementary(fn: Function, function: str, x: Value) -> Value:
    """One of FUNCTIONS: a helper, which LLVM inlines."""
    return _called(fn, function, lambda body: FUNCTIONS[function](body, "%x"), {"x": x})


def power(fn: Function, x: Value, y: Value) -> Value:
    """x to the power of y, of float32."""
    return _called(fn, "pow", lambda body: _pow(body, "%x", "%y"), {"x": x, "y": y})


def _called(fn: Function, function: str, made: Callable[[_Body], str], arguments: dict[str, Value]) -> Value:
    """A call of a helper, which is written if it is not there."""
    x = arguments["x"]
    symbol = f"{function}.{suffix(scalar_type(x.type.dtype.name), x.type.lanes)}"
    if symbol not in fn.module.helpers:
        body = _Body(fn, _FORMATS[x.type.dtype.name], x.type.lanes)
        result = made(body)
        parameters = ", ".join(f"{x.text} %{name}" for name in arguments)
        head = f"define internal {x.text} @{symbol}({parameters}) alwaysinline #0"
        fn.module.helpers[symbol] = "\n".join([f"{head} {{", *body.lines, f"  ret {x.text} {result}", "}"])
    operands = ", ".join(a.typed for a in arguments.values())
    return Value(fn.writer.pure(function, f"call {x.text} @{symbol}({operands})"), x.type, x.text)
