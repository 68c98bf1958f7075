"""Pairs of bfloat16 and their dot products: one instruction where the CPU has it, else two multiply-adds."""

from __future__ import annotations

from opgen.codegen.llvm import functions, loads
from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, splat, value_type, vector
from opgen.loop.nodes import Dot, Load, Pair

_REGISTERS = (4, 8, 16)
"""Lanes of float32 in a register of each width."""


def pair(fn: Function, e: Pair) -> Value:
    """The two halves side by side: as they lie in memory, or by integer arithmetic."""
    if isinstance(e.low, Load) and isinstance(e.high, Load) and (ref := loads.pairs(fn, e.low, e.high)) is not None:
        return Value(ref, e.type, value_type(e.type))
    low, high = fn.value(e.low), fn.value(e.high)
    text = value_type(e.type)
    wide = [fn.writer.pure("wide", f"zext {v.typed} to {text}") for v in (low, high)]
    upper = fn.writer.pure("upper", f"shl {text} {wide[1]}, {splat('i32', '16', e.type.lanes)}")
    return Value(fn.writer.pure("pair", f"or {text} {upper}, {wide[0]}"), e.type, text)


def dot(fn: Function, e: Dot) -> Value:
    """sum + low * low' + high * high'."""
    total, left, right = fn.value(e.sum), fn.value(e.left), fn.value(e.right)
    lanes = e.type.lanes
    has = fn.module.target.has("avx512bf16") and fn.module.target.has("avx512vl")
    if has and lanes in _REGISTERS:
        return _instruction(fn, total, left, right)
    for half in (_high, _low):
        total = functions.intrinsic(fn, "fma", [half(fn, left, total), half(fn, right, total), total])
    return total


def _instruction(fn: Function, total: Value, left: Value, right: Value) -> Value:
    lanes = total.type.lanes
    halves = vector("bfloat", 2 * lanes)
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    symbol = fn.module.declare(name, f"{total.text} @{name}({total.text}, {halves}, {halves})")
    sides = [fn.writer.pure("halves", f"bitcast {v.typed} to {halves}") for v in (left, right)]
    call = f"call {total.text} {symbol}({total.typed}, {halves} {sides[0]}, {halves} {sides[1]})"
    return Value(fn.writer.pure("dot", call), total.type, total.text)


def _low(fn: Function, pair: Value, like: Value) -> Value:
    """The lower bfloat16 as float32: its bits are the upper ones of a float32."""
    lanes = pair.type.lanes
    bits = fn.writer.pure("low", f"shl {pair.typed}, {splat('i32', '16', lanes)}")
    return Value(fn.writer.pure("low", f"bitcast {pair.text} {bits} to {like.text}"), like.type, like.text)


def _high(fn: Function, pair: Value, like: Value) -> Value:
    lanes = pair.type.lanes
    bits = fn.writer.pure("high", f"and {pair.typed}, {splat('i32', '-65536', lanes)}")
    return Value(fn.writer.pure("high", f"bitcast {pair.text} {bits} to {like.text}"), like.type, like.text)
