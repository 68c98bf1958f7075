"""Expressions of the shape language, over indices and parameters, as loop IR."""

from __future__ import annotations

from collections.abc import Mapping

from opgen.diagnostics import InternalError
from opgen.dtypes import DType
from opgen.loop import build as b
from opgen.loop import nodes as loop
from opgen.loop.nodes import CompareOp
from opgen.lower.parameters import Parameters
from opgen.lower.variant import Variant
from opgen.spec.model.model import (
    AttrValue,
    Conditional,
    EnumIs,
    Expr,
    FunctionCall,
    Index,
    Negate,
    Not,
    Number,
    Operation,
    OpSpec,
    Present,
    SizeOf,
    Symbol,
    Whole,
)
from opgen.spec.model.walk import subexpressions

COMPARE: dict[str, CompareOp] = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}

INTEGER = {
    "+": b.add,
    "-": b.sub,
    "*": b.mul,
    "//": b.floordiv,
    "%": b.mod,
    "min": b.minimum,
    "max": b.maximum,
    "ceildiv": b.ceildiv,
}


def has_floats(op: OpSpec, e: Expr) -> bool:
    """Return True if an expression uses attributes or numbers that are not integers: `Scalars` cannot compute it."""
    for n in subexpressions(e):
        if isinstance(n, AttrValue) and op.attr(n.attr).kind == "float":
            return True
        if isinstance(n, Number) and isinstance(n.value, float):
            return True
    return False


class Scalars:
    """Lowers integers and conditions: subscripts, extents, conditions on indices."""

    def __init__(self, parameters: Parameters, variant: Variant) -> None:
        self._parameters = parameters
        self._variant = variant

    def lower(self, e: Expr, indices: Mapping[str, loop.Expr]) -> loop.Expr:
        """Return an int64 (or bool, for a condition) expression; `indices` maps index names to loop variables."""
        match e:
            case Number():
                return b.TRUE if e.value is True else b.FALSE if e.value is False else b.index(int(e.value))
            case Index():
                return indices[e.name]
            case Symbol() | AttrValue() | SizeOf() | FunctionCall() | Present() | Whole():
                return self._parameters.variable(e)
            case EnumIs():
                return b.TRUE if self._variant.values[e.name] == e.value else b.FALSE
            case Negate():
                return b.sub(0, self.lower(e.operand, indices))
            case Not():
                return b.negate(self.lower(e.operand, indices))
            case Conditional():
                parts = (self.lower(p, indices) for p in (e.condition, e.if_true, e.if_false))
                return b.select(*parts)
            case Operation(op="pow"):  # of sizes and attributes only
                return self._parameters.variable(e)
            case Operation():
                return self._operation(e, indices)
        raise InternalError(f"not an expression of the shape language: {e!r}")

    def _operation(self, e: Operation, indices: Mapping[str, loop.Expr]) -> loop.Expr:
        left, right = self.lower(e.left, indices), self.lower(e.right, indices)
        if e.op in INTEGER:
            return INTEGER[e.op](left, right)
        if e.op in COMPARE:
            return b.compare(COMPARE[e.op], left, right)
        if e.op == "and":
            return b.both(left, right)
        if e.op == "or":
            return b.either(left, right)
        raise InternalError(f"operator {e.op!r} is not of the shape language")


def stored(dtype: DType, value: loop.Expr) -> loop.Expr:
    """Return a value as an element of memory; one of 8 bits that is only moved is not converted back and forth."""
    moved = isinstance(value, loop.Cast) and value.operand.type.dtype == dtype and dtype.is_bits
    return value.operand if moved and isinstance(value, loop.Cast) else b.cast(dtype, value)
