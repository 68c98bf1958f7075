"""Memory of local buffers: on the stack, where LLVM promotes it to registers, or on the heap.

A buffer on the heap comes from the C library, or out of a workspace that the caller provides (`Function.room`).  In the
workspace buffers are placed one after the other, and the last one acquired is released first.  The workspace is large
enough (`room.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import prod

from opgen.codegen.llvm.affine import constant_of, materialise, poly
from opgen.codegen.llvm.function import Function, Room
from opgen.codegen.llvm.types import memory_type, sanitised
from opgen.diagnostics import InternalError
from opgen.loop.nodes import Alloc, Buffer
from opgen.loop.status import OUT_OF_MEMORY

ALIGNMENT = 64
"""Of every local buffer, in bytes: a cache line, and the widest vector."""

_LARGEST = 2**63 - ALIGNMENT


def reserve(fn: Function, buffer: Buffer) -> str:
    """Return a pointer to a buffer of constant size on the stack."""
    sizes = [constant_of(poly(fn, extent)) for extent in buffer.shape]
    known = [n for n in sizes if n is not None]
    if len(known) != len(sizes) or any(n < 0 for n in known):
        raise InternalError(f"buffer {buffer.name} in space {buffer.space} has no constant size")
    element = memory_type(buffer.dtype.name)
    return fn.writer.alloca(sanitised(buffer.name), f"[{prod(known)} x {element}], align {ALIGNMENT}")


def acquire(fn: Function, buffer: Buffer) -> str:
    """Return a pointer to a buffer on the heap; without memory the function frees its blocks and returns 1.

    A size that is negative or does not fit counts as a lack of memory.  An empty buffer is valid.
    """
    name = sanitised(buffer.name)
    return _acquired(fn, name, _bytes(fn, buffer, name))


def _acquired(fn: Function, name: str, size: str) -> str:
    """Return a pointer to the first line in a new block."""
    w = fn.writer
    if fn.room is not None:
        return _from_room(fn, fn.room, name, size)
    malloc = fn.module.declare("malloc", "noalias ptr @malloc(i64) nobuiltin nounwind")
    block = w.define(f"{name}.block", f"call ptr {malloc}(i64 {size})")
    failed, ready = w.name(f"{name}.failed"), w.name(f"{name}.ready")
    w.line(f"br i1 {w.define(f'{name}.null', f'icmp eq ptr {block}, null')}, label %{failed}, label %{ready}")
    w.label(failed)
    leave(fn)
    w.label(ready)
    up = w.define(f"{name}.up", f"getelementptr i8, ptr {block}, i64 {ALIGNMENT - 1}")
    mask = fn.module.declare("llvm.ptrmask.p0.i64", "ptr @llvm.ptrmask.p0.i64(ptr, i64)")
    fn.live.append(block)
    return w.define(name, f"call ptr {mask}(ptr {up}, i64 {-ALIGNMENT})")


def _from_room(fn: Function, room: Room, name: str, size: str) -> str:
    """Return the free place; a size has ALIGNMENT - 1 to spare, so that it can be rounded down to whole lines."""
    w = fn.writer
    lines = w.pure(f"{name}.lines", f"and i64 {size}, {-ALIGNMENT}")
    fn.live.append(room.top)
    fn.room = replace(room, top=w.define(f"{name}.end", f"getelementptr i8, ptr {room.top}, i64 {lines}"))
    return w.define(name, f"getelementptr i8, ptr {room.top}, i64 0")  # places are remembered by a pointer's name


def blocks(fn: Function, s: Alloc) -> list[list[Buffer]]:
    """Return the buffers of an allocation, neighbours of constant size together.

    One block serves them all: the C library soon keeps a block of such a size for the next call.  Parts of several
    blocks go back to the system, and clearing their pages again can take longer than the kernel.
    """
    runs = [list(run) for _, run in groupby(s.buffers, lambda buffer: _size(fn, buffer) is not None)]
    return [part for run in runs for part in ([run] if _size(fn, run[0]) is not None else [[b] for b in run])]


def acquire_together(fn: Function, buffers: Sequence[Buffer]) -> list[str]:
    """Pointers to buffers of constant sizes in one block, each at the beginning of a line; as `acquire` otherwise."""
    sizes = [-(-(_size(fn, b) or 0) // ALIGNMENT) * ALIGNMENT for b in buffers]
    name = sanitised(buffers[0].name)
    asked = sum(sizes) + ALIGNMENT - 1
    whole = _acquired(fn, name, str(asked if asked <= _LARGEST else -1))
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    places = zip(buffers, starts, strict=True)
    return [fn.writer.define(sanitised(b.name), f"getelementptr i8, ptr {whole}, i64 {at}") for b, at in places]


def _size(fn: Function, buffer: Buffer) -> int | None:
    """Return the bytes of a buffer, if they are constant and sensible."""
    sizes = [constant_of(poly(fn, extent)) for extent in buffer.shape]
    known = [n for n in sizes if n is not None and n >= 0]
    size = buffer.dtype.bytes * prod(known)
    return size if len(known) == len(sizes) and size <= _LARGEST else None


def release(fn: Function) -> None:
    """Free the block acquired last."""
    block = fn.live.pop()
    if fn.room is not None:
        fn.room = replace(fn.room, top=block)
    else:
        _free(fn, block)


def leave(fn: Function, status: int = OUT_OF_MEMORY) -> None:
    """Return from the function before its end, after freeing its blocks."""
    for block in reversed(fn.live if fn.room is None else ()):
        _free(fn, block)
    fn.writer.line(f"ret i32 {status}")


def _free(fn: Function, block: str) -> None:
    free = fn.module.declare("free", "void @free(ptr) nobuiltin nounwind")
    fn.writer.line(f"call void {free}(ptr {block})")


def _bytes(fn: Function, buffer: Buffer, name: str) -> str:
    """Return the bytes to request, with space to align; an impossible number if the size overflows."""
    fixed, varying = buffer.dtype.bytes, []
    for extent in buffer.shape:
        p = poly(fn, extent)
        size = constant_of(p)
        if size is None:
            varying.append(materialise(fn, p))
        else:
            fixed = fixed * size if size >= 0 else _LARGEST + 1
    if fixed > _LARGEST:
        return "-1"
    w = fn.writer
    multiply = "llvm.umul.with.overflow.i64"
    result, over = str(fixed), ""
    for extent_value in varying:
        symbol = fn.module.declare(multiply, f"{{i64, i1}} @{multiply}(i64, i64)")
        pair = w.pure(f"{name}.size", f"call {{i64, i1}} {symbol}(i64 {result}, i64 {extent_value})")
        result = w.pure(f"{name}.bytes", f"extractvalue {{i64, i1}} {pair}, 0")
        flag = w.pure(f"{name}.over", f"extractvalue {{i64, i1}} {pair}, 1")
        over = w.pure(f"{name}.over", f"or i1 {over}, {flag}") if over else flag
    if not over:
        return str(fixed + ALIGNMENT - 1)
    large = w.pure(f"{name}.large", f"icmp ugt i64 {result}, {_LARGEST}")
    over = w.pure(f"{name}.over", f"or i1 {over}, {large}")
    padded = w.pure(f"{name}.padded", f"add i64 {result}, {ALIGNMENT - 1}")
    return w.pure(f"{name}.asked", f"select i1 {over}, i64 -1, i64 {padded}")
