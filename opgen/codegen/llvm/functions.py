"""Scalar functions, lane by lane.

Functions that hardware computes exactly use LLVM's intrinsics; `elementary.py`, `powers.py` and `waves.py` have the
others.
"""

from __future__ import annotations

from opgen.codegen.llvm import bfloat16, integers, masked
from opgen.codegen.llvm.elementary import FUNCTIONS, elementary
from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.powers import power
from opgen.codegen.llvm.types import Value, scalar_type, suffix
from opgen.codegen.llvm.waves import WAVES, wave
from opgen.diagnostics import InternalError
from opgen.loop.nodes import Call

_INTRINSIC = {"fma": "fma", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "round": "rint", "abs": "fabs"}


def call(fn: Function, e: Call) -> Value:
    """Emit a call of a function of the loop IR."""
    part = masked.left_out(e) if masked.has_masks(fn, e.type) else None
    if part is not None:
        whole = Call("fma", part[0])
        return masked.keep(fn, part[1], call(fn, whole), fn.value(e.arguments[2]))
    arguments = [bfloat16.operand(fn, a) if e.function == "fma" else fn.value(a) for a in e.arguments]
    of = arguments[0].type
    if any(a.type != of for a in arguments):
        raise InternalError(f"{e.function} of different types: {', '.join(str(a.type) for a in arguments)}")
    if e.function == "abs" and of.dtype.is_int:
        return arguments[0] if not of.dtype.signed else intrinsic(fn, "abs", arguments, ", i1 false", ", i1")
    if e.function == "pow" and of.dtype.is_int:
        return integers.power(fn, *arguments)
    if of.dtype.name not in ("float32", "float64"):
        raise InternalError(f"{e.function} of {of}")
    if e.function in _INTRINSIC:
        return intrinsic(fn, _INTRINSIC[e.function], arguments)
    if e.function in WAVES:
        return wave(fn, e.function, arguments[0])
    if e.function in FUNCTIONS:
        return elementary(fn, e.function, arguments[0])
    if e.function == "pow":
        return power(fn, *arguments)
    raise InternalError(f"unknown function {e.function}")


def intrinsic(fn: Function, name: str, arguments: list[Value], more: str = "", more_types: str = "") -> Value:
    """Return an intrinsic whose operands and result have one type, `more` being further operands as text."""
    first = arguments[0]
    mangled = f"llvm.{name}.{suffix(scalar_type(first.type.dtype.name), first.type.lanes)}"
    types = ", ".join(a.text for a in arguments)
    symbol = fn.module.declare(mangled, f"{first.text} @{mangled}({types}{more_types})")
    operands = ", ".join(a.typed for a in arguments)
    ref = fn.writer.pure(name, f"call {first.text} {symbol}({operands}{more})")
    return Value(ref, first.type, first.text)
