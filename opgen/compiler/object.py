"""Object code of kernels, and the facts needed to load and call it: the cached form of an artifact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opgen.codegen.llvm.room import RoomNeeded
    from opgen.loop.nodes import Buffer


@dataclass(frozen=True)
class ObjectCode:
    """The object file of a kernel, whichever op it came from.

    `parallel`: threads can share its work.  `workspace` is the temporary memory that its caller provides; None if it
    calls functions for it.  `reads` are the positions of its inputs among those of the unscheduled kernel.  After them
    it takes the buffers in `made`, which `first` computes once, from constants alone.  `in_place` pairs operands with
    results, by position: such an operand is read from the result's buffer, and is not an argument.
    """

    code: bytes
    symbol: str
    parallel: bool
    reads: tuple[int, ...]
    workspace: RoomNeeded | None = None
    in_place: tuple[tuple[int, int], ...] = ()
    first: ObjectCode | None = None
    made: tuple[Buffer, ...] = ()
