"""Words of two bfloat16 or of four bytes, and their dot products: one instruction where the CPU has it, else one
multiply-add for each product.
"""

from __future__ import annotations

from opgen.codegen.llvm import functions, loads
from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, listed, splat, value_type, vector
from opgen.dtypes import INT32
from opgen.loop.nodes import Dot, Word

_REGISTERS = (4, 8, 16)
"""Lanes of 32 bits in a register of each width."""


def word(fn: Function, e: Word) -> Value:
    """Return the parts as one word: as they are in memory, or interleaved."""
    text, lanes = value_type(e.type), e.type.lanes
    if (ref := loads.words(fn, e.parts)) is not None:
        return Value(ref, e.type, text)
    parts = [fn.value(p) for p in e.parts]
    if lanes == 1 or len(parts) == 2:
        return Value(_shifted(fn, parts, text, lanes), e.type, text)
    bits = 32 // len(parts)
    refs = [v.ref for v in parts]
    while len(refs) > 1:  # neighbours: 0 and 1, 2 and 3, then both
        narrow, count = vector(f"i{bits}", lanes), 2 * lanes
        order = listed("i32", [k // 2 + lanes * (k % 2) for k in range(count)])
        bits *= 2
        sides = zip(refs[::2], refs[1::2], strict=True)
        both = [
            fn.writer.pure("both", f"shufflevector {narrow} {x}, {narrow} {y}, {vector('i32', count)} {order}")
            for x, y in sides
        ]
        wide = vector(f"i{bits}", lanes)
        refs = [fn.writer.pure("wide", f"bitcast {vector(f'i{bits // 2}', count)} {x} to {wide}") for x in both]
    return Value(refs[0], e.type, text)


def _shifted(fn: Function, parts: list[Value], text: str, lanes: int) -> str:
    """Return the parts as one word, by shifts."""
    bits = 32 // len(parts)
    first, *others = (fn.writer.pure("wide", f"zext {v.typed} to {text}") for v in parts)
    for k, part in enumerate(others, 1):
        upper = fn.writer.pure("upper", f"shl {text} {part}, {splat('i32', str(k * bits), lanes)}")
        first = fn.writer.pure("pair", f"or {text} {upper}, {first}")
    return first


def dot(fn: Function, e: Dot) -> Value:
    """sum + low * low' + high * high', or so much of four bytes."""
    total, left, right = fn.value(e.sum), fn.value(e.left), fn.value(e.right)
    lanes = e.type.lanes
    if e.type.dtype == INT32:
        return _bytes(fn, total, left, right)
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


def _bytes(fn: Function, total: Value, left: Value, right: Value) -> Value:
    """sum + four products of a byte without a sign by a signed one."""
    lanes, text = total.type.lanes, total.text
    target = fn.module.target
    registers = _REGISTERS if target.has("avx512vnni") else _REGISTERS[:2]  # avxvnni has none of 512 bits
    if target.has_quads and lanes in registers:
        name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
        symbol = fn.module.declare(name, f"{text} @{name}({text}, {text}, {text})")
        call = f"call {text} {symbol}({total.typed}, {left.typed}, {right.typed})"
        return Value(fn.writer.pure("dot", call), total.type, text)
    for k in range(4):
        low = fn.writer.pure("byte", f"lshr {left.typed}, {splat('i32', str(8 * k), lanes)}")
        one = fn.writer.pure("byte", f"and {text} {low}, {splat('i32', '255', lanes)}")
        high = fn.writer.pure("byte", f"shl {right.typed}, {splat('i32', str(24 - 8 * k), lanes)}")
        other = fn.writer.pure("byte", f"ashr {text} {high}, {splat('i32', '24', lanes)}")
        product = fn.writer.pure("product", f"mul {text} {one}, {other}")
        total = Value(fn.writer.pure("dot", f"add {text} {total.ref}, {product}"), total.type, text)
    return total


def _low(fn: Function, pair: Value, like: Value) -> Value:
    """Return the lower bfloat16 as float32: its bits are the upper ones of a float32."""
    lanes = pair.type.lanes
    bits = fn.writer.pure("low", f"shl {pair.typed}, {splat('i32', '16', lanes)}")
    return Value(fn.writer.pure("low", f"bitcast {pair.text} {bits} to {like.text}"), like.type, like.text)


def _high(fn: Function, pair: Value, like: Value) -> Value:
    lanes = pair.type.lanes
    bits = fn.writer.pure("high", f"and {pair.typed}, {splat('i32', '-65536', lanes)}")
    return Value(fn.writer.pure("high", f"bitcast {pair.text} {bits} to {like.text}"), like.type, like.text)
