"""sin and cos of float32 and float64, all lanes at once; for great numbers the C library's.

The argument minus the nearest multiple of pi / 2 is below pi / 4, where a few terms are enough.  It is subtracted in
three parts (W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980).  The first difference is
exact, the others are rounded once.  Errors are below 1.7 units in the last place.  The library is called only where one
of the lanes is great, and its result is taken in those lanes alone, so that no result depends on other lanes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cache

from opgen.codegen.llvm.bodies import HALF_PI, Body, called, nodes, through
from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.library import library_symbol
from opgen.codegen.llvm.types import Value, vector
from opgen.loop.nodes import Type

WAVES = {"sin": 0, "cos": 1}
"""The functions, and the number of quarter turns by which each leads the sine."""


@dataclass(frozen=True)
class _Reach:
    """Up to `limit` the parts of pi / 2 are exact enough; terms of the polynomials of sine and cosine."""

    limit: float
    sine: int
    cosine: int


_REACHES = {"float32": _Reach(2.0**16, 3, 4), "float64": _Reach(2.0**30, 7, 7)}


def wave(fn: Function, function: str, x: Value) -> Value:
    """Return one of WAVES: a helper, which LLVM inlines."""
    return called(fn, function, lambda body: _wave(body, function, "%x"), {"x": x})


def _wave(b: Body, function: str, x: str) -> str:
    b.lines.append("entry:")
    bits = b.format.dtype.bits
    size = b.to_real(b.apply("and", b.to_integer(x), b.integer((1 << (bits - 1)) - 1)))
    value, quarters = _in_quarters(b, size, WAVES[function])
    turned = b.apply("shl", quarters, b.integer(bits - 2))
    if function == "sin":
        turned = b.apply("xor", turned, b.to_integer(x))
    sign = b.apply("and", turned, b.integer(-(1 << (bits - 1))))
    value = b.to_real(b.apply("xor", b.to_integer(value), sign))
    return _beyond(b, function, x, size, _REACHES[b.format.dtype.name].limit, value)


def _in_quarters(b: Body, size: str, ahead: int) -> tuple[str, str]:
    """Return the value without its sign, and the number of quarter turns, whose second bit is the sign."""
    reach, shifter = _REACHES[b.format.dtype.name], b.number(b.format.shifter)
    shifted = b.fma(size, b.number(2 / math.pi), shifter)
    count, rest = b.apply("fsub", shifted, shifter), size
    for part in b.format.parts(HALF_PI, 3):
        rest = b.fma(count, b.number(-part), rest)
    quarters = b.to_integer(shifted)  # the shifter's own last bits are 0
    if ahead:
        quarters = b.apply("add", quarters, b.integer(ahead))
    z = b.apply("fmul", rest, rest)
    sine = b.fma(b.apply("fmul", rest, z), b.polynomial(z, _terms(reach.sine, 3)), rest)
    cosine = b.fma(z, b.polynomial(z, _terms(reach.cosine, 2)), b.number(1.0))
    even = b.define(f"icmp eq {b.whole} {b.apply('and', quarters, b.integer(1))}, {b.integer(0)}")
    return b.define(f"select {vector('i1', b.lanes)} {even}, {b.real} {sine}, {b.real} {cosine}"), quarters


@cache
def _terms(count: int, first: int) -> list[Decimal]:
    """Return the polynomial in z = r * r, r up to pi / 4, of an alternating series.

    Its terms are every second 1 / n! from n = `first` on: with 3 it is (sin(r) - r) / r**3, with 2 (cos(r) - 1) / r**2.
    """
    with localcontext(Context(prec=45)):
        places = [(1 + t) * Decimal("0.31") for t in nodes(count)]
        return through(places, [_series(z, first) for z in places])


def _series(z: Decimal, first: int) -> Decimal:
    return sum(((-1) ** (k + 1) * z**k / math.factorial(2 * k + first) for k in range(16)), Decimal(0))


def _beyond(b: Body, function: str, x: str, size: str, limit: float, value: str) -> str:
    """Return `value`, but the library's in lanes beyond the limit; NaN is left."""
    flags = vector("i1", b.lanes)
    great = b.define(f"fcmp ogt {b.real} {size}, {b.number(limit)}")
    some = great
    if b.lanes > 1:
        name = f"llvm.vector.reduce.or.v{b.lanes}i1"
        some = b.define(f"call i1 {b.fn.module.declare(name, f'i1 @{name}({flags})')}({flags} {great})")
    symbol = library_symbol(b.fn, function, Type(b.format.dtype, b.lanes), 1)
    b.lines += [f"  br i1 {some}, label %beyond, label %end", "beyond:"]
    other = b.define(f"call {b.real} {symbol}({b.real} {x})")
    mixed = b.define(f"select {flags} {great}, {b.real} {other}, {b.real} {value}")
    b.lines += ["  br label %end", "end:"]
    return b.define(f"phi {b.real} [ {value}, %entry ], [ {mixed}, %beyond ]")
