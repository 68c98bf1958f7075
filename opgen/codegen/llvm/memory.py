"""Buffers in a function, and from indices to addresses."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from opgen.codegen.llvm.affine import (
    NOTHING,
    ONE,
    accumulate,
    by_loop,
    lanes,
    materialise,
    materialise_lanes,
    poly,
    settled,
    splat,
    times,
    total,
)
from opgen.codegen.llvm.function import Function, Lanes, Memory, Poly
from opgen.codegen.llvm.types import listed, memory_type, vector
from opgen.diagnostics import InternalError
from opgen.loop.analysis.joined import whole_of
from opgen.loop.nodes import Buffer, Const, Expr, Load, Prefetch, Ramp, Var
from opgen.loop.walk import walk_expr


def bind(fn: Function, buffer: Buffer, ref: str, alignment: int, readonly: bool) -> None:
    """Bring a buffer into scope; the sizes of its dimensions are computed here."""
    strides: list[Poly] = [ONE]
    for extent in reversed(buffer.shape[1:]):
        strides.append(times(fn, strides[-1], poly(fn, extent)))
    own = tuple(reversed(strides)) if buffer.shape else ()
    fn.memories[buffer.name] = Memory(ref, buffer, own, alignment, readonly)


def flattened(fn: Function, memory: Memory, indices: tuple[Expr, ...]) -> tuple[Lanes, int]:
    """Return the element's row-major number, and the number of lanes.  Unrolled copies ask for the same places."""
    literals = [_literal(i) for i in indices]
    key = (memory.ref, *[(id(i),) if n is None else n for i, n in zip(indices, literals, strict=True)])
    found = fn.places.get(key) or fn.fixed.get(key)
    if found is None:
        found = _flattened_anew(fn, memory, indices)
        if None not in literals:
            fn.fixed[key] = found
        elif not any(changes(fn, i) for i in indices):
            fn.places[key] = found
    return found


def _literal(e: Expr) -> object:
    """Return the value of an index that is the same in all places, as those of registers are; None for any other."""
    match e:
        case Const() if e.type.lanes == 1:
            return e.value
        case Ramp(Const() as base, Const() as stride):
            return base.value, stride.value, e.lanes
        case _:
            return None


def changes(fn: Function, e: Expr) -> bool:
    """Return True if an expression reads memory that a store may change: it may have another value later."""
    return any(isinstance(n, Load) and not fn.memory(n.buffer).readonly for n in walk_expr(e))


def _flattened_anew(fn: Function, memory: Memory, indices: tuple[Expr, ...]) -> tuple[Lanes, int]:
    if len(indices) != len(memory.buffer.shape):
        raise InternalError(
            f"{len(indices)} indices for the {len(memory.buffer.shape)} dimensions of {memory.buffer.name}"
        )
    base: Poly = {}
    varying, count = NOTHING, 1
    for i, stride in _terms(fn, memory, indices):
        of = i.type
        if of.dtype.name != "int64" or (count != 1 and of.lanes not in (1, count)):
            raise InternalError(f"an index of type {of} into {memory.buffer.name}")
        if of.lanes == 1:
            accumulate(fn, base, poly(fn, i), stride)
            continue
        count = of.lanes
        varying = total(fn, varying, lanes(fn, i), stride)
    accumulate(fn, base, varying.base, ONE)
    return settled(Lanes(base, varying.step, varying.rest, varying.fixed)), count


def _terms(fn: Function, memory: Memory, indices: tuple[Expr, ...]) -> Iterator[tuple[Expr, Poly]]:
    """Yield the factors of an offset: each index and its stride, but `i // n, i % n` of a dimension of n as i."""
    after, shape = 0, memory.buffer.shape
    spelt = [fn.named.get(i.name, i) if isinstance(i, Var) else i for i in indices]
    for n, (i, stride) in enumerate(zip(indices, memory.strides, strict=True)):
        if n < after:
            continue
        if n + 1 < len(indices) and (whole := whole_of(spelt[n], spelt[n + 1], shape[n + 1])) is not None:
            after = n + 2
            yield whole, memory.strides[n + 1]
        else:
            yield i, stride


def address_of(fn: Function, memory: Memory, offset: Poly) -> tuple[str, int]:
    """Return the pointer to an element, and its alignment in bytes.

    Terms that change in outer loops are added first, the constant part last, each on its own.  The pointer of a known
    place (see `flattened`) is reused.
    """
    key = (memory.ref, id(offset))
    found = fn.addresses.get(key)
    if found is None:
        found = fn.addresses[key] = (offset, *_address_anew(fn, memory, offset))
    return found[1], found[2]


def _address_anew(fn: Function, memory: Memory, offset: Poly) -> tuple[str, int]:
    element = memory_type(memory.buffer.dtype.name)
    size = memory.buffer.dtype.bytes
    alignment = memory.alignment
    if alignment > size:
        alignment = gcd(alignment, *(coefficient * size for coefficient in offset.values()))
    pointer = memory.ref
    name = pointer[1:].split(".", 1)[0]
    fixed = offset.get((), 0)
    if len(offset) > (1 if fixed else 0):
        varying = {atoms: coefficient for atoms, coefficient in offset.items() if atoms} if fixed else offset
        key = (pointer, *varying.items())
        known = fn.writer.recall(key)
        if known is None:
            known = pointer
            for part in by_loop(fn, varying):
                text = f"getelementptr {element}, ptr {known}, i64 {materialise(fn, part)}"
                known = fn.writer.pure(f"{name}.at", text)
            fn.writer.remember(key, known)
        pointer = known
    if fixed:
        pointer = fn.writer.pure(f"{name}.at", f"getelementptr {element}, ptr {pointer}, i64 {fixed}")
    return pointer, alignment


def prefetch(fn: Function, s: Prefetch) -> None:
    """Request a line for the second cache: the first is too small to keep it until it is used."""
    at, _ = flattened(fn, fn.memory(s.buffer), s.indices)
    pointer, _ = address_of(fn, fn.memory(s.buffer), at.base)
    symbol = fn.module.declare("llvm.prefetch.p0", "void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    fn.writer.line(f"call void {symbol}(ptr {pointer}, i32 0, i32 2, i32 1)")


def mask_of(fn: Function, mask: Expr | None, count: int) -> str | None:
    """Return a mask's value with the access's lanes, None where every lane is on."""
    if mask is None or (isinstance(mask, Const) and mask.value):
        return None
    value = fn.value(mask)
    if value.type.dtype.name != "bool" or value.type.lanes not in (1, count):
        raise InternalError(f"a {value.type} masks an access of {count} lanes")
    return value.ref if value.type.lanes == count else splat(fn, "i1", value.ref, count)


def addresses_of(fn: Function, memory: Memory, at: Lanes, count: int) -> str:
    """Return the address of each lane."""
    element = memory_type(memory.buffer.dtype.name)
    address, _ = address_of(fn, memory, at.base)
    offsets = materialise_lanes(fn, at, count)
    return fn.writer.pure("addresses", f"getelementptr {element}, ptr {address}, <{count} x i64> {offsets}")


def reversed_lanes(fn: Function, scalar: str, ref: str, count: int) -> str:
    whole = vector(scalar, count)
    order = listed("i32", list(range(count - 1, -1, -1)))
    return fn.writer.pure("reversed", f"shufflevector {whole} {ref}, {whole} poison, <{count} x i32> {order}")
