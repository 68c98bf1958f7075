"""Scalar functions of the mathematics, and operations on integer elements, made of the loop IR's operations.

An operand here is a value of the loop IR that is computed once, however often it occurs in the result: emitters share
equal parts.  Functions that the loop IR has itself are left to it.  Errors are below 2.5 units in the last place,
except for two functions in `opgen.lower.special`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

from opgen.diagnostics import InternalError
from opgen.dtypes import INT32, INT64, DType, wrap
from opgen.loop import build as b
from opgen.loop.nodes import Binary, BinaryOp, Call, Compare, Expr, Function, Select, Unary
from opgen.loop.syntax import FUNCTIONS
from opgen.lower.forms import add, call, div, fma, mul, number, sub, where
from opgen.lower.special import atan2, digamma, erfc, lgamma

_SMALL = {"float32": 2.0**-12, "float64": 2.0**-27}
"""Of each type: below it the odd functions here are their argument, as the next term of their series is lost."""
_LARGE = {"float32": 2.0**13, "float64": 2.0**28}
"""From it on, x is sqrt(x * x + 1) and sqrt(x * x - 1)."""
_SINH_TERMS = {"float32": 5, "float64": 8}
"""The rest of the series is below a quarter of a unit in the last place."""
_STEEP = {"float32": 80.0, "float64": 700.0}
"""Bound up to which exp is finite, and from which exp(-x) is lost when added to exp(x)."""

_BITS = {"float32": (INT32, 23, 2.0**-126, 0x3F3504F3), "float64": (INT64, 52, 2.0**-1022, 0x3FE6A09E667F3BCD)}
"""Integers of as many bits, the bits of a fraction, the least normal number, and the bits of the root of 1/2."""
_PER_LOG2 = {
    "float32": (1.4426950216293335, 1.9259629911266175e-08),
    "float64": (1.4426950408889634, 2.0355273740931033e-17),
}
"""1 / log(2) as the nearest number, and the rest."""


def applied(function: str, x: Expr) -> Expr:
    """Return a scalar function of a value of the type it is computed in; a bool of isnan and isinf."""
    if function in FUNCTIONS:
        return call(cast("Function", function), x)
    return _MADE[function](x)


def combined(op: str, left: Expr, right: Expr) -> Expr:
    """Return an operation of the mathematics on two elements of one type."""
    dtype = left.type.dtype
    if op == "/":
        return Binary("quot" if dtype.is_int else "div", left, right)
    if op == "%":
        return _floor_remainder(left, right)
    if op == "//":
        return _floor_quotient(left, right)
    if op == "pow":
        return Call("pow", (left, right))
    if op == "atan2":
        return atan2(left, right)
    if op not in _OPERATIONS:
        raise InternalError(f"operator {op!r} is not of the mathematics")
    return b.binary(_OPERATIONS[op], left, right)


_OPERATIONS: dict[str, BinaryOp] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "min": "min",
    "max": "max",
    "rem": "rem",
    "bit_and": "and",
    "bit_or": "or",
    "bit_xor": "xor",
    "shift_left": "shl",
    "shift_right": "shr",
}


# Integers -------------------------------------------------------------------------------------------


def _floor_quotient(x: Expr, y: Expr) -> Expr:
    quotient = Binary("quot", x, y)
    if not x.type.dtype.signed:
        return quotient
    return Select(_opposite(Binary("rem", x, y), y), sub(quotient, number(1, x)), quotient)


def _floor_remainder(x: Expr, y: Expr) -> Expr:
    """Return the remainder with the sign of the divisor, of floats too."""
    rest = Binary("rem", x, y)
    if x.type.dtype.is_int and not x.type.dtype.signed:
        return rest
    return Select(_opposite(rest, y), add(rest, y), rest)


def _opposite(rest: Expr, divisor: Expr) -> Expr:
    """Return a condition: a remainder is not 0 and has another sign than a divisor."""
    zero = number(0, rest)
    below = Binary("xor", Compare("lt", rest, zero), Compare("lt", divisor, zero))
    return Binary("and", Compare("ne", rest, zero), below)


def _bit_not(x: Expr) -> Expr:
    return Binary("xor", x, number(wrap(-1, x.type.dtype), x))


def _sign(x: Expr) -> Expr:
    """1, -1, or x, which is 0 or NaN."""
    dtype: DType = x.type.dtype
    below = x if dtype.is_int and not dtype.signed else where("lt", x, 0, number(-1, x), x)
    return where("gt", x, 0, number(1, x), below)


# Floats ---------------------------------------------------------------------------------------------


def _limit(table: dict[str, float], x: Expr) -> float:
    return table[x.type.dtype.name]


def _odd(x: Expr, size: Expr, value: Expr) -> Expr:
    """Return an odd function of x from its value for |x|, and x itself where it is small: so is -0.0."""
    return where("lt", size, _limit(_SMALL, x), x, where("lt", x, 0.0, Unary("neg", value), value))


def _trunc(x: Expr) -> Expr:
    return where("lt", x, 0.0, call("ceil", x), call("floor", x))


def _isinf(x: Expr) -> Expr:
    return Compare("eq", call("abs", x), number(math.inf, x))


def _rsqrt(x: Expr) -> Expr:
    return div(number(1.0, x), call("sqrt", x))


def _sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)), of the negative numbers exp(x) / (exp(x) + 1)."""
    small = call("exp", Unary("neg", call("abs", x)))
    one = number(1.0, x)
    return div(where("lt", x, 0.0, small, one), add(one, small))


def _expm1(x: Expr) -> Expr:
    """Return exp(x) - 1; for small x, x scaled by the ratio between log's result and its argument (W. Kahan)."""
    grown = call("exp", x)
    change = sub(grown, number(1.0, x))
    small = where("eq", change, 0.0, x, mul(change, div(x, call("log", grown))))
    return where("lt", call("abs", x), 1.0, small, change)


def _log1p(x: Expr) -> Expr:
    """Return log(1 + x); for small x, scaled by x over the part of x that is left in 1 + x (the HP-15C's method)."""
    raised = add(x, number(1.0, x))
    logarithm = call("log", raised)
    change = sub(raised, number(1.0, x))
    small = where("eq", change, 0.0, x, mul(logarithm, div(x, change)))
    return where("lt", call("abs", x), 1.0, small, logarithm)


def _log2(x: Expr) -> Expr:
    """e + log(m) / log(2) of x = 2**e * m with m between the roots of 1/2 and 2: exact of powers of two.

    e and m are read from the bits of x, which is multiplied by a power of two first where it is subnormal.
    """
    whole, fraction, least, root = _BITS[x.type.dtype.name]

    def bits(value: int) -> Expr:
        return b.const(value, whole, x.type.lanes)

    raised = fraction + 1
    normal = where("lt", x, least, mul(x, number(2.0**raised, x)), x)
    word = b.bit_cast(whole, normal)
    exponent = Binary("shr", sub(word, bits(root)), bits(fraction))
    mantissa = b.bit_cast(x.type.dtype, sub(word, Binary("shl", exponent, bits(fraction))))
    counted = sub(b.cast(x.type.dtype, exponent), where("lt", x, least, number(raised, x), number(0.0, x)))
    logarithm, (above, below) = call("log", mantissa), _PER_LOG2[x.type.dtype.name]
    rest = fma(logarithm, number(below, x), counted)
    value = fma(logarithm, number(above, x), rest)
    value = where("lt", x, 0.0, number(math.nan, x), where("eq", x, 0.0, number(-math.inf, x), value))
    return where("lt", x, math.inf, value, x)


def _sinh(x: Expr) -> Expr:
    """(e - 1 / e) / 2 with e = exp(|x|), below 1 the series x + x**3 / 3! + x**5 / 5! + ..."""
    size, half = call("abs", x), number(0.5, x)
    grown, square = call("exp", size), mul(size, size)
    terms = [number(1 / math.factorial(2 * k + 3), x) for k in range(_SINH_TERMS[x.type.dtype.name])]
    rest = terms.pop()
    while terms:
        rest = Call("fma", (rest, square, terms.pop()))
    near = fma(mul(size, square), rest, size)
    value = where("lt", size, 1.0, near, sub(mul(half, grown), div(half, grown)))
    return _odd(x, size, where("lt", size, _limit(_STEEP, x), value, _steep(size)))


def _cosh(x: Expr) -> Expr:
    size, half = call("abs", x), number(0.5, x)
    grown = call("exp", size)
    value = add(mul(half, grown), div(half, grown))
    return where("lt", size, _limit(_STEEP, x), value, _steep(size))


def _steep(size: Expr) -> Expr:
    """exp(x) / 2, where exp(x) may overflow before its half does."""
    half = number(0.5, size)
    root = call("exp", mul(half, size))
    return mul(mul(half, root), root)


def _asinh(x: Expr) -> Expr:
    size, one = call("abs", x), number(1.0, x)
    square = mul(size, size)
    near = _log1p(add(size, div(square, add(one, call("sqrt", add(square, one))))))
    return _odd(x, size, where("lt", size, _limit(_LARGE, x), near, _log_of_twice(size)))


def _acosh(x: Expr) -> Expr:
    above = sub(x, number(1.0, x))
    near = _log1p(add(above, call("sqrt", mul(above, add(x, number(1.0, x))))))
    value = where("lt", x, _limit(_LARGE, x), near, _log_of_twice(x))
    return where("ge", x, 1.0, value, number(math.nan, x))


def _log_of_twice(x: Expr) -> Expr:
    return add(call("log", x), number(math.log(2), x))


def _atanh(x: Expr) -> Expr:
    size = call("abs", x)
    ratio = div(add(size, size), sub(number(1.0, x), size))
    return _odd(x, size, mul(number(0.5, x), _log1p(ratio)))


def _tan(x: Expr) -> Expr:
    return div(call("sin", x), call("cos", x))


def _asin(x: Expr) -> Expr:
    one = number(1.0, x)
    return call("atan", div(x, call("sqrt", mul(sub(one, x), add(one, x)))))


def _acos(x: Expr) -> Expr:
    """Twice the angle whose tangent is sqrt((1 - x) / (1 + x))."""
    one = number(1.0, x)
    root = div(call("sqrt", sub(one, x)), call("sqrt", add(one, x)))
    return mul(number(2.0, x), call("atan", root))


_MADE: dict[str, Callable[[Expr], Expr]] = {
    "bit_not": _bit_not,
    "sign": _sign,
    "trunc": _trunc,
    "isnan": lambda x: Compare("ne", x, x),
    "isinf": _isinf,
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "exp2": lambda x: Call("pow", (number(2.0, x), x)),
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": _log2,
    "erfc": erfc,
    "lgamma": lgamma,
    "digamma": digamma,
    "tan": _tan,
    "asin": _asin,
    "acos": _acos,
    "sinh": _sinh,
    "cosh": _cosh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
}
