"""Multiply-adds in which a mask leaves out lanes, as one instruction where the CPU has masks.

    fma(x[i if m], select(m, w, -0), acc)    ->    select(m, fma(x[i if m], w, acc), acc)

LLVM makes a masked multiply-add of the second form if it does not know the mask's value.  For a known one it makes a
blend, which uses the multiplying units.  So a known mask passes through an empty piece of assembly, once for a
function.
"""

from __future__ import annotations

from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, value_type
from opgen.dtypes import BOOL
from opgen.loop.nodes import Call, Const, Expr, Select, Type
from opgen.passes.known import decided
from opgen.passes.left_out import zero_unless


def left_out(e: Call) -> tuple[tuple[Expr, ...], tuple[bool, ...]] | None:
    """Return the factors and the addend of a multiply-add without its select, and the lanes that it keeps.

    The multiply-add must leave out known lanes; None for any other.
    """
    if e.function != "fma":
        return None
    left, right, total = e.arguments
    for factor, selected in ((left, right), (right, left)):
        match selected:
            case Select(condition, kept, Const(float(zero))) if str(zero) == "-0.0" and zero_unless(condition, factor):
                lanes = decided(condition)
                if None not in lanes:
                    factors = (factor, kept) if factor is left else (kept, factor)
                    return (*factors, total), tuple(lane is True for lane in lanes)
    return None


def has_masks(fn: Function, of: Type) -> bool:
    """Return True if the CPU has masks for vectors of a type."""
    target, bits = fn.module.target, of.dtype.bits * of.lanes
    return of.lanes in (8, 16) and (target.has("avx512vl") or (bits == 512 and target.has("avx512f")))


def keep(fn: Function, lanes: tuple[bool, ...], value: Value, total: Value) -> Value:
    """Return `value` in the given lanes, `total` in the others."""
    number, whole = sum(on << k for k, on in enumerate(lanes)), f"i{len(lanes)}"
    bits = fn.writer.pure("lanes", f'call {whole} asm "", "=r,0"({whole} {number})')
    flags = value_type(Type(BOOL, len(lanes)))
    mask = fn.writer.pure("mask", f"bitcast {whole} {bits} to {flags}")
    return Value(fn.writer.pure("kept", f"select {flags} {mask}, {value.typed}, {total.typed}"), value.type, value.text)
