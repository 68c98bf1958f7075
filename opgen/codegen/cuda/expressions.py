"""Loop IR expressions as C expressions.

Every expression is printed for one lane; a vector is as many C expressions.  Integer arithmetic uses C's operators
where intervals show that nothing wraps (and, for divisions, that nothing is negative).  Elsewhere it calls a helper
that wraps as the loop IR does: signed overflow is undefined in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from opgen.codegen.cuda.code import (
    AND,
    BITWISE,
    EQUALITY,
    OR,
    PRIMARY,
    PRODUCT,
    RELATION,
    SUM,
    TERNARY,
    UNARY,
    Code,
    Interval,
    exact_interval,
    full_interval,
    infix,
    within,
)
from opgen.codegen.cuda.conversions import bits, conversion
from opgen.codegen.cuda.names import Names
from opgen.codegen.cuda.types import VALUE_TYPES, literal
from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL, FLOAT32, INT64, DType
from opgen.loop.nodes import (
    Binary,
    BitCast,
    Broadcast,
    Buffer,
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

_SYMBOLS = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}
_DIVISIONS = {"floordiv": "/", "mod": "%"}
_RELATIONS = {"eq": ("==", EQUALITY), "ne": ("!=", EQUALITY)} | {
    name: (symbol, RELATION) for name, symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))
}
_BOOL_OPS = {"and": ("&&", AND), "or": ("||", OR), "xor": ("!=", EQUALITY)}
_BIT_OPS = {"and": "&", "or": "|", "xor": "^"}
_C_FUNCTIONS = {"round": "rint", "abs": "fabs"}


@dataclass
class Scope:
    """State of the printer: identifiers, buffers by name, intervals of integer variables, the helpers used so far."""

    names: Names
    buffers: dict[str, Buffer]
    intervals: dict[str, Interval] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    arrays: set[str] = field(default_factory=set)
    """Buffers that are C arrays of as many dimensions; the others are pointers."""

    def use(self, helper: str) -> str:
        self.helpers.add(helper)
        return helper


class ExpressionPrinter:
    """Prints expressions, lane by lane."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def text(self, e: Expr, lane: int = 0) -> str:
        return self.code(e, lane).text

    def code(self, e: Expr, lane: int = 0) -> Code:
        """Return the C expression for a lane; scalars are the same in every lane."""
        match e:
            case Const():
                return _constant(e)
            case Var():
                return self._variable(e)
            case Unary():
                return self._unary(e, lane)
            case Binary():
                return self.binary(e.op, e.type.dtype, self.code(e.left, lane), self.code(e.right, lane))
            case Compare():
                return self._compare(e, lane)
            case Select():
                return self._select(e, lane)
            case Cast():
                return conversion(self.scope.use, e.operand.type.dtype, e.type.dtype, self.code(e.operand, lane))
            case BitCast():
                return bits(self.scope.use, e.operand.type.dtype, e.type.dtype, self.code(e.operand, lane))
            case Call():
                return self._call(e, lane)
            case Word() | Dot():
                raise InternalError(
                    "pairs of bfloat16 and words of bytes are for CPUs; no schedule for a GPU makes them"
                )
            case Broadcast():
                return self.code(e.operand)
            case Ramp():
                step = self.binary("mul", e.type.dtype, self.code(e.stride), _constant(Const(lane, e.stride.type)))
                return self.binary("add", e.type.dtype, self.code(e.base), step)
            case Shuffle():
                count, picked = e.left.type.lanes, e.order[lane]
                return self.code(e.left, picked) if picked < count else self.code(e.right, picked - count)
            case Load():
                return self._load(e, lane)

    def element(self, name: str, indices: Sequence[Expr], lane: int = 0) -> str:
        """Return the C lvalue of an element of a buffer."""
        buffer = self.scope.buffers[name]
        if len(indices) != len(buffer.shape):
            raise InternalError(f"buffer {name} has {len(buffer.shape)} dimensions, not {len(indices)}")
        identifier = self.scope.names[name]
        codes = [self.code(i, lane) for i in indices]
        if name in self.scope.arrays:
            return identifier + "".join(f"[{c.text}]" for c in codes or [Code("0")])
        return f"{identifier}[{self._offset(codes, buffer)}]"

    def _offset(self, indices: list[Code], buffer: Buffer) -> str:
        """Return the row-major offset; it does not wrap, since every index is in bounds."""
        if not indices:
            return "0"
        offset = indices[0]
        for size, index in zip(buffer.shape[1:], indices[1:], strict=True):
            extent = self.code(size)
            if offset.is_literal and extent.is_literal:
                row = self.binary("mul", INT64, offset, extent)
            else:
                row = infix(offset.at(PRODUCT), "*", extent.at(UNARY), PRODUCT)
            if row.is_literal and (index.is_literal or row.text == "0"):
                offset = self.binary("add", INT64, row, index)
            else:
                offset = infix(row.text, "+", index.at(PRODUCT), SUM)
        return offset.text

    def binary(self, op: str, dtype: DType, left: Code, right: Code) -> Code:
        """Return a binary operation on printed operands."""
        if dtype == BOOL:
            if op not in _BOOL_OPS:
                raise InternalError(f"no {op} of bools")
            symbol, level = _BOOL_OPS[op]
            return infix(left.at(level + 1), symbol, right.at(level + 1), level)
        if dtype.is_int:
            return self._integer(op, dtype, left, right)
        if dtype.compute_type != dtype:
            raise InternalError(f"no arithmetic on {dtype}")
        if op in ("min", "max"):
            return self._helper(f"{op}_{VALUE_TYPES[dtype]}", left, right)
        if op == "rem":
            return Code(f"{'fmodf' if dtype == FLOAT32 else 'fmod'}({left.text}, {right.text})")
        if op not in _SYMBOLS:
            raise InternalError(f"no {op} of {dtype}")
        symbol, level = _SYMBOLS[op]
        return infix(left.at(level), symbol, right.at(level + 1), level)

    def _integer(self, op: str, dtype: DType, left: Code, right: Code) -> Code:
        full = full_interval(dtype)
        a, b = left.interval or full, right.interval or full
        exact = exact_interval(op, a, b)
        fits = exact is not None and within(exact, full)
        interval = exact if fits else full
        if op in _BIT_OPS:
            return infix(left.at(UNARY), _BIT_OPS[op], right.at(UNARY), BITWISE, full)
        if op in _DIVISIONS and a[0] >= 0 and b[0] > 0:
            return infix(self._typed(left, right), _DIVISIONS[op], right.at(UNARY), PRODUCT, interval)
        if op in _SYMBOLS and op != "div" and fits:
            symbol, level = _SYMBOLS[op]
            typed = left if not (left.is_literal and right.is_literal) else Code(self._typed(left, right), UNARY)
            if exact is not None and exact[0] == exact[1]:
                return _constant(Const(exact[0], Type(dtype)))
            simple = _neutral(op, left, right)
            return simple or infix(typed.at(level), symbol, right.at(level + 1), level, interval)
        if op == "div":
            raise InternalError(f"no div of {dtype}")
        return self._helper(f"{op}_{VALUE_TYPES[dtype]}", left, right, interval=interval)

    @staticmethod
    def _typed(left: Code, right: Code) -> str:
        both = left.is_literal and right.is_literal
        return f"(i64){left.at(UNARY)}" if both else left.at(PRODUCT)

    def _helper(self, name: str, *operands: Code, interval: Interval | None = None) -> Code:
        return Code(f"{self.scope.use(name)}({', '.join(o.text for o in operands)})", PRIMARY, interval)

    def _variable(self, e: Var) -> Code:
        full = full_interval(e.type.dtype) if e.type.dtype.is_int else None
        return Code(self.scope.names[e.name], PRIMARY, self.scope.intervals.get(e.name, full))

    def _unary(self, e: Unary, lane: int) -> Code:
        operand, dtype = self.code(e.operand, lane), e.type.dtype
        if dtype.compute_type != dtype:
            raise InternalError(f"no arithmetic on {dtype}")
        if e.op == "not":
            if dtype != BOOL:
                raise InternalError(f"no not of {dtype}")
            return Code(f"!{operand.at(PRIMARY)}", UNARY)
        if dtype == BOOL:
            raise InternalError("no neg of bools")
        if dtype.is_int:
            return self.binary("sub", dtype, _constant(Const(0, Type(dtype))), operand)
        return Code(f"-{operand.at(PRIMARY)}", UNARY)

    def _compare(self, e: Compare, lane: int) -> Code:
        dtype = e.left.type.dtype
        if dtype.compute_type != dtype:
            raise InternalError(f"no comparison of {dtype}")
        symbol, level = _RELATIONS[e.op]
        return infix(self.code(e.left, lane).at(level + 1), symbol, self.code(e.right, lane).at(level + 1), level)

    def _select(self, e: Select, lane: int) -> Code:
        condition, yes, no = (self.code(part, lane) for part in (e.condition, e.if_true, e.if_false))
        text = f"{condition.at(OR)} ? {yes.at(OR)} : {no.at(OR)}"
        interval = None
        if yes.interval and no.interval:
            interval = min(yes.interval[0], no.interval[0]), max(yes.interval[1], no.interval[1])
        return Code(text, TERNARY, interval, yes.is_literal and no.is_literal)

    def _call(self, e: Call, lane: int) -> Code:
        dtype, arguments = e.type.dtype, [self.code(a, lane) for a in e.arguments]
        if dtype.is_int and e.function == "abs":
            return arguments[0] if not dtype.signed else self._helper(f"abs_{VALUE_TYPES[dtype]}", *arguments)
        if dtype.is_int and e.function == "pow":
            return self._helper(f"pow_{VALUE_TYPES[dtype]}", *arguments, interval=full_interval(dtype))
        if not dtype.is_float or dtype.is_stored:
            raise InternalError(f"no {e.function} of {dtype}")
        name = _C_FUNCTIONS.get(e.function, e.function) + ("f" if dtype == FLOAT32 else "")
        return Code(f"{name}({', '.join(a.text for a in arguments)})")

    def _load(self, e: Load, lane: int) -> Code:
        if self.scope.buffers[e.buffer].dtype != e.dtype:
            raise InternalError(f"buffer {e.buffer} holds {self.scope.buffers[e.buffer].dtype}, not {e.dtype}")
        element = self.element(e.buffer, e.indices, lane)
        value = Code(f"{element} != 0", EQUALITY) if e.dtype == BOOL else Code(element)
        if e.mask is None:
            return value
        zero = literal(0, e.dtype)
        return Code(f"{self.code(e.mask, lane).at(OR)} ? {value.at(OR)} : {zero}", TERNARY)


def _constant(e: Const) -> Code:
    dtype = e.type.dtype
    text = literal(e.value, dtype)
    level = UNARY if text.startswith("-") or dtype.is_stored else PRIMARY
    if not dtype.is_int:
        return Code(text, level)
    small = dtype == INT64 and not text.endswith("LL") and "LL" not in text
    return Code(text, level, (int(e.value), int(e.value)), small)


def _neutral(op: str, left: Code, right: Code) -> Code | None:
    """Return the operand that is the result if the other one is an added 0 or a factor 1 (by lanes of a ramp)."""
    neutral = {"add": "0", "sub": "0", "mul": "1"}[op]
    if right.text == neutral:
        return left
    return right if left.text == neutral and op != "sub" else None
