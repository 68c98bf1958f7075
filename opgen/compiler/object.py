"""Object code of kernels, and what is to be known to load and call it: what the cache keeps of an artifact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opgen.codegen.llvm.room import RoomNeeded
    from opgen.loop.nodes import Buffer


@dataclass(frozen=True)
class ObjectCode:
    """The object file of a kernel, whatever op it came from.

    `parallel`: threads can share its work.  `workspace` is the temporary memory that its caller gives; None if it has
    it from functions.  `reads` are the positions of its inputs among those of the kernel before its schedule; after
    them it takes the buffers in `made`, which `first` makes once, of constants alone.  `in_place` are the operands (by
    position) that it finds where it leaves results (by position): these operands it does not take.
    """

    code: bytes
    symbol: str
    parallel: bool
    reads: tuple[int, ...]
    workspace: RoomNeeded | None = None
    in_place: tuple[tuple[int, int], ...] = ()
    first: ObjectCode | None = None
    made: tuple[Buffer, ...] = ()
