"""permute: a buffer of the kernel's own with its dimensions in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opgen.loop.nodes import Alloc, Expr, Kernel, Load, Stmt, Store
from opgen.loop.walk import buffers_in, map_stmt
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import with_body, with_buffer
from opgen.schedule.values import BufferName, Dimension


@primitive("memory", "permute sums 2, 0, 1")
class Permute(Step):
    """Puts the dimensions of a local buffer in another order."""

    buffer: BufferName
    order: tuple[Dimension, ...]

    def run(self, kernel: Kernel) -> Kernel:
        return permute(kernel, self.buffer, self.order)


def permute(kernel: Kernel, buffer: str, order: Sequence[int]) -> Kernel:
    """Store a local buffer in another order: dimension d of the result is dimension order[d] of the original.

        alloc sums[9, 16, 2]                          alloc sums[2, 9, 16]
        sums[r, c, part] = x[r, c]           ->       sums[part, r, c] = x[r, c]

    Inputs and outputs keep their order: `pack` makes copies of them.
    """
    found = [o for o in buffers_in(kernel.body) if o.name == buffer]
    if not found:
        names = dict.fromkeys(o.name for o in buffers_in(kernel.body))
        raise ScheduleError(
            f"permute {buffer}: the kernel allocates no such buffer", f"it has {', '.join(names) or 'none'}"
        )
    dimensions = len(found[0].shape)
    if any(sorted(order) != list(range(len(o.shape))) for o in found):
        raise ScheduleError(f"permute {buffer}: its {dimensions} dimensions each belong into the order once")

    def permuted(of: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(of[d] for d in order)

    def expr(e: Expr) -> Expr:
        return Load(buffer, permuted(e.indices), e.dtype, e.mask) if isinstance(e, Load) and e.buffer == buffer else e

    def stmt(s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.buffer == buffer:
            return Store(buffer, permuted(s.indices), s.value, s.mask)
        return with_buffer(s, buffer, lambda o: replace(o, shape=permuted(o.shape))) if isinstance(s, Alloc) else s

    return with_body(kernel, map_stmt(kernel.body, expr=expr, stmt=stmt))
