"""Integer division that rounds towards minus infinity, from instructions that round towards zero.

Dividing an unsigned integer, these are the quotient and remainder as they are; by 0 the quotient is the dividend.
"""

from __future__ import annotations

from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import splat, vector


def floor_division(fn: Function, scalar: str, lanes: int, a: str, b: str, divisor: int | None) -> str:
    """a / b rounded down; `divisor` is b where it is constant.  Wraps where the quotient does not fit."""
    w, t = fn.writer, vector(scalar, lanes)
    if divisor is not None and divisor > 0:
        if divisor & (divisor - 1) == 0:
            shift = splat(scalar, str(divisor.bit_length() - 1), lanes)
            return a if divisor == 1 else w.pure("quotient", f"ashr {t} {a}, {shift}")
        quotient = w.pure("quotient", f"sdiv {t} {a}, {b}")
        return w.pure("floor", f"add {t} {quotient}, {_borrow(fn, scalar, lanes, a, b, quotient)}")
    quotient, _, below = _truncated(fn, scalar, lanes, a, b, divisor)
    flag = vector("i1", lanes)
    lower = w.pure("lower", f"sext {flag} {below} to {t}")
    return w.pure("floor", f"add {t} {quotient}, {lower}")


def floor_remainder(fn: Function, scalar: str, lanes: int, a: str, b: str, divisor: int | None) -> str:
    """a - b * floor(a / b), which has the sign of b."""
    w, t = fn.writer, vector(scalar, lanes)
    if divisor is not None and divisor > 0:
        if divisor & (divisor - 1) == 0:
            return w.pure("remainder", f"and {t} {a}, {splat(scalar, str(divisor - 1), lanes)}")
        remainder = w.pure("remainder", f"srem {t} {a}, {b}")
        negative = w.pure("negative", f"ashr {t} {remainder}, {splat(scalar, _top(scalar), lanes)}")
        raised = w.pure("raise", f"and {t} {negative}, {b}")
        return w.pure("modulo", f"add {t} {remainder}, {raised}")
    _, remainder, below = _truncated(fn, scalar, lanes, a, b, divisor)
    flag, zero = vector("i1", lanes), splat(scalar, "0", lanes)
    raised = w.pure("raise", f"select {flag} {below}, {t} {b}, {t} {zero}")
    return w.pure("modulo", f"add {t} {remainder}, {raised}")


def unsigned_division(fn: Function, scalar: str, lanes: int, a: str, b: str, divisor: int | None) -> str:
    """a / b of unsigned integers; `divisor` is b where it is constant and not 0."""
    w, t = fn.writer, vector(scalar, lanes)
    if divisor is not None:
        return w.pure("quotient", f"udiv {t} {a}, {b}")
    return w.once("quotient", f"udiv {t} {a}, {_but_zero(fn, scalar, lanes, b)}")


def unsigned_remainder(fn: Function, scalar: str, lanes: int, a: str, b: str, divisor: int | None) -> str:
    """a % b of unsigned integers; `divisor` is b where it is constant and not 0."""
    w, t = fn.writer, vector(scalar, lanes)
    if divisor is not None:
        return w.pure("remainder", f"urem {t} {a}, {b}")
    return w.once("remainder", f"urem {t} {a}, {_but_zero(fn, scalar, lanes, b)}")


def _but_zero(fn: Function, scalar: str, lanes: int, b: str) -> str:
    """A divisor, 1 in place of 0: LLVM leaves a division by 0 undefined."""
    w, t, flag = fn.writer, vector(scalar, lanes), vector("i1", lanes)
    zero, one = splat(scalar, "0", lanes), splat(scalar, "1", lanes)
    is_zero = w.pure("zero", f"icmp eq {t} {b}, {zero}")
    return w.pure("divisor", f"select {flag} {is_zero}, {t} {one}, {t} {b}")


def _top(scalar: str) -> str:
    return str(int(scalar[1:]) - 1)


def _borrow(fn: Function, scalar: str, lanes: int, a: str, b: str, quotient: str) -> str:
    """-1 where a truncated quotient by a positive divisor lies above the true one, else 0."""
    w, t = fn.writer, vector(scalar, lanes)
    back = w.pure("product", f"mul {t} {quotient}, {b}")
    remainder = w.pure("remainder", f"sub {t} {a}, {back}")
    return w.pure("negative", f"ashr {t} {remainder}, {splat(scalar, _top(scalar), lanes)}")


def _truncated(fn: Function, scalar: str, lanes: int, a: str, b: str, divisor: int | None) -> tuple[str, str, str]:
    """Quotient and remainder rounded towards zero, and whether rounding down gives one less.

    The smallest integer by -1 overflows, which LLVM leaves undefined: a divisor of -1 is replaced by 1 and the quotient
    negated, which wraps.  So is a divisor of 0, whose quotient counts for nothing and must do no harm.
    """
    w, t, flag = fn.writer, vector(scalar, lanes), vector("i1", lanes)
    zero, one, minus = (splat(scalar, n, lanes) for n in ("0", "1", "-1"))
    by = b
    is_minus = ""
    if divisor is None or divisor in (-1, 0):
        is_minus = w.pure("minus", f"icmp eq {t} {b}, {minus}")
        above = w.pure("above", f"add {t} {b}, {one}")
        replaced = w.pure("replaced", f"icmp ule {t} {above}, {one}")
        by = w.pure("divisor", f"select {flag} {replaced}, {t} {one}, {t} {b}")
    quotient = (w.once if divisor is None else w.pure)("quotient", f"sdiv {t} {a}, {by}")
    product = w.pure("product", f"mul {t} {quotient}, {by}")
    remainder = w.pure("remainder", f"sub {t} {a}, {product}")
    if is_minus:
        negated = w.pure("negated", f"sub {t} {zero}, {quotient}")
        quotient = w.pure("quotient", f"select {flag} {is_minus}, {t} {negated}, {t} {quotient}")
    inexact = w.pure("inexact", f"icmp ne {t} {remainder}, {zero}")
    signs = w.pure("signs", f"xor {t} {remainder}, {b}")
    opposite = w.pure("opposite", f"icmp slt {t} {signs}, {zero}")
    return quotient, remainder, w.pure("below", f"and {flag} {inexact}, {opposite}")
