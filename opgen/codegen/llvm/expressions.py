"""Expressions of the loop IR as LLVM instructions."""

from __future__ import annotations

from opgen.codegen.llvm import conversions, functions, loads, pairs
from opgen.codegen.llvm.affine import is_index, materialise, poly, splat
from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.integers import (
    floor_division,
    floor_remainder,
    quotient,
    remainder,
    shifted,
    unsigned_division,
    unsigned_remainder,
)
from opgen.codegen.llvm.library import library_symbol
from opgen.codegen.llvm.types import Value, listed, literal, scalar_type, value_type, wrapped
from opgen.codegen.llvm.types import splat as splat_literal
from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL, DType
from opgen.loop.nodes import (
    Binary,
    BitCast,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Dot,
    Expr,
    Load,
    Ramp,
    Select,
    Shuffle,
    Type,
    Unary,
    Var,
    Word,
)

_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_DIVISIONS = {
    ("floordiv", True): floor_division,
    ("mod", True): floor_remainder,
    ("floordiv", False): unsigned_division,
    ("mod", False): unsigned_remainder,
}
"""By operation and whether the integers are signed."""
_FLOAT_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def evaluate(fn: Function, e: Expr) -> Value:
    """Emit an expression; a value that exists already is not emitted again."""
    match e:
        case Load():
            return loads.load(fn, e)
        case Binary():
            return _binary(fn, e)
        case Var():
            return fn.variable(e.name)
        case Const():
            return Value(literal(e.value, e.type), e.type, value_type(e.type))
        case Call():
            return functions.call(fn, e)
        case Word():
            return pairs.word(fn, e)
        case Dot():
            return pairs.dot(fn, e)
        case Broadcast():
            return _broadcast(fn, e)
        case Cast():
            return _cast(fn, e)
        case BitCast():
            return _bit_cast(fn, e)
        case Select():
            return _select(fn, e)
        case Compare():
            return _compare(fn, e)
        case Ramp():
            return _ramp(fn, e)
        case Unary():
            return _unary(fn, e)
        case Shuffle():
            return _shuffle(fn, e)


def _sign(dtype: DType) -> str:
    """Return the prefix of LLVM's instructions that order integers of a type."""
    return "s" if dtype.is_int and dtype.signed else "u"


def _binary(fn: Function, e: Binary) -> Value:
    if e.op in ("add", "sub", "mul") and is_index(e.type):
        t = e.type
        return Value(materialise(fn, poly(fn, e)), t, "i64")
    left, right = fn.value(e.left), fn.value(e.right)
    if left.type != right.type:
        raise InternalError(f"{e.op} of {left.type} and {right.type}")
    scalar, lanes = scalar_type(left.type.dtype.name), left.type.lanes
    kind = left.type.dtype.kind
    if kind == "float":
        if left.type.dtype.is_stored:
            raise InternalError(f"arithmetic on {left.type}")
        return _float_binary(fn, e, left, right)
    if e.op in ("min", "max"):
        return functions.intrinsic(fn, _sign(left.type.dtype) + e.op, [left, right])
    known = int(e.right.value) if kind == "int" and isinstance(e.right, Const) else None
    if kind == "int" and e.op in ("quot", "rem"):
        element = quotient if e.op == "quot" else remainder
        return Value(element(fn, left, right, known), left.type, left.text)
    if kind == "int" and e.op in ("shl", "shr"):
        return Value(shifted(fn, e.op, left, right, known), left.type, left.text)
    if kind == "int" and e.op in ("floordiv", "mod"):
        divisor = known or None
        emit = _DIVISIONS[e.op, left.type.dtype.signed]
        return Value(emit(fn, scalar, lanes, left.ref, right.ref, divisor), left.type, left.text)
    if e.op not in _INTEGER or (kind == "bool" and e.op in ("add", "sub", "mul")):
        raise InternalError(f"{e.op} of {left.type}")
    return Value(fn.writer.pure(e.op, f"{_INTEGER[e.op]} {left.typed}, {right.ref}"), left.type, left.text)


def _float_binary(fn: Function, e: Binary, left: Value, right: Value) -> Value:
    if e.op in _FLOAT:
        return Value(fn.writer.pure(e.op, f"{_FLOAT[e.op]} {left.typed}, {right.ref}"), left.type, left.text)
    if e.op == "rem":
        symbol = library_symbol(fn, "fmod", left.type, 2)
        text = f"call {left.text} {symbol}({left.typed}, {right.typed})"
        return Value(fn.writer.pure(e.op, text), left.type, left.text)
    if e.op not in ("min", "max"):
        raise InternalError(f"{e.op} of {left.type}")
    # LLVM's own minimum and maximum order the zeros and choose among NaNs otherwise than the loop IR.
    flag = value_type(Type(BOOL, left.type.lanes))
    holds = fn.writer.pure("ordered", f"fcmp {'ole' if e.op == 'min' else 'oge'} {left.typed}, {right.ref}")
    nan = fn.writer.pure("nan", f"fcmp uno {left.typed}, {left.ref}")
    first = fn.writer.pure("first", f"or {flag} {holds}, {nan}")
    ref = fn.writer.pure(e.op, f"select {flag} {first}, {left.typed}, {right.typed}")
    return Value(ref, left.type, left.text)


def _compare(fn: Function, e: Compare) -> Value:
    left, right = fn.value(e.left), fn.value(e.right)
    if left.type != right.type:
        raise InternalError(f"{e.op} of {left.type} and {right.type}")
    dtype = left.type.dtype
    if dtype.is_float:
        if dtype.is_stored:
            raise InternalError(f"comparison of {left.type}")
        operation = f"fcmp {_FLOAT_COMPARE[e.op]}"
    elif e.op in ("eq", "ne"):
        operation = f"icmp {e.op}"
    else:
        operation = f"icmp {_sign(dtype)}{e.op}"
    of = Type(BOOL, left.type.lanes)
    return Value(fn.writer.pure("is", f"{operation} {left.typed}, {right.ref}"), of, value_type(of))


def _unary(fn: Function, e: Unary) -> Value:
    value = fn.value(e.operand)
    dtype, lanes = value.type.dtype, value.type.lanes
    scalar = scalar_type(dtype.name)
    if e.op == "neg" and dtype.is_float and not dtype.is_stored:
        text = f"fneg {value.typed}"
    elif e.op == "neg" and dtype.is_int:
        text = f"sub {value.text} {splat_literal(scalar, '0', lanes)}, {value.ref}"
    elif e.op == "not" and not dtype.is_float:
        text = f"xor {value.typed}, {splat_literal(scalar, 'true' if dtype.kind == 'bool' else '-1', lanes)}"
    else:
        raise InternalError(f"{e.op} of {value.type}")
    return Value(fn.writer.pure(e.op, text), value.type, value.text)


def _select(fn: Function, e: Select) -> Value:
    condition, yes, no = fn.value(e.condition), fn.value(e.if_true), fn.value(e.if_false)
    of = condition.type
    if yes.type != no.type or of.dtype.kind != "bool" or of.lanes not in (1, yes.type.lanes):
        raise InternalError(f"select by {of} between {yes.type} and {no.type}")
    text = f"select {condition.typed}, {yes.typed}, {no.typed}"
    return Value(fn.writer.pure("selected", text), yes.type, yes.text)


def _cast(fn: Function, e: Cast) -> Value:
    value = fn.value(e.operand)
    if value.type.lanes != e.type.lanes:
        raise InternalError(f"a cast from {value.type} to {e.type}")
    return conversions.convert(fn, value, e.type.dtype)


def _bit_cast(fn: Function, e: BitCast) -> Value:
    value, text = fn.value(e.operand), value_type(e.type)
    if value.type.lanes != e.type.lanes or value.type.dtype.bits != e.type.dtype.bits:
        raise InternalError(f"a cast of bits from {value.type} to {e.type}")
    if value.text == text:
        return Value(value.ref, e.type, text)
    return Value(fn.writer.pure("bits", f"bitcast {value.typed} to {text}"), e.type, text)


def _broadcast(fn: Function, e: Broadcast) -> Value:
    value = fn.value(e.operand)
    of = Type(value.type.dtype, e.lanes)
    if value.type.lanes != 1:
        raise InternalError(f"a broadcast of {value.type}")
    if isinstance(e.operand, Const):
        return Value(literal(e.operand.value, of), of, value_type(of))
    ref = value.ref if e.lanes == 1 else splat(fn, value.text, value.ref, e.lanes)
    return Value(ref, of, value_type(of))


def _shuffle(fn: Function, e: Shuffle) -> Value:
    left, right = fn.value(e.left), fn.value(e.right)
    if left.type != right.type or left.type.lanes < 2:
        raise InternalError(f"a shuffle of {left.type} and {right.type}")
    of = e.type
    order = f"<{of.lanes} x i32> {listed('i32', list(e.order))}"
    ref = fn.writer.pure("shuffled", f"shufflevector {left.typed}, {right.typed}, {order}")
    return Value(ref, of, value_type(of))


def _ramp(fn: Function, e: Ramp) -> Value:
    """base + stride * lane, as a vector; only integers have ramps."""
    base, stride = fn.value(e.base), fn.value(e.stride)
    of = Type(base.type.dtype, e.lanes)
    if not of.dtype.is_int or base.type.lanes != 1 or stride.type != base.type:
        raise InternalError(f"a ramp from {base.type} by {stride.type}")
    text = value_type(of)
    if isinstance(e.stride, Const):
        steps = listed(base.text, [wrapped(int(e.stride.value) * k, of.dtype.bits) for k in range(e.lanes)])
    else:
        numbers = listed(base.text, list(range(e.lanes)))
        steps = fn.writer.pure("steps", f"mul {text} {splat(fn, base.text, stride.ref, e.lanes)}, {numbers}")
    if isinstance(e.base, Const) and e.base.value == 0:
        return Value(steps, of, text)
    start = splat(fn, base.text, base.ref, e.lanes)
    return Value(fn.writer.pure("ramp", f"add {text} {start}, {steps}"), of, text)
