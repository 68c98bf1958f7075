"""Non-temporal stores: whole vectors of a streamed buffer at addresses that are multiples of their size.

The alignment depends on the address in a call, so a branch chooses between two ways of storing.  Consecutive stores
share one branch, so that the code around them is not split into small blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opgen.codegen.llvm.affine import constant_of, splat
from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.memory import address_of, flattened
from opgen.codegen.llvm.types import memory_type, vector
from opgen.loop.nodes import Stmt, Store

SIZES = (16, 32, 64)
"""Bytes of the vectors that x86 stores past the caches."""
MARK = "!0"
"""LLVM's mark of such stores."""


def runs(fn: Function, statements: Sequence[Stmt]) -> Iterator[Stmt | list[Store]]:
    """Yield statements in order; suitable stores in lists."""
    run: list[Store] = []
    for s in statements:
        if isinstance(s, Store) and suits(fn, s):
            run.append(s)
            continue
        if run:
            yield run
            run = []
        yield s
    if run:
        yield run


def suits(fn: Function, s: Store) -> bool:
    """Return True if a store is of a vector that is at a multiple of its size if the buffer is."""
    memory = fn.memory(s.buffer)
    if memory.buffer.space != "streamed" or s.mask is not None or not fn.module.target.is_x86:
        return False
    at, count = flattened(fn, memory, s.indices)
    size = count * memory.buffer.dtype.bytes
    plain = not at.rest and not at.fixed and constant_of(at.step) == 1 and memory.buffer.dtype.name != "bool"
    return plain and size in SIZES and all(factor % count == 0 for factor in at.base.values())


def store(fn: Function, run: Sequence[Store]) -> None:
    """Store a run of suitable stores: their values and addresses come before the branch."""
    w = fn.writer
    lines, sizes = [], set()
    for s in run:
        memory = fn.memory(s.buffer)
        at, count = flattened(fn, memory, s.indices)
        element = memory_type(memory.buffer.dtype.name)
        value = fn.value(s.value)
        ref = value.ref if value.type.lanes == count else splat(fn, element, value.ref, count)
        address, alignment = address_of(fn, memory, at.base)
        size = count * memory.buffer.dtype.bytes
        lines.append((f"store {vector(element, count)} {ref}, ptr {address}", alignment, size))
        sizes.add((memory.ref, size))
    fn.module.helpers["streams"] = f"{MARK} = !{{i32 1}}"
    past, through, stored = w.name("past"), w.name("through"), w.name("stored")
    w.line(f"br i1 {_aligned(fn, sizes)}, label %{past}, label %{through}")
    w.label(past)
    for line, _, size in lines:
        w.line(f"{line}, align {size}, !nontemporal {MARK}")
    w.line(f"br label %{stored}")
    w.label(through)
    for line, alignment, _ in lines:
        w.line(f"{line}, align {alignment}")
    w.line(f"br label %{stored}")
    w.label(stored)


def _aligned(fn: Function, buffers: set[tuple[str, int]]) -> str:
    """Return a bool: buffers are at multiples of sizes; tested once, before any loop."""
    pure, found = fn.writer.pure, "true"
    for ref, size in sorted(buffers):
        place = pure("place", f"ptrtoint ptr {ref} to i64")
        rest = pure("rest", f"and i64 {place}, {size - 1}")
        aligned = pure("aligned", f"icmp eq i64 {rest}, 0")
        found = aligned if found == "true" else pure("aligned", f"and i1 {found}, {aligned}")
    return found


def settle(fn: Function) -> None:
    """Order non-temporal stores before the following code, ahead of a function's return."""
    if fn.module.target.is_x86 and any(m.buffer.space == "streamed" for m in fn.memories.values()):
        symbol = fn.module.declare("llvm.x86.sse.sfence", "void @llvm.x86.sse.sfence()")
        fn.writer.line(f"call void {symbol}()")
