"""atan2, erfc, lgamma and digamma, made of the loop IR's operations.

The tables are coefficients of polynomials, that of the constant first, which agree with the functions at Chebyshev's
points; their errors are below a tenth of a unit in the last place.  Sources of the formulas: the reflection and
Stirling's series of lgamma in M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions" (1964), 6.1.17 and
6.1.40, those of digamma 6.3.5, 6.3.7 and 6.3.18; the variable of erfc, in which one polynomial serves all numbers from
1/4 on, M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", Mathematics of
Computation 36 (1981).

Errors, in units in the last place: of atan2 below 2.5, of erfc below 5, of lgamma below 3.  From -1/2 down, those of
lgamma are below 6 units of the larger of the two numbers that the reflection subtracts.  Those of digamma are below 8
units of the largest number that is added: 1 / |x|, log(|x| + 8), and pi cot(pi x) below 0.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from opgen.dtypes import INT32, INT64
from opgen.loop import build as b
from opgen.loop.nodes import Binary, Compare, Expr, Select, Unary
from opgen.lower.forms import add, call, div, fma, mul, number, polynomial, sub, where

_Table: TypeAlias = dict[str, tuple[float, ...]]

_PI: _Table = {"float32": (3.1415927410125732, -8.742278e-08), "float64": (math.pi, 1.2246467991473532e-16)}
"""pi as the nearest number, and the rest."""
_ERFC_IS_0 = {"float32": 11.0, "float64": 28.0}
"""From it on, erfc rounds to 0."""
_SCALED_ERFC: _Table = {
    "float32": (
        1.0740069, -0.8833945, 0.59022844, -0.3104659, 0.119527735, -0.026840843, -0.001222158, 0.003083986,
        -0.00048676485, -0.00032857445,
    ),
    "float64": (
        1.0740069070883398, -0.8833944531698835, 0.5902283571041037, -0.3104672619005753, 0.11952776128719057,
        -0.026827234624194014, -0.0012124166251366423, 0.003034061996364177, -0.0005483097139428547,
        -0.0002767778004294708, 0.0001075616274246869, 3.0397894894863234e-05, -1.7471138212991117e-05,
        -4.748209061844591e-06, 2.76693662227997e-06, 9.963498866219204e-07, -4.107632580806098e-07,
        -2.2932266812309624e-07, 4.937044953166604e-08, 4.616284861556296e-08, -3.3993989367393416e-09,
        -5.606027276461952e-09,
    ),
}  # fmt: skip
"""exp(x * x) * erfc(x) * (x + 3) in (x - 3) / (x + 3), x from 1/4 on."""
_ABOUT_1: _Table = {
    "float32": (
        -0.5772157, 0.8224669, -0.40068552, 0.27059427, -0.2073982, 0.16913451, -0.14365292, 0.13109551, -0.11657937,
        0.06530931, -0.058302138, 0.17973927, -0.16729733,
    ),
    "float64": (
        -0.5772156649015329, 0.8224670334241132, -0.4006856343865406, 0.2705808084277935, -0.2073855510262953,
        0.16955717699509998, -0.14404989701106719, 0.1255096697597847, -0.1113342530365414, 0.10009944506030896,
        -0.09095442301348973, 0.08335423437020126, -0.07692423568567124, 0.07142491150665906, -0.06678275881746833,
        0.0626116167474043, -0.057737256640806416, 0.054501409023364235, -0.059850048562680856, 0.057003000096539545,
        -0.014509338086091672, 0.01333577663873192, -0.14497971020532596, 0.14011729595820724, 0.1528715168258553,
        -0.14857260899606312, -0.22471180158915516, 0.21762817640022097,
    ),
}  # fmt: skip
"""lgamma(1 + t) / t in t from -1/2 to 1/2."""
_ABOUT_2: _Table = {
    "float32": (
        0.42278433, 0.32246703, -0.067352295, 0.020581625, -0.0073859207, 0.0028788687, -0.0011874848, 0.00057025126,
        -0.00025056204,
    ),
    "float64": (
        0.42278433509846713, 0.3224670334241132, -0.06735230105319563, 0.02058080842778338, -0.007385551028935545,
        0.002890510330865901, -0.0011927539009983087, 0.0005096695196526673, -0.00022315497746292723,
        9.945761692157133e-05, -4.4923727564247656e-05, 2.050601970174762e-05, -9.45628851510172e-06,
        4.3828545383846665e-06, -1.9743106888421067e-06, 9.242852225162277e-07, -5.811277768921246e-07,
        2.7475390051909663e-07,
    ),
}  # fmt: skip
"""lgamma(2 + t) / t in t from -1/2 to 1/2."""
_STIRLING: _Table = {
    "float32": (
        0.083333336, -0.0027776984, 0.0007800339,
    ),
    "float64": (
        0.08333333333333333, -0.002777777777773982, 0.0007936507897492187, -0.0005952365838084739,
        0.0008414700110573563, -0.0018903792026145536, 0.005065830821990134,
    ),
}  # fmt: skip
"""x times the rest of Stirling's formula for lgamma(x), in 1 / (x * x), x from 8 on."""

_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
"""digamma(x) - (log(x) - 1 / (2 x)), in 1 / x**2 and its powers (6.3.18)."""


def atan2(y: Expr, x: Expr) -> Expr:
    """Return the angle of the point (x, y) from -pi to pi; signs of zeros count, and of two infinities the signs alone.

    It is atan of the smaller of |x| and |y| over the larger, taken from pi / 2 where |y| is larger and from pi where x
    is negative.
    """
    wide, high = call("abs", x), call("abs", y)
    least, most = Binary("min", wide, high), Binary("max", wide, high)
    ratio = where("eq", most, 0.0, most, where("eq", least, math.inf, number(1.0, x), div(least, most)))
    pi, rest = _PI[x.type.dtype.name]
    angle = call("atan", ratio)
    from_half = sub(number(pi / 2, x), sub(angle, number(rest / 2, x)))
    angle = Select(Compare("gt", high, wide), from_half, angle)
    angle = Select(_is_signed(x), sub(number(pi, x), sub(angle, number(rest, x))), angle)
    return Select(_is_signed(y), Unary("neg", angle), angle)


def _is_signed(x: Expr) -> Expr:
    """Return a condition: the sign of a number is set, of -0 too."""
    bits = b.bit_cast(INT32 if x.type.dtype.bits == 32 else INT64, x)
    return Compare("lt", bits, number(0, bits))


def erfc(x: Expr) -> Expr:
    """Return 1 - erf(x), and from 1/4 on exp(-x * x) p(q) / (x + 3) with q = (x - 3) / (x + 3).

    The rounding errors of x + 3, its inverse and the square are corrected to first order.
    """
    name = x.type.dtype.name
    near = sub(number(1.0, x), call("erf", x))
    size = Binary("min", x, number(_ERFC_IS_0[name], x))
    three = number(3.0, x)
    raised = add(size, three)
    part = div(number(1.0, x), raised)
    left = fma(part, sub(sub(raised, three), size), fma(Unary("neg", part), raised, number(1.0, x)))
    part = fma(part, left, part)
    scaled = mul(part, polynomial(fma(number(-6.0, x), part, number(1.0, x)), _SCALED_ERFC[name]))
    square = mul(size, size)
    lost = fma(size, size, Unary("neg", square))
    far = mul(call("exp", Unary("neg", square)), fma(Unary("neg", lost), scaled, scaled))
    return where("lt", x, 0.25, near, far)


def lgamma(x: Expr) -> Expr:
    """log |gamma(x)|; infinity at 0, -1, -2 and so on, and at both infinities.

    Of sizes below 1/2 that of 1 + x less log |x|; to 1.5 and to 2.5 polynomials that are 0 where it is; to 8 that of
    x - k and the log of the product (x - 1) ... (x - k); beyond it Stirling's.  From -1/2 down by the reflection
    gamma(x) gamma(-x) = -pi / (x sin(pi x)).
    """
    name, size = x.type.dtype.name, call("abs", x)
    one, half = number(1.0, x), number(0.5, x)
    place = where("lt", size, 0.5, x, sub(size, one))
    about_1 = mul(place, polynomial(place, _ABOUT_1[name]))
    down, product = size, one
    for _ in range(6):
        less = sub(down, one)
        product = where("lt", down, 2.5, product, mul(product, less))
        down = where("lt", down, 2.5, down, less)
    place = sub(down, number(2.0, x))
    about_2 = mul(place, polynomial(place, _ABOUT_2[name]))
    inside = where("lt", size, 8.0, product, size)
    logarithm = call("log", where("lt", size, 0.5, size, inside))
    inverse = div(one, size)
    rest = fma(inverse, polynomial(mul(inverse, inverse), _STIRLING[name]), number(math.log(2 * math.pi) / 2 - 0.5, x))
    value = fma(sub(size, half), sub(logarithm, one), rest)
    value = where("lt", size, 8.0, add(about_2, logarithm), value)
    value = where("lt", size, 1.5, about_1, value)
    value = where("lt", size, 0.5, sub(about_1, logarithm), value)
    return where("le", x, -0.5, _reflected(size, value), value)


def _reflected(size: Expr, value: Expr) -> Expr:
    """Return lgamma of -size from that of size."""
    part = sub(size, call("floor", size))
    part = where("gt", part, 0.5, sub(number(1.0, size), part), part)
    pi = number(math.pi, size)
    mirrored = sub(call("log", div(pi, mul(size, call("sin", mul(pi, part))))), value)
    return where("lt", size, math.inf, where("eq", part, 0.0, number(math.inf, size), mirrored), size)


def digamma(x: Expr) -> Expr:
    """Return the derivative of lgamma; NaN at 0, -1, -2 and so on.

    From 8 on the series; to 8 that of x + k less 1 / x + ... + 1 / (x + k - 1); below 0 by the reflection
    digamma(-x) = digamma(x) + 1 / x + pi cot(pi x).
    """
    size, one = call("abs", x), number(1.0, x)
    raised, lost = size, number(0.0, x)
    for _ in range(8):
        lost = where("lt", raised, 8.0, add(lost, div(one, raised)), lost)
        raised = where("lt", raised, 8.0, add(raised, one), raised)
    inverse = div(one, raised)
    square = mul(inverse, inverse)
    series = fma(square, polynomial(square, _DIGAMMA), mul(number(0.5, x), inverse))
    value = sub(sub(call("log", raised), series), lost)
    part = sub(size, call("floor", size))
    part = mul(number(math.pi, x), where("gt", part, 0.5, sub(part, one), part))
    turned = div(mul(number(math.pi, x), call("cos", part)), call("sin", part))
    mirrored = add(add(value, div(one, size)), turned)
    mirrored = where("eq", part, 0.0, number(math.nan, x), mirrored)
    return where("gt", x, 0.0, value, where("lt", x, 0.0, mirrored, where("eq", x, 0.0, number(math.nan, x), x)))
