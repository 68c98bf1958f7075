"""What a nest finally reads: through the intermediates that are made within it."""

from __future__ import annotations

from dataclasses import dataclass, field

from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Buffer, Kernel, Load, Var
from opgen.loop.walk import buffers_in, free_vars, stores
from opgen.passes.simplify import simplify_expr
from opgen.schedule.auto.nests import Nest, inner_nests
from opgen.schedule.cost.sizes import bytes_of


@dataclass
class Sources:
    """The nests of a kernel, in program order; which of them writes an intermediate, and which read it."""

    kernel: Kernel
    nests: list[Nest] = field(init=False)
    writers: dict[str, Nest] = field(init=False, default_factory=dict)
    readers: dict[str, list[Nest]] = field(init=False, default_factory=dict)
    local: frozenset[str] = field(init=False)
    _buffers: dict[str, Buffer] = field(init=False)
    _reads: dict[int, tuple[Load, ...]] = field(init=False, default_factory=dict)
    _within: dict[int, frozenset[str]] = field(init=False, default_factory=dict)

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
        """The bytes of an element of a buffer."""
        return self._buffers[buffer].dtype.bytes

    def size(self, buffer: str) -> int:
        """The bytes of a buffer; 0 if its size is not known."""
        return bytes_of(self._buffers[buffer])

    def made_by(self, nest: Nest) -> str | None:
        """The intermediate that a nest writes."""
        return next((b for b, writer in self.writers.items() if writer is nest), None)

    def reads(self, nest: Nest) -> tuple[Load, ...]:
        """The nest's loads of what it does not allocate, their indices as simple as the loops allow."""
        if id(nest) not in self._reads:
            context = Context()
            for loop in (*nest.loops, *nest.inner_loops):
                context = context.with_loop(loop.var, loop.start, loop.stop)
            self._reads[id(nest)] = tuple(
                Load(e.buffer, tuple(simplify_expr(i, context) for i in e.indices), e.dtype)
                for e in dict.fromkeys(nest.outside_loads)
            )
        return self._reads[id(nest)]

    def fan(self, nest: Nest, within: frozenset[str]) -> list[str]:
        """The loops that change no read, if the intermediates `within` are looked through."""
        return [n for n in nest.names if not any(self._moves(e, n, within) for e in self.reads(nest))]

    def _moves(self, load: Load, loop: str, within: frozenset[str]) -> bool:
        """Whether a loop changes what a load reads, or what the intermediate that it reads was made of."""
        axes = [d for d, index in enumerate(load.indices) if loop in free_vars(index)]
        if not axes or load.buffer not in within:
            return bool(axes)
        producer = self.writers[load.buffer]
        loops = [along(producer, load.buffer, d) for d in axes]
        return any(v is None or self._moves(e, v, within) for v in loops for e in self.reads(producer))

    def within(self, nest: Nest) -> frozenset[str]:
        """The intermediates that may be made in the registers of a nest: it alone reads them, each of its iterations
        (but for those of its fan) others, and making them fans out.
        """
        if id(nest) not in self._within:
            self._within[id(nest)] = self._find_within(nest)
        return self._within[id(nest)]

    def _find_within(self, nest: Nest) -> frozenset[str]:
        candidates = {e.buffer for e in nest.outside_loads if self._is_candidate(e.buffer, nest)}
        while True:
            deeper = frozenset(candidates).union(*(self.within(self.writers[c]) for c in candidates))
            fan = self.fan(nest, deeper)
            outer = [n for n in nest.names if n not in fan]
            kept = {c for c in candidates if all(self._everywhere(e, outer) for e in self.reads(nest) if e.buffer == c)}
            if kept == candidates:
                return deeper
            candidates = kept

    def _is_candidate(self, buffer: str, nest: Nest) -> bool:
        producer = self.writers.get(buffer)
        if producer is None or producer is nest or self.readers[buffer] != [nest]:
            return False
        return bool(self.fan(producer, self.within(producer)))

    @staticmethod
    def _everywhere(load: Load, outer: list[str]) -> bool:
        return all(any(n in free_vars(i) for i in load.indices) for n in outer)


def along(nest: Nest, buffer: str, dimension: int) -> str | None:
    """The loop of a nest that runs along a dimension of what it writes."""
    index = next(s for s in stores(nest.core) if s.buffer == buffer).indices[dimension]
    return index.name if isinstance(index, Var) and index.name in nest.names else None
