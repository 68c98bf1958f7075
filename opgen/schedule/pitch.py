"""pitch: more space along a dimension of a local buffer, which moves the elements after it in memory."""

from __future__ import annotations

from dataclasses import replace

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Buffer, Const, Kernel, Stmt
from opgen.loop.walk import buffers_in, map_stmt
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import with_body, with_buffer
from opgen.schedule.values import BufferName, Dimension


@primitive("memory", "pitch sums 1 65")
class Pitch(Step):
    """Leaves room for 65 elements along a dimension of a local buffer that has fewer: its rows lie further apart."""

    buffer: BufferName
    dimension: Dimension
    size: int

    def run(self, kernel: Kernel) -> Kernel:
        return pitch(kernel, self.buffer, self.dimension, self.size)


def pitch(kernel: Kernel, buffer: str, dimension: int, size: int) -> Kernel:
    """Allocate more than is used: space for `size` elements along a dimension that has fewer.

        alloc t[4, 64, 256]                           alloc t[4, 65, 256]
        for i, j, k: t[i, j, k] = x[i, j, k]   ->     for i, j, k: t[i, j, k] = x[i, j, k]

    Addresses a power of two apart map to few sets of a cache; with a small gap between, they map to many.
    """
    found = [o for o in buffers_in(kernel.body) if o.name == buffer]
    if not found:
        names = dict.fromkeys(o.name for o in buffers_in(kernel.body))
        raise ScheduleError(f"pitch {buffer}: the kernel allocates no such buffer", did_you_mean(buffer, names))
    for known in found:
        _require_more(known, dimension, size)

    def pitched(whole: Buffer) -> Buffer:
        shape = list(whole.shape)
        shape[dimension] = b.index(size)
        return replace(whole, shape=tuple(shape))

    def stmt(s: Stmt) -> Stmt:
        return with_buffer(s, buffer, pitched) if isinstance(s, Alloc) else s

    return with_body(kernel, map_stmt(kernel.body, stmt=stmt))


def _require_more(buffer: Buffer, dimension: int, size: int) -> None:
    if not 0 <= dimension < len(buffer.shape):
        raise ScheduleError(f"pitch {buffer.name}: it has no dimension {dimension}")
    extent = buffer.shape[dimension]
    if not isinstance(extent, Const):
        raise ScheduleError(f"pitch {buffer.name}: the size of dimension {dimension} is not constant")
    if size < extent.value:
        raise ScheduleError(f"pitch {buffer.name}: dimension {dimension} has {extent.value} elements")
