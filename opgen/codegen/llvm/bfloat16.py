"""bfloat16, the upper half of float32: conversions cheaper than those of `conversions.py`, with the same results."""

from __future__ import annotations

from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, splat, vector
from opgen.dtypes import BFLOAT16, FLOAT32
from opgen.loop.nodes import Cast, Expr, Type

_REGISTERS = (8, 16)
"""Lanes of float32 in the registers that one instruction narrows."""
_DENORMAL = 32
"""The class of denormals, as the instruction that classifies has it."""


def operand(fn: Function, e: Expr) -> Value:
    """Return a value for arithmetic, which makes NaNs quiet: bfloat16 is only moved to the upper half."""
    match e:
        case Cast() if e.type.dtype == FLOAT32 and (value := fn.value(e.operand)).type.dtype == BFLOAT16:
            lanes = e.type.lanes
            bits, text = vector("i32", lanes), vector("float", lanes)
            wide = fn.writer.pure("wide", f"zext {value.typed} to {bits}")
            upper = fn.writer.pure("upper", f"shl {bits} {wide}, {splat('i32', '16', lanes)}")
            return Value(fn.writer.pure("float32", f"bitcast {bits} {upper} to {text}"), e.type, text)
        case _:
            return fn.value(e)


def narrowed(fn: Function, value: Value) -> Value | None:
    """Round float32 with the CPU's instruction; return None where it has none for this number of lanes.

    The instruction flushes denormals to 0.  So the code tests for them and rounds them by integer arithmetic.
    """
    lanes, target = value.type.lanes, fn.module.target
    if lanes not in _REGISTERS or not all(target.has(f) for f in ("avx512bf16", "avx512vl", "avx512dq")):
        return None
    symbol = f"bfloat16.near.float32.x{lanes}"
    if symbol not in fn.module.helpers:
        fn.module.helpers[symbol] = _narrowing(fn, symbol, lanes)
    text = vector("i16", lanes)
    return Value(fn.writer.pure("bfloat16", f"call {text} @{symbol}({value.typed})"), Type(BFLOAT16, lanes), text)


def _narrowing(fn: Function, symbol: str, lanes: int) -> str:
    """Return a helper, and how likely its branch is taken."""
    x, half, bits, brain, truth = (vector(t, lanes) for t in ("float", "i16", "i32", "bfloat", "i1"))
    to_nearest = f"llvm.x86.avx512bf16.cvtneps2bf16.{32 * lanes}"
    of_class = f"llvm.x86.avx512.fpclass.ps.{32 * lanes}"
    rounded = fn.module.declare(to_nearest, f"{brain} @{to_nearest}({x})")
    classified = fn.module.declare(of_class, f"{truth} @{of_class}({x}, i32)")
    sixteen, one, almost = (splat("i32", n, lanes) for n in ("16", "1", "32767"))
    return f"""define internal {half} @{symbol}({x} %x) alwaysinline #0 {{
  %brain = call {brain} {rounded}({x} %x)
  %near = bitcast {brain} %brain to {half}
  %tiny = call {truth} {classified}({x} %x, i32 {_DENORMAL})
  %flags = bitcast {truth} %tiny to i{lanes}
  %any = icmp ne i{lanes} %flags, 0
  br i1 %any, label %denormal, label %done, !prof !{lanes}
denormal:
  %bits = bitcast {x} %x to {bits}
  %high = lshr {bits} %bits, {sixteen}
  %odd = and {bits} %high, {one}
  %raised = add {bits} %bits, {almost}
  %sum = add {bits} %raised, %odd
  %number = lshr {bits} %sum, {sixteen}
  %small = trunc {bits} %number to {half}
  %both = select {truth} %tiny, {half} %small, {half} %near
  br label %done
done:
  %result = phi {half} [ %near, %0 ], [ %both, %denormal ]
  ret {half} %result
}}

!{lanes} = !{{!"branch_weights", i32 1, i32 1000000}}"""
