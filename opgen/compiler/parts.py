"""A legal kernel and its generated code: LLVM IR, assembly, object code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from opgen.codegen.llvm.room import RoomNeeded, room_of
from opgen.codegen.llvm.target import Target
from opgen.compiler import toolchain
from opgen.compiler.inner_loop import InnerLoop, inner_loop
from opgen.compiler.request import LibraryFunctions, Memory
from opgen.locks import cached_property
from opgen.loop.analysis.movement import Movement
from opgen.loop.nodes import Alloc, Buffer, For, Kernel, Stmt
from opgen.loop.walk import loops_in, parts

Heap: TypeAlias = "tuple[tuple[Buffer, bool], ...]"
"""Buffers on the heap, each with True if every thread of a parallel loop has its own."""


@dataclass(frozen=True)
class Part:
    """A legal kernel for a target, and the source of its temporary memory."""

    legal: Kernel
    target: Target
    memory: Memory = "malloc"

    @property
    def symbol(self) -> str:
        """The name of the kernel's function."""
        return toolchain.entry_name(self.legal)

    @property
    def parallel(self) -> bool:
        """True if threads can share its work."""
        return any(s.kind == "parallel" for s in loops_in(self.legal.body))

    @cached_property
    def workspace(self) -> RoomNeeded | None:
        """The temporary memory that the caller provides; None if the kernel calls functions for it."""
        return room_of(self.legal) if self.memory == "caller" else None

    @property
    def heap(self) -> Heap:
        """The kernel's buffers on the heap."""
        return tuple(_heap(self.legal.body, False))

    @cached_property
    def llvm(self) -> str:
        """LLVM IR, before LLVM's own passes."""
        ir = toolchain.emit(self.legal, self.target, self.workspace is not None)
        return _inside_library(ir, self.symbol, self.memory) if isinstance(self.memory, LibraryFunctions) else ir

    @cached_property
    def asm(self) -> str:
        """Assembly."""
        return toolchain.assembly(self.llvm, self.target, self.legal.is_bound)

    @cached_property
    def inner_loop(self) -> InnerLoop | None:
        """The inner loop in the assembly that runs most vector arithmetic; None without loops."""
        bound = self.legal.is_bound
        runs = Movement(self.legal).runs() if bound else {}
        return inner_loop(toolchain.commented_assembly(self.llvm, self.target, bound), runs)

    @cached_property
    def code(self) -> bytes:
        """The object file."""
        return toolchain.object_code(self.llvm, self.target, self.legal.is_bound)


def _heap(s: Stmt, parallel: bool) -> Iterator[tuple[Buffer, bool]]:
    if isinstance(s, Alloc) and s.space == "heap":
        yield from ((buffer, parallel) for buffer in s.buffers)
    inside = parallel or (isinstance(s, For) and s.kind == "parallel")
    for part in parts(s):
        yield from _heap(part, inside)


def _inside_library(ir: str, symbol: str, memory: LibraryFunctions) -> str:
    """Return IR that calls the library's own malloc and free, with an entry hidden in the library."""
    ir = re.sub(r"@(malloc|free)\(", rf"@{memory.prefix}_\1(", ir)
    return ir.replace(f"define i32 @{symbol}(", f"define hidden i32 @{symbol}(")
