"""The instructions of functions that are computed in lanes, while they are written, and the polynomials in them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import zip_longest

from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, literal, scalar_type, suffix, value_type, vector
from opgen.dtypes import DTYPES, DType
from opgen.loop.nodes import Type

LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009")
HALF_PI = Fraction("1.5707963267948966192313216916397514420985846996875529104874722961539")


@dataclass(frozen=True)
class Format:
    """A floating type: its bits are a sign, an exponent and `fraction` bits.

    With these numbers of terms, the error of a truncated series is below a quarter of a unit in the last place.
    Between `low` and `high` are the arguments of exp whose results are neither 0 nor infinite.
    """

    dtype: DType
    integer: DType
    fraction: int
    exp_terms: int
    log_terms: int
    tanh_terms: int
    low: float
    high: float

    @property
    def bias(self) -> int:
        return (1 << (self.dtype.bits - self.fraction - 2)) - 1

    @property
    def shifter(self) -> float:
        """Return a number that, added to a small one, leaves the nearest integer in the last bits of the sum."""
        return 1.5 * 2.0**self.fraction

    def bits(self, value: float) -> int:
        narrow = self.dtype.bits == 32
        return int(struct.unpack("<i" if narrow else "<q", struct.pack("<f" if narrow else "<d", value))[0])

    def parts(self, number: Fraction, count: int) -> list[float]:
        """Split a number into numbers of this format, each the nearest to the rest of the number."""
        found: list[float] = []
        for _ in range(count):
            rest = float(number - sum(map(Fraction, found)))
            found.append(struct.unpack("<f", struct.pack("<f", rest))[0] if self.dtype.bits == 32 else rest)
        return found

    @property
    def ln2(self) -> tuple[float, float]:
        """Return log 2 in two parts; the first has bits to spare for an exact product with an exponent."""
        high = Fraction(round(LN2 * 2 ** (self.fraction - 9)), 2 ** (self.fraction - 9))
        return float(high), float(LN2 - high)


FORMATS = {
    "float32": Format(DTYPES["float32"], DTYPES["int32"], 23, 8, 5, 5, -104.0, 89.0),
    "float64": Format(DTYPES["float64"], DTYPES["int64"], 52, 14, 11, 9, -746.0, 710.0),
}


@dataclass
class Body:
    """The instructions of a helper while they are written; values are names of vectors of one format."""

    fn: Function
    format: Format
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
        """Emit an operation of floats if its name begins with f, else of integers."""
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

    def polynomial(self, x: str, coefficients: Sequence[Fraction | Decimal | float]) -> str:
        """Emit a polynomial by Horner's rule, the highest power's coefficient last."""
        *rest, last = [self.number(float(c)) for c in coefficients]
        value = last
        for c in reversed(rest):
            value = self.fma(value, x, c)
        return value


def nodes(terms: int) -> list[Decimal]:
    """Return Chebyshev's nodes, between -1 and 1."""
    return [Decimal(math.cos(math.pi * (2 * k + 1) / (2 * terms))) for k in range(terms)]


def through(nodes: Sequence[Decimal], values: Sequence[Decimal]) -> list[Decimal]:
    """Return the polynomial that has these values in these nodes: Newton's, multiplied out."""
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


def called(fn: Function, function: str, made: Callable[[Body], str], arguments: dict[str, Value]) -> Value:
    """Return a call of a helper, which is written if it is not there."""
    x = arguments["x"]
    symbol = f"{function}.{suffix(scalar_type(x.type.dtype.name), x.type.lanes)}"
    if symbol not in fn.module.helpers:
        body = Body(fn, FORMATS[x.type.dtype.name], x.type.lanes)
        result = made(body)
        parameters = ", ".join(f"{x.text} %{name}" for name in arguments)
        head = f"define internal {x.text} @{symbol}({parameters}) alwaysinline #0"
        fn.module.helpers[symbol] = "\n".join([f"{head} {{", *body.lines, f"  ret {x.text} {result}", "}"])
    operands = ", ".join(a.typed for a in arguments.values())
    return Value(fn.writer.pure(function, f"call {x.text} @{symbol}({operands})"), x.type, x.text)
