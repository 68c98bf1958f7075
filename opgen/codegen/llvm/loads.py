"""Loads: from lanes to the best access that touches nothing else.

Adjacent lanes are one vector load (reversed if they run backwards).  A few elements apart, they are a few vector loads
that end exactly at the last lane, and a shuffle.  At any other even distance, they are one load a lane; in general,
LLVM's gather.  Masked loads are LLVM's masked intrinsics, which never touch memory of a lane that is off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opgen.codegen.llvm.affine import (
    constant,
    constant_of,
    plus,
    splat,
    times,
)
from opgen.codegen.llvm.function import Function, Lanes, Memory, Poly
from opgen.codegen.llvm.memory import address_of, addresses_of, flattened, mask_of, reversed_lanes
from opgen.codegen.llvm.types import Value, listed, memory_type, suffix, value_type, vector
from opgen.codegen.llvm.types import splat as splat_literal
from opgen.loop.nodes import Expr, Load, Type
from opgen.passes.known import decided

_MOST_CHUNKS = 4
"""Up to this many elements apart, lanes are picked out of whole vectors."""


def load(fn: Function, e: Load) -> Value:
    """Return the value of a load; lanes that are masked off are 0."""
    memory = fn.memory(e.buffer)
    fn.loaded.add(e.buffer)
    at, count = flattened(fn, memory, e.indices)
    mask = mask_of(fn, e.mask, count)
    if count == 1:
        raw = _load_scalar(fn, memory, at.base) if mask is None else _load_one_masked(fn, memory, at.base, mask)
    elif mask is None:
        raw = _load_lanes(fn, memory, at, count)
    else:
        off = [on is False for on in decided(e.mask)] if e.mask is not None and e.mask.type.lanes == count else None
        raw = _load_masked(fn, memory, at, count, mask, off)
    of = Type(memory.buffer.dtype, count)
    if memory.buffer.dtype.name == "bool":
        element = vector("i8", count)
        raw = _read(fn, memory, "flag", f"icmp ne {element} {raw}, {'0' if count == 1 else 'zeroinitializer'}")
    return Value(raw, of, value_type(of))


def words(fn: Function, parts: Sequence[Expr]) -> str | None:
    """Load elements and their right neighbours, four bytes in all, as words at once; None if they are not such."""
    reads = [e for e in parts if isinstance(e, Load) and e.mask is None]
    if len(reads) != len(parts) or len({e.buffer for e in reads}) > 1:
        return None
    memory = fn.memory(reads[0].buffer)
    (first, count), *others = (flattened(fn, memory, e.indices) for e in reads)
    step = constant_of(first.step) if count > 1 else len(parts)
    if step != len(parts) or first.rest or first.fixed:
        return None
    for apart, (other, lanes) in enumerate(others, 1):
        alike = first._replace(base=other.base) == other and lanes == count
        if not alike or constant_of(plus(other.base, first.base, -1)) != apart:
            return None
    fn.loaded.add(reads[0].buffer)
    address, alignment = address_of(fn, memory, first.base)
    return _read(
        fn,
        memory,
        "pairs" if len(parts) == 2 else "quads",
        f"load {vector('i32', count)}, ptr {address}, align {alignment}",
    )


def _read(fn: Function, memory: Memory, what: str, text: str) -> str:
    """Emit an instruction that reads a buffer (or uses such a read): shared where nothing stores to the buffer."""
    hint = f"{memory.ref[1:].split('.', 1)[0]}.{what}"
    return fn.writer.once(hint, text) if memory.readonly else fn.writer.define(hint, text)


def _load_scalar(fn: Function, memory: Memory, offset: Poly) -> str:
    address, alignment = address_of(fn, memory, offset)
    element = memory_type(memory.buffer.dtype.name)
    return _read(fn, memory, "value", f"load {element}, ptr {address}, align {alignment}")


def _load_vector(fn: Function, memory: Memory, offset: Poly, count: int) -> str:
    address, alignment = address_of(fn, memory, offset)
    element = vector(memory_type(memory.buffer.dtype.name), count)
    return _read(fn, memory, "value", f"load {element}, ptr {address}, align {alignment}")


def _load_lanes(fn: Function, memory: Memory, at: Lanes, count: int) -> str:
    """Return a vector load without a mask."""
    step = constant_of(at.step)
    if step == 1 and not at.rest and not at.fixed:
        return _load_vector(fn, memory, at.base, count)
    places = _places(at, count, None)
    if at.rest or (at.fixed and places is None):
        return _gather(fn, memory, at, count, splat_literal("i1", "true", count))
    element = memory_type(memory.buffer.dtype.name)
    if step == 0 and not at.fixed:
        return splat(fn, element, _load_scalar(fn, memory, at.base), count)
    if places is not None:
        return _load_chunks(fn, memory, at.base, places, None)
    result = "poison"
    for k in range(count):
        single = _load_scalar(fn, memory, plus(at.base, times(fn, at.step, constant(k))))
        text = f"insertelement {vector(element, count)} {result}, {element} {single}, i64 {k}"
        result = _read(fn, memory, "lanes", text)
    return result


def _places(at: Lanes, count: int, off: Sequence[bool] | None) -> list[int | None] | None:
    """Return each lane's distance from the base (None if the lane is off), if a few whole vectors hold all lanes."""
    step = constant_of(at.step)
    if at.rest or step is None or (not at.fixed and not 1 <= abs(step) <= _MOST_CHUNKS):
        return None
    places = [step * k + (at.fixed[k] if at.fixed else 0) for k in range(count)]
    found = [None if off is not None and off[k] else place for k, place in enumerate(places)]
    known = sorted(p for p in found if p is not None)
    apart = len(set(known)) == len(known) > 0
    inside = off is not None or (apart and known[-1] - known[0] >= count - 1)
    return found if apart and inside and len(_starts(known, count)) <= _MOST_CHUNKS else None


def _starts(places: Sequence[int], count: int) -> list[int]:
    """Return the starts of vectors that hold all places, and nothing before the first and after the last."""
    starts: list[int] = []
    for place in sorted(places):
        if not starts or place >= starts[-1] + count:
            starts.append(min(place, max(places) - count + 1))
    return starts


def _load_chunks(fn: Function, memory: Memory, base: Poly, places: Sequence[int | None], mask: str | None) -> str:
    """Load lanes near each other: vectors that together hold them, then the lanes picked."""
    count = len(places)
    element = vector(memory_type(memory.buffer.dtype.name), count)
    zeros = "zeroinitializer" if None in places else "poison"
    result, picked = "", [False] * count
    for start in _starts([p for p in places if p is not None], count):
        found = [
            None if done or p is None or not 0 <= p - start < count else p - start
            for done, p in zip(picked, places, strict=True)
        ]
        at = plus(base, constant(start))
        if mask is None:
            chunk = _load_vector(fn, memory, at, count)
        else:
            lanes = {p: k for k, p in enumerate(found) if p is not None}
            chunk = _masked_load(fn, memory, at, count, _spread(fn, mask, count, lanes))
        # The lanes in this chunk come from it, the others stay unchanged: at first 0 if they are off.
        if result:
            picks = [k if p is None else p + count for k, p in enumerate(found)]
            operands = f"{element} {result}, {element} {chunk}"
        else:
            picks = [k + (count if places[k] is None else 0) if p is None else p for k, p in enumerate(found)]
            operands = f"{element} {chunk}, {element} {zeros}"
        result = _read(fn, memory, "lanes", f"shufflevector {operands}, <{count} x i32> {listed('i32', picks)}")
        picked = [done or p is not None for done, p in zip(picked, found, strict=True)]
    return result


def _spread(fn: Function, mask: str, count: int, lanes: Mapping[int, int]) -> str:
    """Return a mask whose lane i is lane `lanes[i]` of another, or off."""
    whole = vector("i1", count)
    order = listed("i32", [lanes.get(i, count) for i in range(count)])
    return fn.writer.pure("mask", f"shufflevector {whole} {mask}, {whole} zeroinitializer, <{count} x i32> {order}")


def _load_one_masked(fn: Function, memory: Memory, offset: Poly, mask: str) -> str:
    """Return a masked scalar load: one lane of a vector."""
    element = memory_type(memory.buffer.dtype.name)
    on = fn.writer.pure("mask", f"insertelement <1 x i1> poison, i1 {mask}, i64 0")
    result = _masked_load(fn, memory, offset, 1, on)
    return _read(fn, memory, "value", f"extractelement <1 x {element}> {result}, i64 0")


def _load_masked(fn: Function, memory: Memory, at: Lanes, count: int, mask: str, off: Sequence[bool] | None) -> str:
    """Return a vector load under a mask, which is known to be off in some lanes."""
    step = constant_of(at.step)
    if at.rest or at.fixed or step is None or abs(step) != 1:
        places = _places(at, count, off or [False] * count)
        return (
            _gather(fn, memory, at, count, mask) if places is None else _load_chunks(fn, memory, at.base, places, mask)
        )
    if step == 1:
        return _masked_load(fn, memory, at.base, count, mask)
    backwards = _masked_load(
        fn, memory, plus(at.base, constant(1 - count)), count, reversed_lanes(fn, "i1", mask, count)
    )
    return reversed_lanes(fn, memory_type(memory.buffer.dtype.name), backwards, count)


def _masked_load(fn: Function, memory: Memory, offset: Poly, count: int, mask: str) -> str:
    address, alignment = address_of(fn, memory, offset)
    element = memory_type(memory.buffer.dtype.name)
    whole, on = f"<{count} x {element}>", f"<{count} x i1>"
    mangled = f"llvm.masked.load.v{count}{suffix(element, 1)}.p0"
    symbol = fn.module.declare(mangled, f"{whole} @{mangled}(ptr, i32, {on}, {whole})")
    call = f"call {whole} {symbol}(ptr {address}, i32 {alignment}, {on} {mask}, {whole} zeroinitializer)"
    value = _read(fn, memory, "value", call)
    return _apart(fn, memory, whole, value) if _may_be_folded(fn, memory.buffer.dtype.bits, count) else value


def _may_be_folded(fn: Function, bits: int, count: int) -> bool:
    """Return True if LLVM may make one instruction of a masked load and masked arithmetic."""
    target = fn.module.target
    masks = target.has("avx512vl") or (bits * count == 512 and target.has("avx512f"))
    return masks and bits >= 32 and bits * count in (128, 256, 512)


def _apart(fn: Function, memory: Memory, whole: str, value: str) -> str:
    """Keep a loaded vector a separate instruction, so that LLVM 22 does not fold it into masked arithmetic.

    Where registers are few, LLVM may unfold it again into a load without the mask, which reads beyond the end of an
    array.
    """
    return _read(fn, memory, "apart", f'call {whole} asm "", "=v,0"({whole} {value})')


def _gather(fn: Function, memory: Memory, at: Lanes, count: int, mask: str) -> str:
    element = memory_type(memory.buffer.dtype.name)
    pointers = addresses_of(fn, memory, at, count)
    whole, on, addresses = f"<{count} x {element}>", f"<{count} x i1>", f"<{count} x ptr>"
    mangled = f"llvm.masked.gather.{suffix(element, count)}.v{count}p0"
    symbol = fn.module.declare(mangled, f"{whole} @{mangled}({addresses}, i32, {on}, {whole})")
    size = memory.buffer.dtype.bytes
    call = f"call {whole} {symbol}({addresses} {pointers}, i32 {size}, {on} {mask}, {whole} zeroinitializer)"
    return _read(fn, memory, "value", call)
