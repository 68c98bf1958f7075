"""bfloat16 in arithmetic: cheaper conversions than `conversions.py` has for values that are kept."""

from __future__ import annotations

from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, splat, vector
from opgen.dtypes import BFLOAT16, FLOAT32
from opgen.loop.nodes import Cast, Expr


def operand(fn: Function, e: Expr) -> Value:
    """A value for arithmetic, which makes NaNs quiet by itself: bfloat16 need only be moved to the upper half."""
    match e:
        case Cast() if e.type.dtype == FLOAT32 and (value := fn.value(e.operand)).type.dtype == BFLOAT16:
            lanes = e.type.lanes
            bits, text = vector("i32", lanes), vector("float", lanes)
            wide = fn.writer.pure("wide", f"zext {value.typed} to {bits}")
            upper = fn.writer.pure("upper", f"shl {bits} {wide}, {splat('i32', '16', lanes)}")
            return Value(fn.writer.pure("float32", f"bitcast {bits} {upper} to {text}"), e.type, text)
        case _:
            return fn.value(e)
