"""Folding of one expression node whose operands are folded already, without knowledge of the surroundings.

Every rule is exact.  Integer rules hold in two's complement; floats are folded only if the result has the same bits for
all operands.  Sums keep their constant last: `x + 3`, `x - 2`.
"""

from __future__ import annotations

from opgen.dtypes import BOOL, FLOAT32, FLOAT64, wrap
from opgen.loop import build as b
from opgen.loop.nodes import (
    INDEX,
    Binary,
    Broadcast,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Ramp,
    Select,
    Type,
    Unary,
)
from opgen.loop.walk import operands, with_operands
from opgen.passes.floats import fold_float

_INVERSE: dict[CompareOp, CompareOp] = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}
_MIRROR: dict[CompareOp, CompareOp] = {"eq": "eq", "ne": "ne", "lt": "gt", "ge": "le", "le": "ge", "gt": "lt"}


def fold(e: Expr) -> Expr:
    """Return a simpler expression with the same value, or the same object."""
    match e:
        case Binary():
            if e.left.type.dtype.is_int:
                return _fold_integer(e)
            return _fold_logic(e) if e.left.type.dtype == BOOL else fold_float(e)
        case Compare():
            return _fold_compare(e)
        case Select():
            return _fold_select(e)
        case Unary():
            return _fold_unary(e)
        case Cast():
            return _fold_cast(e)
        case Broadcast():
            return _fold_broadcast(e)
        case Ramp():
            if isinstance(e.stride, Const) and e.stride.value == 0:
                return fold(Broadcast(e.base, e.lanes))
            return e
        case _:
            return e


def fold_all(e: Expr) -> Expr:
    """Apply `fold` to every node, innermost first."""
    return fold(with_operands(e, tuple([fold_all(o) for o in operands(e)])))


def offset(e: Expr) -> tuple[Expr, int]:
    """Return an integer expression as base + constant; the base of a literal is 0."""
    if isinstance(e, Const):
        return _literal(0, e.type), int(e.value)
    if isinstance(e, Binary) and isinstance(e.right, Const):
        if e.op == "add":
            return e.left, int(e.right.value)
        if e.op == "sub":
            return e.left, -int(e.right.value)
    if isinstance(e, Binary) and e.op == "sub" and isinstance(e.left, Const) and e.left.value:
        return Binary("sub", Const(0, e.type), e.right), int(e.left.value)
    return e, 0


def with_offset(base: Expr, constant: int) -> Expr:
    """Return base + constant in the form that `offset` splits."""
    constant = wrap(constant, base.type.dtype)
    if isinstance(base, Const):
        return _literal(wrap(int(base.value) + constant, base.type.dtype), base.type)
    if constant == 0:
        return base
    if isinstance(base, Binary) and base.op == "sub" and _zero(base.left):
        return Binary("sub", Const(constant, base.type), base.right)
    if constant > 0 or constant == base.type.dtype.least:  # the least has no opposite
        return Binary("add", base, _literal(constant, base.type))
    return Binary("sub", base, _literal(-constant, base.type))


def _literal(value: int, of: Type) -> Const:
    return b.integer(value) if of is INDEX else Const(value, of)


def _zero(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 0


def _fold_sum(e: Binary) -> Expr:
    (a, p), (c, q) = offset(e.left), offset(e.right)
    constant = p + q if e.op == "add" else p - q
    if _zero(c):
        base = a
    elif _zero(a) and e.op == "add":
        base = c
    elif a == c and e.op == "sub":
        base = Const(0, e.type)
    else:
        base = _joined(e, a, c)
    new = with_offset(base, constant)
    return e if new == e else new


def _joined(e: Binary, a: Expr, c: Expr) -> Expr:
    """Return a + c or a - c of operands without constants, with differences for negative factors."""
    if e.op == "add" and _is_negation(c):
        assert isinstance(c, Binary)
        return a if _zero(c.right) else fold(Binary("sub", a, c.right))
    if e.op == "sub" and _is_negation(c):
        assert isinstance(c, Binary)
        return fold(Binary("add", a, c.right))
    if e.op == "add" and _is_negation(a):
        assert isinstance(a, Binary)
        return fold(Binary("sub", c, a.right))
    if (opposite := _opposite(c)) is not None:
        return Binary("sub" if e.op == "add" else "add", a, opposite)
    if e.op == "add" and (opposite := _opposite(a)) is not None:
        return Binary("sub", c, opposite)
    return e if a is e.left and c is e.right else Binary(e.op, a, c)


def _is_negation(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op == "sub" and _zero(e.left)


def _opposite(e: Expr) -> Expr | None:
    """Return -e for a product with a negative literal; else None."""
    if (
        isinstance(e, Binary)
        and e.op == "mul"
        and isinstance(e.right, Const)
        and e.type.dtype.least < e.right.value < 0
    ):
        return _fold_product(Binary("mul", e.left, Const(wrap(-int(e.right.value), e.type.dtype), e.type)))
    return None


def _fold_product(e: Binary) -> Expr:
    a, c = e.left, e.right
    if isinstance(a, Const) and not isinstance(c, Const):
        a, c = c, a
    if not isinstance(c, Const):
        return e
    factor, dtype = int(c.value), e.type.dtype
    if isinstance(a, Const):
        return Const(wrap(int(a.value) * factor, dtype), e.type)
    if factor == 0:
        return Const(0, e.type)
    if factor == 1:
        return a
    if _is_negation(a) and isinstance(a, Binary):
        return _fold_product(Binary("mul", a.right, Const(wrap(-factor, dtype), e.type)))
    base, constant = offset(a)
    if constant:
        return with_offset(_fold_product(Binary("mul", base, c)), constant * factor)
    if isinstance(a, Binary) and a.op == "mul" and isinstance(a.right, Const):
        return Binary("mul", a.left, Const(wrap(int(a.right.value) * factor, dtype), e.type))
    return e if a is e.left else Binary("mul", a, c)


def _fold_quotient(e: Binary) -> Expr:
    a, c = e.left, e.right
    if not isinstance(c, Const) or c.value == 0:
        return e
    divisor, dtype = int(c.value), e.type.dtype
    if isinstance(a, Const):
        exact = int(a.value) // divisor if e.op == "floordiv" else int(a.value) % divisor
        return Const(wrap(exact, dtype), e.type)
    if divisor == 1:
        return a if e.op == "floordiv" else Const(0, e.type)
    if e.op == "mod" and divisor > 0 and not divisor & (divisor - 1):  # so that wrapping does no harm
        rest = _residue(a, divisor)
        if rest is not None:
            return Const(rest, e.type)
        left = without_multiples(a, divisor)
        return e if left is a else Binary("mod", left, c)
    return e


def without_multiples(e: Expr, divisor: int) -> Expr:
    """Return an expression with the same remainder: a sum without its terms that are multiples of the divisor."""
    match e:
        case Binary(op="add", left=left, right=right):
            if _residue(left, divisor) == 0:
                return without_multiples(right, divisor)
            if _residue(right, divisor) == 0:
                return without_multiples(left, divisor)
            first = without_multiples(left, divisor)
            return e if first is left else Binary("add", first, right)
        case Binary(op="sub", left=left, right=right):
            if _residue(right, divisor) == 0:
                return without_multiples(left, divisor)
            first = without_multiples(left, divisor)
            return e if first is left else Binary("sub", first, right)
    return e


def _residue(e: Expr, divisor: int) -> int | None:
    """Return the remainder of an integer by a literal if no variable changes it: of `x*4 + 3` by 2."""
    match e:
        case Const():
            return int(e.value) % divisor
        case Binary(op="mul", right=Const(factor)) if int(factor) % divisor == 0:
            return 0
        case Binary(op="add" | "sub"):
            left, right = _residue(e.left, divisor), _residue(e.right, divisor)
            if left is None or right is None:
                return None
            return (left + right if e.op == "add" else left - right) % divisor
        case _:
            return None


def _fold_extreme(e: Binary) -> Expr:
    if e.left == e.right:
        return e.left
    if isinstance(e.left, Const) and isinstance(e.right, Const):
        pick = min if e.op == "min" else max
        return Const(pick(int(e.left.value), int(e.right.value)), e.type)
    return e


def _fold_integer(e: Binary) -> Expr:
    match e.op:
        case "add" | "sub":
            return _fold_sum(e)
        case "mul":
            return _fold_product(e)
        case "floordiv" | "mod":
            return _fold_quotient(e)
        case "min" | "max":
            return _fold_extreme(e)
        case _:
            return e


def _truth(e: Expr) -> bool | None:
    return bool(e.value) if isinstance(e, Const) else None


def _fold_logic(e: Binary) -> Expr:
    left, right = _truth(e.left), _truth(e.right)
    if e.op in ("and", "or"):
        absorbing = e.op == "or"
        if left is not None:
            return e.left if left == absorbing else e.right
        if right is not None:
            return e.right if right == absorbing else e.left
        return e.left if e.left == e.right else e
    if e.op == "xor" and left is not None and right is not None:
        return Const(left != right, e.type)
    return e


def _fold_compare(e: Compare) -> Expr:
    if not e.left.type.dtype.is_int:
        return e
    if isinstance(e.left, Const) and isinstance(e.right, Const):
        return Const(_holds(e.op, int(e.left.value), int(e.right.value)), e.type)
    if e.left == e.right:
        return Const(e.op in ("eq", "le", "ge"), e.type)
    if isinstance(e.left, Const):
        return fold(Compare(_MIRROR[e.op], e.right, e.left))
    return _fold_lanes(e)


def _fold_lanes(e: Compare) -> Expr:
    """Return a comparison that the lane decides as one of the lane's number: so masks of the same lanes are equal."""
    match e:
        case Compare("lt" | "le" | "ge" | "gt", Ramp(Const() as base, Const() as stride, lanes), Const() as bound):
            step, included = int(stride.value), e.op in ("le", "gt")
            if step <= 0 or int(base.value) + step * (lanes - 1) > base.type.dtype.greatest:
                return e  # a ramp that falls, or wraps
            count = -((int(base.value) - int(bound.value) - included) // step)  # of leading lanes below the bound
            below = e.op in ("lt", "le")
            if not 0 < count < lanes:
                return Const((count > 0) == below, e.type)
            lane = Ramp(Const(0, base.type), Const(1, base.type), lanes)
            numbered = Compare("lt" if below else "ge", lane, Const(count, bound.type))
            return e if e == numbered else numbered
    return e


def _holds(op: CompareOp, left: int, right: int) -> bool:
    return {
        "eq": left == right,
        "ne": left != right,
        "lt": left < right,
        "le": left <= right,
        "gt": left > right,
        "ge": left >= right,
    }[op]


def _fold_select(e: Select) -> Expr:
    truth = _truth(e.condition)
    if truth is not None:
        return e.if_true if truth else e.if_false
    if e.if_true == e.if_false:
        return e.if_true
    match e.if_true:
        case Binary("min" | "max" as op, left, right) if left == e.if_false and left.type.dtype.is_int:
            least, greatest = left.type.dtype.least, left.type.dtype.greatest
            nothing = Const(greatest if op == "min" else least, left.type)
            return Binary(op, left, Select(e.condition, right, nothing))  # one step of a reduction
    return e


def _fold_unary(e: Unary) -> Expr:
    inner = e.operand
    if isinstance(inner, Unary) and inner.op == e.op and (e.op == "not" or inner.type.dtype.is_int):
        return inner.operand
    if e.op == "not":
        if isinstance(inner, Const):
            return Const(not inner.value, inner.type)
        if isinstance(inner, Compare) and inner.left.type.dtype.is_int:
            return Compare(_INVERSE[inner.op], inner.left, inner.right)
    if e.op == "neg" and isinstance(inner, Const):
        if inner.type.dtype.is_int:
            return Const(wrap(-int(inner.value), inner.type.dtype), inner.type)
        return Const(-float(inner.value), inner.type)
    return e


def _fold_cast(e: Cast) -> Expr:
    inner = e.operand
    if inner.type == e.type:
        return inner
    if not isinstance(inner, Const):
        return e
    target = e.type.dtype
    if target == BOOL:
        return Const(bool(inner.value != 0), e.type)
    if inner.type.dtype.small is not None or target.small is not None:
        return e
    if inner.type.dtype.is_float:
        widening = target.is_float and target.precision >= inner.type.dtype.precision and target in (FLOAT32, FLOAT64)
        return Const(float(inner.value), e.type) if widening else e
    if target.is_int:
        return Const(wrap(int(inner.value), target), e.type)
    exact = target.is_float and abs(int(inner.value)) <= 1 << target.precision
    return Const(float(inner.value), e.type) if exact else e


def _fold_broadcast(e: Broadcast) -> Expr:
    if isinstance(e.operand, Const):
        return Const(e.operand.value, Type(e.operand.type.dtype, e.lanes))
    return e
