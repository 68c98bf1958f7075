"""Expressions of loop IR as Python expressions.

Scalar integers are Python ints, bools Python (or numpy) bools, scalar floats numpy scalars, vectors numpy arrays.
The bounds of every scalar integer are tracked (the parameters are known numbers), so that wrapping is emitted only
where it can matter.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np

from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL, FLOAT64, INT32, DType, wrap
from opgen.loop import arithmetic
from opgen.loop.arithmetic import NUMPY, cast_lanes
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
from opgen.loop.syntax import COMPARE_BY_TOKEN
from opgen.loop.walk import walk_expr

_COMPARE = {op: token for token, op in COMPARE_BY_TOKEN.items()}
_OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "mod": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
}

_ELEMENTS = {"quot": "quotients", "rem": "remainders", "shl": "np.left_shift", "shr": "np.right_shift"}
"""In lanes; numpy's shifts are those of the loop IR."""


def choose(condition: object, if_true: object, if_false: object) -> object:
    """Select between scalars if one of them loads: both operands are evaluated, as memory is read either way."""
    return if_true if condition else if_false


def either_side(condition: object, if_true: Callable[[], object], if_false: Callable[[], object]) -> object:
    """Select where an operand may divide by zero: the one not chosen need have no value, only its reads."""
    chosen, other = (if_true, if_false) if condition else (if_false, if_true)
    with suppress(ZeroDivisionError):
        other()
    return chosen()


NAMESPACE: dict[str, object] = {
    "np": np,
    "bfloat16": ml_dtypes.bfloat16,
    "choose": choose,
    "either_side": either_side,
    "wrap": wrap,
    "fma32": arithmetic.fma32,
    "fma64": arithmetic.fma64,
    "fma32_lanes": arithmetic.fma32_lanes,
    "fma64_lanes": arithmetic.fma64_lanes,
    "least": arithmetic.least,
    "greatest": arithmetic.greatest,
    "least_lanes": arithmetic.least_lanes,
    "greatest_lanes": arithmetic.greatest_lanes,
    "cast_scalar": arithmetic.cast_scalar,
    "cast_lanes": arithmetic.cast_lanes,
    "bits_scalar": arithmetic.bits_scalar,
    "quotient": arithmetic.quotient,
    "remainder": arithmetic.remainder,
    "shifted_left": arithmetic.shifted_left,
    "shifted_right": arithmetic.shifted_right,
    "integer_power": arithmetic.integer_power,
    "integer_powers": arithmetic.integer_powers,
    "quotients": arithmetic.quotients,
    "remainders": arithmetic.remainders,
    "pair": arithmetic.pair,
    "quad": arithmetic.quad,
    "dot_bytes": arithmetic.dot_bytes,
    "dot": arithmetic.dot,
    "erf": arithmetic.erf,
    "erf_scalar": arithmetic.erf_scalar,
    **{f"function_{name}": function for name, function in arithmetic.FUNCTIONS.items()},
}
"""Names available to the emitted Python."""


def _of_two(condition: str, if_true: str, if_false: str, sides: tuple[Expr, ...]) -> str:
    """Select one of two values that both read memory, whichever is chosen."""
    nodes = [n for e in sides for n in walk_expr(e)]
    if not any(isinstance(n, Load) for n in nodes):
        return f"({if_true} if {condition} else {if_false})"
    if any(isinstance(n, Binary) and n.op in ("floordiv", "mod") for n in nodes):
        return f"either_side({condition}, lambda: {if_true}, lambda: {if_false})"
    return f"choose({condition}, {if_true}, {if_false})"


@dataclass(frozen=True)
class Code:
    """A Python expression, and for a scalar integer the bounds of its value."""

    text: str
    low: int = 0
    high: int = 0


@dataclass(frozen=True)
class Names:
    """The Python names of everything in scope: variables (with bounds) and buffers."""

    variables: dict[str, Code] = field(default_factory=dict)
    buffers: dict[str, str] = field(default_factory=dict)

    def variable(self, name: str, code: Code) -> Names:
        return replace(self, variables={**self.variables, name: code})

    def buffer(self, name: str, python: str) -> Names:
        return replace(self, buffers={**self.buffers, name: python})


def limits(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    return dtype.least, dtype.greatest


@dataclass
class ExpressionWriter:
    """Writes expressions; `constants` collects the objects that the text names."""

    constants: dict[str, object] = field(default_factory=dict)

    def constant(self, value: object) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = value
        return name

    def text(self, e: Expr, names: Names) -> str:
        return self.write(e, names).text

    def write(self, e: Expr, names: Names) -> Code:
        match e:
            case Const():
                return self._const(e)
            case Var():
                return names.variables[e.name]
            case Unary():
                return self._unary(e, names)
            case Binary():
                return self._binary(e, names)
            case Compare():
                return Code(f"({self.text(e.left, names)} {_COMPARE[e.op]} {self.text(e.right, names)})")
            case Select():
                return self._select(e, names)
            case Cast():
                return self._cast(e, names)
            case BitCast():
                return self._bit_cast(e, names)
            case Call():
                return self._call(e, names)
            case Word():
                parts = ", ".join(self.text(p, names) for p in e.parts)
                return Code(f"{e.name}({parts})", *limits(e.type.dtype))
            case Dot():
                parts = ", ".join(self.text(o, names) for o in (e.sum, e.left, e.right))
                if e.type.dtype == INT32:
                    return Code(f"dot_bytes({parts})", *limits(e.type.dtype))
                return Code(f"dot({parts})")
            case Broadcast():
                operand = self.text(e.operand, names)
                return Code(f"np.full({e.lanes}, {operand}, {self._dtype(e.type.dtype)})")
            case Ramp():
                lanes = self.constant(np.arange(e.lanes, dtype=NUMPY[e.type.dtype.name]))
                return Code(f"({self.text(e.base, names)} + {self.text(e.stride, names)} * {lanes})")
            case Shuffle():
                both = f"np.concatenate(({self.text(e.left, names)}, {self.text(e.right, names)}))"
                return Code(f"{both}[{self.constant(np.array(e.order))}]")
            case Load():
                return self._load(e, names)

    def _dtype(self, dtype: DType) -> str:
        return self.constant(NUMPY[dtype.name])

    def _const(self, e: Const) -> Code:
        dtype = e.type.dtype
        if dtype.is_float:
            once = cast_lanes(np.full(e.type.lanes, e.value, dtype=np.float64), FLOAT64, dtype)
            return Code(self.constant(once if e.type.lanes > 1 else once[0]))
        if e.type.lanes > 1:
            return Code(self.constant(np.full(e.type.lanes, e.value, dtype=NUMPY[dtype.name])))
        if dtype.is_int:
            return Code(f"({int(e.value)})", int(e.value), int(e.value))
        if dtype.kind == "bool":
            return Code(str(bool(e.value)))
        raise InternalError(f"a literal of type {dtype} has no value")

    # Arithmetic -----------------------------------------------------------------------------------

    def _within(self, text: str, type: Type, low: int, high: int) -> Code:
        """Return a scalar integer, wrapped if it may leave its type."""
        least, greatest = limits(type.dtype)
        if least <= low and high <= greatest:
            return Code(text, low, high)
        return Code(f"wrap({text}, {self.constant(type.dtype)})", least, greatest)

    def _unary(self, e: Unary, names: Names) -> Code:
        operand = self.write(e.operand, names)
        if e.op == "not":
            return Code(f"(not {operand.text})" if e.type.lanes == 1 else f"(~{operand.text})")
        if e.type.lanes == 1 and e.type.dtype.is_int:
            return self._within(f"(-{operand.text})", e.type, -operand.high, -operand.low)
        return Code(f"(-{operand.text})")

    def _binary(self, e: Binary, names: Names) -> Code:
        a, b = self.write(e.left, names), self.write(e.right, names)
        scalar = e.type.lanes == 1
        if e.op in ("min", "max"):
            if scalar and e.type.dtype.is_int:
                pick = min if e.op == "min" else max
                return Code(f"{e.op}({a.text}, {b.text})", pick(a.low, b.low), pick(a.high, b.high))
            name = "least" if e.op == "min" else "greatest"
            return Code(f"{name}({a.text}, {b.text})" if scalar else f"{name}_lanes({a.text}, {b.text})")
        if scalar and e.type.dtype == BOOL and e.op in ("and", "or"):
            first, second = (b.text, "False") if e.op == "and" else ("True", b.text)
            return Code(_of_two(a.text, first, second, (e.right,)))
        if e.op in ("quot", "rem", "shl", "shr"):
            return self._of_elements(e, a, b)
        text = f"({a.text} {_OPERATORS[e.op]} {b.text})"
        if not (scalar and e.type.dtype.is_int):
            return Code(text)
        return self._within(text, e.type, *_bounds(e.op, a, b, limits(e.type.dtype)))

    def _of_elements(self, e: Binary, a: Code, b: Code) -> Code:
        """Emit quotients, remainders and shifts, which have a value for every second operand."""
        dtype = e.type.dtype
        if e.type.lanes > 1 or dtype.is_float:
            return Code(f"{_ELEMENTS[e.op]}({a.text}, {b.text})")
        most = max(abs(a.low), abs(a.high))
        match e.op:
            case "quot":
                return self._within(f"quotient({a.text}, {b.text})", e.type, -most, most)
            case "rem":
                return Code(f"remainder({a.text}, {b.text})", min(a.low, 0), max(a.high, 0))
            case "shr":
                return Code(f"shifted_right({a.text}, {b.text}, {dtype.bits})", min(a.low, 0), max(a.high, 0))
        return self._within(f"shifted_left({a.text}, {b.text}, {dtype.bits})", e.type, -most << 64, most << 64)

    def _select(self, e: Select, names: Names) -> Code:
        condition = self.text(e.condition, names)
        a, b = self.write(e.if_true, names), self.write(e.if_false, names)
        if e.type.lanes > 1:
            return Code(f"np.where({condition}, {a.text}, {b.text})")
        text = _of_two(condition, a.text, b.text, (e.if_true, e.if_false))
        return Code(text, min(a.low, b.low), max(a.high, b.high))

    def _call(self, e: Call, names: Names) -> Code:
        arguments = [self.write(a, names) for a in e.arguments]
        inside = ", ".join(a.text for a in arguments)
        lanes = "" if e.type.lanes == 1 else "_lanes"
        if e.function == "fma":
            return Code(f"fma{e.type.dtype.bits}{lanes}({inside})")
        if e.function == "erf":
            return Code(f"erf({inside})" if lanes else f"erf_scalar({inside})")
        if e.type.dtype.is_int and e.function == "pow":
            name = "integer_powers" if lanes else "integer_power"
            return Code(f"{name}({inside}, {self.constant(e.type.dtype)})", *limits(e.type.dtype))
        if e.type.dtype.is_int and not lanes:
            largest = max(abs(arguments[0].low), abs(arguments[0].high))
            return self._within(f"abs({inside})", e.type, 0, largest)
        return Code(f"function_{e.function}({inside})")

    # Casts ----------------------------------------------------------------------------------------

    def _cast(self, e: Cast, names: Names) -> Code:
        operand = self.write(e.operand, names)
        source, target = e.operand.type.dtype, e.type.dtype
        if source == target:
            return operand
        if e.type.lanes > 1:
            return Code(f"cast_lanes({operand.text}, {self.constant(source)}, {self.constant(target)})")
        if target.is_int and source.is_int:
            return self._within(operand.text, e.type, operand.low, operand.high)
        if target.is_int and source.kind == "bool":
            return Code(f"int({operand.text})", 0, 1)
        text = self._float_cast(operand, source, target)
        if text is None:
            text = f"cast_scalar({operand.text}, {self.constant(source)}, {self.constant(target)})"
        return Code(text, *(limits(target) if target.is_int else (0, 0)))

    def _float_cast(self, operand: Code, source: DType, target: DType) -> str | None:
        """Return a conversion that one numpy constructor does with one rounding, or None."""
        exact = source.is_int and operand.low >= -(2**53) and operand.high <= 2**53
        if target.name in ("float32", "float64") and (source.is_float or exact):
            return f"np.{target.name}({operand.text})"
        if target.name == "float16" and source.name in ("float32", "float64"):
            return f"np.float16({operand.text})"
        if target.name == "bfloat16" and source.name == "float32":
            return f"bfloat16({operand.text})"
        return None

    def _bit_cast(self, e: BitCast, names: Names) -> Code:
        operand, source, target = self.text(e.operand, names), e.operand.type.dtype, e.type.dtype
        bounds = limits(target) if target.is_int else (0, 0)
        if e.type.lanes > 1:
            return Code(f"{operand}.view({self._dtype(target)})", *bounds)
        return Code(f"bits_scalar({operand}, {self.constant(source)}, {self.constant(target)})", *bounds)

    # Memory ---------------------------------------------------------------------------------------

    def _load(self, e: Load, names: Names) -> Code:
        buffer = names.buffers[e.buffer]
        bounds = limits(e.dtype) if e.dtype.is_int else (0, 0)
        inside = ", ".join(self.text(i, names) for i in e.indices)
        if e.type.lanes > 1:
            mask = "None" if e.mask is None else self.text(e.mask, names)
            return Code(f"{buffer}_load_lanes(({inside},), {e.type.lanes}, {mask})")
        text = f"{buffer}_load({inside})"
        if e.mask is not None:
            zero = self.text(Const(0.0 if e.dtype.is_float else 0, Type(e.dtype)), names)
            text = f"({text} if {self.text(e.mask, names)} else {zero})"
        return Code(text, *bounds)


def _bounds(op: str, a: Code, b: Code, whole: tuple[int, int]) -> tuple[int, int]:
    """Return bounds of the mathematical result of an integer operation."""
    if op == "add":
        return a.low + b.low, a.high + b.high
    if op == "sub":
        return a.low - b.high, a.high - b.low
    if op == "mul":
        products = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return min(products), max(products)
    if op == "floordiv":
        if b.low > 0:
            return min(a.low // b.low, a.low // b.high), max(a.high // b.low, a.high // b.high)
        largest = max(abs(a.low), abs(a.high))
        return -largest, largest
    if op == "mod":
        return min(b.low + 1, 0), max(b.high - 1, 0)
    if op in ("and", "or", "xor"):
        return whole
    raise InternalError(f"'{op}' is no operation on integers")
