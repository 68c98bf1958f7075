"""Stores: from lanes to the best access that touches nothing else.

Adjacent lanes are one vector store (reversed if they run backwards).  At any other even distance, they are one store a
lane; in general, LLVM's scatter.  Masked stores are LLVM's masked intrinsics, which never touch memory of a lane that
is off; a lane known to be the only one is stored by itself.
"""

from __future__ import annotations

from opgen.codegen.llvm.affine import (
    constant,
    constant_of,
    plus,
    splat,
    times,
)
from opgen.codegen.llvm.function import Function, Lanes, Memory
from opgen.codegen.llvm.memory import address_of, addresses_of, flattened, mask_of, reversed_lanes
from opgen.codegen.llvm.types import Value, memory_type, suffix, vector
from opgen.codegen.llvm.types import splat as splat_literal
from opgen.diagnostics import InternalError
from opgen.loop.nodes import Expr, Store
from opgen.passes.known import decided


def store(fn: Function, s: Store) -> None:
    """Emit a store."""
    memory = fn.memory(s.buffer)
    at, count = flattened(fn, memory, s.indices)
    value = _in_memory(fn, fn.value(s.value))
    if memory.readonly:
        raise InternalError(f"buffer {s.buffer} is stored to, but it is read only")
    if value.type.dtype != memory.buffer.dtype or value.type.lanes not in (1, count):
        raise InternalError(f"a {value.type} is stored to {s.buffer}, at {count} lanes of {memory.buffer.dtype}")
    element = memory_type(memory.buffer.dtype.name)
    ref = value.ref if value.type.lanes == count else splat(fn, element, value.ref, count)
    mask = mask_of(fn, s.mask, count)
    if count == 1 and mask is None:
        address, alignment = address_of(fn, memory, at.base)
        fn.writer.line(f"store {element} {ref}, ptr {address}, align {alignment}")
    elif mask is None:
        _store_lanes(fn, memory, at, count, ref)
    elif (lane := _only(s.mask, count)) is not None and not at.rest:
        _store_lane(fn, memory, at, count, ref, lane)
    else:
        _store_masked(fn, memory, at, count, ref, mask)


def _only(mask: Expr | None, count: int) -> int | None:
    """Return the lane that a mask leaves on, if it is known to leave on just one."""
    on = decided(mask) if mask is not None and mask.type.lanes == count > 1 else ()
    return on.index(True) if on.count(True) == 1 and None not in on else None


def _store_lane(fn: Function, memory: Memory, at: Lanes, count: int, ref: str, lane: int) -> None:
    """Store one lane of a vector.

    LLVM 22 makes of a masked store of one lane, where its value was narrowed just before, a store of the wide value.
    """
    element = memory_type(memory.buffer.dtype.name)
    single = fn.writer.pure("lane", f"extractelement {vector(element, count)} {ref}, i64 {lane}")
    fixed = constant(at.fixed[lane] if at.fixed else 0)
    address, alignment = address_of(fn, memory, plus(plus(at.base, times(fn, at.step, constant(lane))), fixed))
    fn.writer.line(f"store {element} {single}, ptr {address}, align {alignment}")


def _in_memory(fn: Function, value: Value) -> Value:
    """Return a value as it is kept in memory: bools widened to bytes."""
    if value.type.dtype.name != "bool":
        return value
    byte = vector("i8", value.type.lanes)
    return Value(fn.writer.pure("byte", f"zext {value.typed} to {byte}"), value.type, byte)


def _store_lanes(fn: Function, memory: Memory, at: Lanes, count: int, ref: str) -> None:
    """Store a vector without a mask; lanes at the same place are stored in order."""
    if at.rest or at.fixed:
        _scatter(fn, memory, at, count, ref, splat_literal("i1", "true", count))
        return
    element = memory_type(memory.buffer.dtype.name)
    whole = vector(element, count)
    step = constant_of(at.step)
    if step in (1, -1):
        base = at.base if step == 1 else plus(at.base, constant(1 - count))
        value = ref if step == 1 else reversed_lanes(fn, element, ref, count)
        address, alignment = address_of(fn, memory, base)
        fn.writer.line(f"store {whole} {value}, ptr {address}, align {alignment}")
        return
    for k in range(count):
        single = fn.writer.pure("lane", f"extractelement {whole} {ref}, i64 {k}")
        address, alignment = address_of(fn, memory, plus(at.base, times(fn, at.step, constant(k))))
        fn.writer.line(f"store {element} {single}, ptr {address}, align {alignment}")


def _store_masked(fn: Function, memory: Memory, at: Lanes, count: int, ref: str, mask: str) -> None:
    element = memory_type(memory.buffer.dtype.name)
    step = constant_of(at.step)
    if count == 1:
        mask = fn.writer.pure("mask", f"insertelement <1 x i1> poison, i1 {mask}, i64 0")
        ref = fn.writer.pure("lane", f"insertelement <1 x {element}> poison, {element} {ref}, i64 0")
        step = 1
    if at.rest or at.fixed or step not in (1, -1):
        _scatter(fn, memory, at, count, ref, mask)
        return
    base = at.base
    if step == -1:
        base = plus(base, constant(1 - count))
        mask, ref = reversed_lanes(fn, "i1", mask, count), reversed_lanes(fn, element, ref, count)
    address, alignment = address_of(fn, memory, base)
    whole, on = f"<{count} x {element}>", f"<{count} x i1>"
    mangled = f"llvm.masked.store.v{count}{suffix(element, 1)}.p0"
    symbol = fn.module.declare(mangled, f"void @{mangled}({whole}, ptr, i32, {on})")
    fn.writer.line(f"call void {symbol}({whole} {ref}, ptr {address}, i32 {alignment}, {on} {mask})")


def _scatter(fn: Function, memory: Memory, at: Lanes, count: int, ref: str, mask: str) -> None:
    element = memory_type(memory.buffer.dtype.name)
    pointers = addresses_of(fn, memory, at, count)
    whole, on, addresses = f"<{count} x {element}>", f"<{count} x i1>", f"<{count} x ptr>"
    mangled = f"llvm.masked.scatter.{suffix(element, count)}.v{count}p0"
    symbol = fn.module.declare(mangled, f"void @{mangled}({whole}, {addresses}, i32, {on})")
    size = memory.buffer.dtype.bytes
    fn.writer.line(f"call void {symbol}({whole} {ref}, {addresses} {pointers}, i32 {size}, {on} {mask})")
