"""The names that a kernel declares."""

from __future__ import annotations

from opgen.loop.nodes import Alloc, For, Kernel, Let
from opgen.loop.walk import skeleton


def declared_names(kernel: Kernel) -> set[str]:
    """Return the names of a kernel's parameters, buffers, loops and values."""
    used = {p.name for p in kernel.parameters} | {buffer.name for buffer in kernel.buffers}
    for s in skeleton(kernel.body):
        if isinstance(s, For):
            used.add(s.var)
        elif isinstance(s, Let):
            used.add(s.var.name)
        elif isinstance(s, Alloc):
            used.update([buffer.name for buffer in s.buffers])
    return used
