"""Scalar functions of the mathematics, and operations on integer elements, made of what the loop IR has.

What is given here is a value of the loop IR that is computed once, however often it stands in the result: emitters
share equal parts.  Functions that the loop IR has itself are left to it.  Errors are below 2.5 units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

from opgen.diagnostics import InternalError
from opgen.dtypes import DType, wrap
from opgen.loop import build as b
from opgen.loop.nodes import Binary, BinaryOp, Call, Compare, CompareOp, Expr, Function, Select, Unary
from opgen.loop.syntax import FUNCTIONS

_SMALL = {"float32": 2.0**-12, "float64": 2.0**-27}
"""Of each type: below it the odd functions here are their argument, as the next term of their series is lost."""
_LARGE = {"float32": 2.0**13, "float64": 2.0**28}
"""From it on, x is sqrt(x * x + 1) and sqrt(x * x - 1)."""
_SINH_TERMS = {"float32": 5, "float64": 8}
"""What is left out of the series is below a quarter of a unit in the last place."""
_STEEP = {"float32": 80.0, "float64": 700.0}
"""Up to it exp is finite, and from it on exp(-x) is lost beside exp(x)."""


def applied(function: str, x: Expr) -> Expr:
    """A scalar function of a value of the type it is computed in; a bool of isnan and isinf."""
    if function in FUNCTIONS:
        return _call(cast("Function", function), x)
    return _MADE[function](x)


def combined(op: str, left: Expr, right: Expr) -> Expr:
    """An operation of the mathematics on two elements of one type."""
    dtype = left.type.dtype
    if op == "/":
        return Binary("quot" if dtype.is_int else "div", left, right)
    if op == "%":
        return _floor_remainder(left, right)
    if op == "//":
        return _floor_quotient(left, right)
    if op == "pow":
        return Call("pow", (left, right))
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


# Short forms ----------------------------------------------------------------------------------------


def _number(value: float, like: Expr) -> Expr:
    return b.const(value, like.type.dtype, like.type.lanes)


def _call(function: Function, x: Expr) -> Expr:
    return Call(function, (x,))


def _add(x: Expr, y: Expr) -> Expr:
    return Binary("add", x, y)


def _sub(x: Expr, y: Expr) -> Expr:
    return Binary("sub", x, y)


def _mul(x: Expr, y: Expr) -> Expr:
    return Binary("mul", x, y)


def _div(x: Expr, y: Expr) -> Expr:
    return Binary("div", x, y)


def _where(op: CompareOp, x: Expr, bound: float, then: Expr, otherwise: Expr) -> Expr:
    return Select(Compare(op, x, _number(bound, x)), then, otherwise)


def _limit(table: dict[str, float], x: Expr) -> float:
    return table[x.type.dtype.name]


def _odd(x: Expr, size: Expr, value: Expr) -> Expr:
    """An odd function of x from its value for |x|, and x itself where it is small: so is -0.0."""
    return _where("lt", size, _limit(_SMALL, x), x, _where("lt", x, 0.0, Unary("neg", value), value))


# Integers -------------------------------------------------------------------------------------------


def _floor_quotient(x: Expr, y: Expr) -> Expr:
    quotient = Binary("quot", x, y)
    if not x.type.dtype.signed:
        return quotient
    return Select(_opposite(Binary("rem", x, y), y), _sub(quotient, _number(1, x)), quotient)


def _floor_remainder(x: Expr, y: Expr) -> Expr:
    """The remainder with the sign of the divisor, of floats too."""
    rest = Binary("rem", x, y)
    if x.type.dtype.is_int and not x.type.dtype.signed:
        return rest
    return Select(_opposite(rest, y), _add(rest, y), rest)


def _opposite(rest: Expr, divisor: Expr) -> Expr:
    """Whether a remainder is not 0 and has another sign than a divisor."""
    zero = _number(0, rest)
    below = Binary("xor", Compare("lt", rest, zero), Compare("lt", divisor, zero))
    return Binary("and", Compare("ne", rest, zero), below)


def _bit_not(x: Expr) -> Expr:
    return Binary("xor", x, _number(wrap(-1, x.type.dtype), x))


def _sign(x: Expr) -> Expr:
    """1, -1, or x, which is 0 or NaN."""
    dtype: DType = x.type.dtype
    below = x if dtype.is_int and not dtype.signed else _where("lt", x, 0, _number(-1, x), x)
    return _where("gt", x, 0, _number(1, x), below)


# Floats ---------------------------------------------------------------------------------------------


def _trunc(x: Expr) -> Expr:
    return _where("lt", x, 0.0, _call("ceil", x), _call("floor", x))


def _isinf(x: Expr) -> Expr:
    return Compare("eq", _call("abs", x), _number(math.inf, x))


def _rsqrt(x: Expr) -> Expr:
    return _div(_number(1.0, x), _call("sqrt", x))


def _sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)), of the negative numbers exp(x) / (exp(x) + 1)."""
    small = _call("exp", Unary("neg", _call("abs", x)))
    one = _number(1.0, x)
    return _div(_where("lt", x, 0.0, small, one), _add(one, small))


def _expm1(x: Expr) -> Expr:
    """exp(x) - 1; of small x times what log makes of the difference that x should make (W. Kahan)."""
    grown = _call("exp", x)
    change = _sub(grown, _number(1.0, x))
    small = _where("eq", change, 0.0, x, _mul(change, _div(x, _call("log", grown))))
    return _where("lt", _call("abs", x), 1.0, small, change)


def _log1p(x: Expr) -> Expr:
    """log(1 + x), of small x times what is left of x in 1 + x (the HP-15C's)."""
    raised = _add(x, _number(1.0, x))
    logarithm = _call("log", raised)
    change = _sub(raised, _number(1.0, x))
    small = _where("eq", change, 0.0, x, _mul(logarithm, _div(x, change)))
    return _where("lt", _call("abs", x), 1.0, small, logarithm)


def _sinh(x: Expr) -> Expr:
    """(e - 1 / e) / 2 with e = exp(|x|), below 1 the series x + x**3 / 3! + x**5 / 5! + ..."""
    size, half = _call("abs", x), _number(0.5, x)
    grown, square = _call("exp", size), _mul(size, size)
    terms = [_number(1 / math.factorial(2 * k + 3), x) for k in range(_SINH_TERMS[x.type.dtype.name])]
    rest = terms.pop()
    while terms:
        rest = Call("fma", (rest, square, terms.pop()))
    near = Call("fma", (_mul(size, square), rest, size))
    value = _where("lt", size, 1.0, near, _sub(_mul(half, grown), _div(half, grown)))
    return _odd(x, size, _where("lt", size, _limit(_STEEP, x), value, _steep(size)))


def _cosh(x: Expr) -> Expr:
    size, half = _call("abs", x), _number(0.5, x)
    grown = _call("exp", size)
    value = _add(_mul(half, grown), _div(half, grown))
    return _where("lt", size, _limit(_STEEP, x), value, _steep(size))


def _steep(size: Expr) -> Expr:
    """exp(x) / 2, where exp(x) may overflow before its half does."""
    half = _number(0.5, size)
    root = _call("exp", _mul(half, size))
    return _mul(_mul(half, root), root)


def _asinh(x: Expr) -> Expr:
    size, one = _call("abs", x), _number(1.0, x)
    square = _mul(size, size)
    near = _log1p(_add(size, _div(square, _add(one, _call("sqrt", _add(square, one))))))
    return _odd(x, size, _where("lt", size, _limit(_LARGE, x), near, _log_of_twice(size)))


def _acosh(x: Expr) -> Expr:
    above = _sub(x, _number(1.0, x))
    near = _log1p(_add(above, _call("sqrt", _mul(above, _add(x, _number(1.0, x))))))
    value = _where("lt", x, _limit(_LARGE, x), near, _log_of_twice(x))
    return _where("ge", x, 1.0, value, _number(math.nan, x))


def _log_of_twice(x: Expr) -> Expr:
    return _add(_call("log", x), _number(math.log(2), x))


def _atanh(x: Expr) -> Expr:
    size = _call("abs", x)
    ratio = _div(_add(size, size), _sub(_number(1.0, x), size))
    return _odd(x, size, _mul(_number(0.5, x), _log1p(ratio)))


def _tan(x: Expr) -> Expr:
    return _div(_call("sin", x), _call("cos", x))


def _asin(x: Expr) -> Expr:
    one = _number(1.0, x)
    return _call("atan", _div(x, _call("sqrt", _mul(_sub(one, x), _add(one, x)))))


def _acos(x: Expr) -> Expr:
    """Twice the angle whose tangent is sqrt((1 - x) / (1 + x))."""
    one = _number(1.0, x)
    root = _div(_call("sqrt", _sub(one, x)), _call("sqrt", _add(one, x)))
    return _mul(_number(2.0, x), _call("atan", root))


_MADE: dict[str, Callable[[Expr], Expr]] = {
    "bit_not": _bit_not,
    "sign": _sign,
    "trunc": _trunc,
    "isnan": lambda x: Compare("ne", x, x),
    "isinf": _isinf,
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "exp2": lambda x: Call("pow", (_number(2.0, x), x)),
    "expm1": _expm1,
    "log1p": _log1p,
    "tan": _tan,
    "asin": _asin,
    "acos": _acos,
    "sinh": _sinh,
    "cosh": _cosh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
}
