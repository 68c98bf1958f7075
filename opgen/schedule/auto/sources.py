"""Producers and consumers of a kernel's intermediates among its loop nests."""

from __future__ import annotations

from dataclasses import dataclass, field

from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Buffer, Kernel, Load, Var
from opgen.loop.walk import buffers_in, stores
from opgen.passes.simplify import simplify_expr
from opgen.schedule.auto.nests import Nest, inner_nests
from opgen.schedule.cost.sizes import bytes_of


@dataclass
class Sources:
    """Loop nests of a kernel in program order, with the writer and the readers of each intermediate."""

    kernel: Kernel
    nests: list[Nest] = field(init=False)
    writers: dict[str, Nest] = field(init=False, default_factory=dict)
    readers: dict[str, list[Nest]] = field(init=False, default_factory=dict)
    local: frozenset[str] = field(init=False)
    _buffers: dict[str, Buffer] = field(init=False)
    _reads: dict[int, tuple[Load, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        allocated = list(buffers_in(self.kernel.body))
        self._buffers = {buffer.name: buffer for buffer in (*self.kernel.buffers, *allocated)}
        self.local = frozenset(buffer.name for buffer in allocated if buffer.space == "heap")
        self.nests = inner_nests(self.kernel)
        for nest in self.nests:
            for buffer in {s.buffer for s in nest.results} & self.local:
                self.writers[buffer] = nest
            for buffer in {e.buffer for e in nest.outside_loads} & self.local:
                self.readers.setdefault(buffer, []).append(nest)

    def element(self, buffer: str) -> int:
        """Return the bytes of an element of a buffer."""
        return self._buffers[buffer].dtype.bytes

    def size(self, buffer: str) -> int:
        """Return the bytes of a buffer; 0 if its size is not known."""
        return bytes_of(self._buffers[buffer])

    def made_by(self, nest: Nest) -> str | None:
        """Return the intermediate that a loop nest writes."""
        return next((b for b, writer in self.writers.items() if writer is nest), None)

    def reads(self, nest: Nest) -> tuple[Load, ...]:
        """Return the nest's loads of buffers that it does not allocate, their indices simplified as the loops allow."""
        if id(nest) not in self._reads:
            context = Context()
            for loop in (*nest.loops, *nest.inner_loops):
                context = context.with_loop(loop.var, loop.start, loop.stop)
            self._reads[id(nest)] = tuple(
                Load(e.buffer, tuple(simplify_expr(i, context) for i in e.indices), e.dtype)
                for e in dict.fromkeys(nest.outside_loads)
            )
        return self._reads[id(nest)]


def along(nest: Nest, buffer: str, dimension: int) -> str | None:
    """Return the loop of a loop nest that runs along a dimension of the buffer that it writes."""
    index = next(s for s in stores(nest.core) if s.buffer == buffer).indices[dimension]
    return index.name if isinstance(index, Var) and index.name in nest.names else None
