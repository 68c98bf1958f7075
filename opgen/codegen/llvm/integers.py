"""Integer division that rounds towards minus infinity, from instructions that round towards zero.

For unsigned integers the instructions' quotient and remainder are already right; by 0 the quotient is the dividend.
"""

from __future__ import annotations

from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, scalar_type, splat, value_type, vector, wrapped
from opgen.loop.nodes import Type


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


def quotient(fn: Function, a: Value, b: Value, divisor: int | None) -> str:
    """a / b rounded towards 0, wrapping; 0 where b is 0.  `divisor` is b where it is constant."""
    w, (scalar, lanes) = fn.writer, _shape(a)
    flag, zero = vector("i1", lanes), splat(scalar, "0", lanes)
    if divisor == 0:
        return zero
    by, is_minus = _divisor(fn, a.type, b, divisor)
    signed = a.type.dtype.signed
    found = (w.once if divisor is None else w.pure)("quotient", f"{'s' if signed else 'u'}div {a.typed}, {by}")
    if is_minus:
        negated = w.pure("negated", f"sub {a.text} {zero}, {a.ref}")
        found = w.pure("quotient", f"select {flag} {is_minus}, {a.text} {negated}, {a.text} {found}")
    if divisor is not None:
        return found
    is_zero = w.pure("zero", f"icmp eq {b.typed}, {zero}")
    return w.pure("quotient", f"select {flag} {is_zero}, {a.text} {zero}, {a.text} {found}")


def remainder(fn: Function, a: Value, b: Value, divisor: int | None) -> str:
    """a - b * (a / b rounded towards 0); 0 where b is 0.  `divisor` is b where it is constant."""
    scalar, lanes = _shape(a)
    if divisor == 0:
        return splat(scalar, "0", lanes)
    by, _ = _divisor(fn, a.type, b, divisor)
    emit = fn.writer.once if divisor is None else fn.writer.pure
    return emit("remainder", f"{'s' if a.type.dtype.signed else 'u'}rem {a.typed}, {by}")


def _divisor(fn: Function, of: Type, b: Value, divisor: int | None) -> tuple[str, str]:
    """Return a divisor with 0 and -1 replaced by 1, and a flag that it was -1 (empty: it never is)."""
    w, (scalar, lanes) = fn.writer, _shape(b)
    flag, one = vector("i1", lanes), splat(scalar, "1", lanes)
    if not of.dtype.signed:
        return (b.ref if divisor is not None else _but_zero(fn, scalar, lanes, b.ref)), ""
    if divisor is not None and divisor != -1:
        return b.ref, ""
    is_minus = w.pure("minus", f"icmp eq {b.typed}, {splat(scalar, '-1', lanes)}")
    above = w.pure("above", f"add {b.typed}, {one}")
    replaced = w.pure("replaced", f"icmp ule {b.text} {above}, {one}")
    return w.pure("divisor", f"select {flag} {replaced}, {b.text} {one}, {b.typed}"), is_minus


def shifted(fn: Function, op: str, a: Value, by: Value, known: int | None) -> str:
    """a shifted left ("shl") or right ("shr"); `known` is the second operand where it is constant."""
    w, (scalar, lanes), bits = fn.writer, _shape(a), a.type.dtype.bits
    keeps_sign = op == "shr" and a.type.dtype.signed
    instruction = "shl" if op == "shl" else "ashr" if keeps_sign else "lshr"
    if known is not None and 0 <= known < bits:
        return w.pure(op, f"{instruction} {a.typed}, {by.ref}")
    flag, zero, last = vector("i1", lanes), splat(scalar, "0", lanes), splat(scalar, str(bits - 1), lanes)
    inside = w.pure("inside", f"icmp ule {by.typed}, {last}")
    amount = w.pure("amount", f"select {flag} {inside}, {by.typed}, {by.text} {last}")
    found = w.pure(op, f"{instruction} {a.typed}, {amount}")
    return found if keeps_sign else w.pure(op, f"select {flag} {inside}, {a.text} {found}, {a.text} {zero}")


def power(fn: Function, a: Value, b: Value) -> Value:
    """a to the power of b, modulo 2**bits, by squares: a helper, which LLVM inlines."""
    symbol = f"pow.{a.type.dtype}" + (f".x{a.type.lanes}" if a.type.lanes > 1 else "")
    if symbol not in fn.module.helpers:
        head = f"define internal {a.text} @{symbol}({a.text} %x, {a.text} %y) alwaysinline #0"
        fn.module.helpers[symbol] = "\n".join([f"{head} {{", *_power(a.type), "}"])
    return Value(fn.writer.pure("pow", f"call {a.text} @{symbol}({a.typed}, {b.typed})"), a.type, a.text)


def _power(of: Type) -> list[str]:
    t, lanes, bits = value_type(of), of.lanes, of.dtype.bits
    scalar, flag = scalar_type(of.dtype.name), vector("i1", lanes)
    zero, one = (splat(scalar, n, lanes) for n in ("0", "1"))
    lines: list[str] = []
    total, square = one, "%x"
    for k in range(bits):
        lines.append(f"  %bit.{k} = and {t} %y, {splat(scalar, str(wrapped(1 << k, bits)), lanes)}")
        lines.append(f"  %off.{k} = icmp eq {t} %bit.{k}, {zero}")
        lines.append(f"  %product.{k} = mul {t} {total}, {square}")
        lines.append(f"  %total.{k} = select {flag} %off.{k}, {t} {total}, {t} %product.{k}")
        lines.append(f"  %square.{k} = mul {t} {square}, {square}")
        total, square = f"%total.{k}", f"%square.{k}"
    if not of.dtype.signed:
        return [*lines, f"  ret {t} {total}"]
    return [
        *lines,  # of 1 and -1 they are right for negative exponents too: y and -y are odd together
        f"  %below = icmp slt {t} %y, {zero}",
        f"  %above.base = add {t} %x, {one}",
        f"  %small = icmp ule {t} %above.base, {splat(scalar, '2', lanes)}",
        f"  %not.zero = icmp ne {t} %x, {zero}",
        f"  %unit = and {flag} %small, %not.zero",
        f"  %inverse = select {flag} %unit, {t} {total}, {t} {zero}",
        f"  %result = select {flag} %below, {t} %inverse, {t} {total}",
        f"  ret {t} %result",
    ]


def _shape(v: Value) -> tuple[str, int]:
    return scalar_type(v.type.dtype.name), v.type.lanes


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
    """Replace a divisor of 0 by 1: LLVM leaves a division by 0 undefined."""
    w, t, flag = fn.writer, vector(scalar, lanes), vector("i1", lanes)
    zero, one = splat(scalar, "0", lanes), splat(scalar, "1", lanes)
    is_zero = w.pure("zero", f"icmp eq {t} {b}, {zero}")
    return w.pure("divisor", f"select {flag} {is_zero}, {t} {one}, {t} {b}")


def _top(scalar: str) -> str:
    return str(int(scalar[1:]) - 1)


def _borrow(fn: Function, scalar: str, lanes: int, a: str, b: str, quotient: str) -> str:
    """Return -1 where a truncated quotient by a positive divisor is above the true one, else 0."""
    w, t = fn.writer, vector(scalar, lanes)
    back = w.pure("product", f"mul {t} {quotient}, {b}")
    remainder = w.pure("remainder", f"sub {t} {a}, {back}")
    return w.pure("negative", f"ashr {t} {remainder}, {splat(scalar, _top(scalar), lanes)}")


def _truncated(fn: Function, scalar: str, lanes: int, a: str, b: str, divisor: int | None) -> tuple[str, str, str]:
    """Return quotient and remainder rounded towards zero, and a flag that rounding down gives one less.

    The smallest integer by -1 overflows, which LLVM leaves undefined: a divisor of -1 is replaced by 1 and the quotient
    negated, which wraps.  A divisor of 0 is replaced too; its quotient is unused and must do no harm.
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
