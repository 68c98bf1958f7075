"""Estimated cost of a scheduled loop nest, from its loops: the one measure that compares plans of all kinds.

It is computed on the loop IR after the steps, so it prices the plan of any kind, of a search, or of a person.  Parts
that the steps left unchanged cost the same in all plans and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from typing import NamedTuple

from opgen.loop.nodes import Binary, Buffer, For, Kernel, Load, LoopKind, Ramp, Stmt, Store
from opgen.loop.walk import buffers_in, free_vars, holds_loop, loops_in, parts, walk_expr
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.accesses import strides_of
from opgen.schedule.auto.nests import Nest, is_contiguous
from opgen.schedule.cost.calibration import EXPOSED, UNKNOWN
from opgen.schedule.cost.execution import Execution
from opgen.schedule.cost.memory import Memory
from opgen.schedule.cost.sizes import bytes_of, element_of, float_operations
from opgen.schedule.cost.traffic import Access, Loop, Traffic

AT_ONCE = ("vector", "tile")
"""Kinds of loops whose iterations are one instruction."""


@dataclass(frozen=True)
class Price:
    """Seconds on one core: for arithmetic, for entering loops and threads, and for fetching.

    Fetched bytes are those into the first and second cache, and from memory.
    """

    compute: float = 0
    entered: float = 0
    first: float = 0
    second: float = 0
    memory: float = 0

    def __add__(self, other: Price) -> Price:
        return Price(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def seconds(self) -> float:
        fetched = zip(EXPOSED, (self.first, self.second, self.memory), strict=True)
        return self.compute + self.entered + sum(share * t for share, t in fetched)

    def __str__(self) -> str:
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        names = {"first": "L1", "second": "L2"}
        shown = ", ".join(f"{names.get(n, n)} {1e6 * t:.1f}" for n, t in parts.items() if t >= 5e-8)
        return f"{1e6 * self.seconds:.1f} us ({shown or 'next to nothing'})"


class Prices:
    """Estimated costs of schedules of one loop nest of a kernel whose other parts are left unchanged."""

    def __init__(self, before: Kernel, nest: Nest, machine: Machine) -> None:
        self._machine = machine
        loops = [*loops_in(before.body)]
        own = {s.var for top in nest.loops for s in loops_in(top)}
        self._around = {s.var for s in loops if holds_loop(s.body, nest.names[0])} - own
        self._others = {s.var for s in loops} - own - self._around

    def of(self, after: Kernel) -> Price:
        buffers = {o.name: o for o in (*after.buffers, *buffers_in(after.body))}
        bodies, seen = list[_Body](), set[tuple[tuple[int, ...], Load | Store]]()
        for path, s in self._stores(after.body, ()):
            iteration = tuple(p.number for p in path if p.kind not in ("unroll", *AT_ONCE))
            found: list[Load | Store] = [*(e for e in walk_expr(s.value) if isinstance(e, Load)), s]
            touched = [e for e in found if buffers[e.buffer].space not in ("register", "tile", "stack")]
            bodies.append(_Body(path, s, [e for e in dict.fromkeys(touched) if (iteration, e) not in seen], buffers))
            seen |= {(iteration, e) for e in touched}
        names = {e.buffer for body in bodies for e in body.touched}
        far = Memory(self._machine).is_far(sum(bytes_of(buffers[n], 1) for n in names))
        return sum((body.price(self._machine, far) for body in bodies), Price())

    def _stores(self, s: Stmt, path: tuple[_Around, ...]) -> Iterator[tuple[tuple[_Around, ...], Store]]:
        """Yield the stores of the loop nest, each with the loops around it that belong to the loop nest."""
        if isinstance(s, Store):
            yield path, s
        elif not (isinstance(s, For) and s.var in self._others and self._others.issuperset(p.var for p in loops_in(s))):
            if isinstance(s, For) and s.var not in self._around:
                path = (*path, _Around(s.var, most_iterations(s), s.kind, id(s)))
            for p in parts(s):
                yield from self._stores(p, path)


def most_iterations(loop: For) -> int:
    """Return the iterations of a loop; if its last ones may end earlier, those of all others."""
    ends = [loop.stop.left, loop.stop.right] if isinstance(loop.stop, Binary) and loop.stop.op == "min" else [loop.stop]
    known = [n for e in ends if (n := constant_extent(replace(loop, stop=e))) is not None]
    return min(known, default=0) or UNKNOWN


class _Around(NamedTuple):
    """A loop around a store; `number` distinguishes loops of the same name."""

    var: str
    extent: int
    kind: LoopKind
    number: int


@dataclass(frozen=True)
class _Body:
    """A store, with all loops around it, outermost first."""

    path: tuple[_Around, ...]
    store: Store
    touched: Sequence[Load | Store]
    """Reads and writes in memory, without registers and the stack.

    Accesses that an earlier store of the same iteration makes are left out."""
    buffers: Mapping[str, Buffer]

    def price(self, m: Machine, far: bool) -> Price:
        """Return the cost of all iterations: the slower of arithmetic and loads, and the fetches."""
        loops = [Loop(s.var, s.extent) for s in self.path]
        tile = [s.extent for s in self.path if s.kind == "tile"]
        lanes = prod(s.extent for s in self.path if s.kind in AT_ONCE) // max(tile, default=1)
        operations = max(1, len([*float_operations(self.store.value)]))
        arithmetic = prod(s.extent for s in self.path) / lanes * operations / m.fma_per_second
        loaded = sum(map(self._vectors, self.touched)) / Execution(m).loads
        first, second, third = Traffic(tuple(self._accesses())).into((m.l1, m.l2, m.l3), loops)
        memory = third / m.memory_bytes_per_second if far else 0.0
        return Price(
            max(arithmetic, loaded, self._chain(operations) * m.latency / m.fma_per_second),
            0,
            first / m.l2.bytes_per_second,
            second / m.l3.bytes_per_second,
            memory,
        )

    def _chain(self, operations: int) -> int:
        """Return the number of operations in the dependence chain of a recurrence.

        If it goes through memory, each step takes as long as one more operation.
        """
        around = [i for i, s in enumerate(self.path, 1) if s.kind == "ordered"]
        again = [e for e in walk_expr(self.store.value) if isinstance(e, Load) and e.buffer == self.store.buffer]
        steps = prod(s.extent for s in self.path[: around[-1]]) if around and again else 0
        return steps * (operations + (self.store in self.touched))

    def _vectors(self, e: Load | Store) -> float:
        """Return the number of vectors, or single elements, that an access moves in all.

        Unrolled loops that it does not follow share it, and lanes with a stride take one each.
        """
        count, own = 1.0, frozenset[str]().union(*map(free_vars, e.indices))
        shapes = {e.buffer: self.buffers[e.buffer].shape}
        for s in self.path:
            followed = s.var in own
            if s.kind in AT_ONCE:
                count *= 1 if not followed or is_contiguous(e, s.var, shapes) else s.extent
            elif followed or s.kind != "unroll":
                count *= s.extent
        return count

    def _accesses(self) -> Iterator[Access]:
        """Yield the accesses, a vector by its first element."""
        names = [s.var for s in self.path]
        for e in self.touched:
            lanes = max((i.type.lanes for i in e.indices), default=1)
            first = replace(e, indices=tuple(i.base if isinstance(i, Ramp) else i for i in e.indices))
            strides = strides_of(first, names, {e.buffer: self.buffers[e.buffer].shape})
            yield Access(e.buffer, lanes * element_of(e), strides or {})
