"""What a schedule of a nest costs, told from its loops: the one measure by which plans of all kinds are compared.

It looks at loop IR after the steps, and so prices whatever made them: a plan of any kind, a search, or a person.  What
the steps left as it was costs the same in all plans and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from typing import TypeGuard

from opgen.loop.nodes import (
    Alloc,
    Block,
    Broadcast,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Ramp,
    Space,
    Stmt,
    Store,
)
from opgen.loop.walk import buffers_in, free_vars, holds_loop, loops_in, walk_expr
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.accesses import strides_of
from opgen.schedule.auto.nests import Nest, Shapes, is_contiguous
from opgen.schedule.cost.calibration import BACK, ENTERED, EXPOSED, NEST, STACK_REGISTERS, UNKNOWN
from opgen.schedule.cost.execution import Execution
from opgen.schedule.cost.memory import Memory
from opgen.schedule.cost.sizes import bytes_of, element_of, elements_of, float_operations
from opgen.schedule.cost.traffic import Access, Loop, Traffic

AT_ONCE = ("vector", "tile")
"""The kinds of loops whose iterations are one instruction."""


@dataclass(frozen=True)
class Price:
    """Seconds on one core: what is computed, loops and threads that are entered, what is fetched into the first and
    second cache, and from memory.
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
    """Of schedules of one nest of a kernel, of which all else is left as it is."""

    def __init__(self, before: Kernel, nest: Nest, machine: Machine) -> None:
        self._machine = machine
        loops = [*loops_in(before.body)]
        own = {s.var for top in nest.loops for s in loops_in(top)}
        around = {s.var for s in loops if holds_loop(s.body, nest.names[0])} - own
        self._others = {s.var for s in loops} - own - around
        self._around = around

    def of(self, after: Kernel) -> Price:
        shapes = {o.name: o.shape for o in (*after.buffers, *buffers_in(after.body))}
        spaces = {o.name: self._space(o) for o in (*after.buffers, *buffers_in(after.body))}
        bodies = [_Body(path, s, shapes, spaces) for path, s in self._stores(after.body, ())]
        sizes = {n: size for body in bodies for n, size in body.sizes.items()}
        warm = not Memory(self._machine).is_far(sum(sizes.values()))
        entered = ENTERED * self._entered(after.body, 1) / self._machine.fma_per_second
        forks = sum(self._forks(after.body, 1))
        return sum((_priced(b, warm, self._machine) for b in bodies), Price(entered=entered + NEST * forks))

    def _space(self, buffer: Buffer) -> Space:
        """Where a buffer is: few vectors on the stack are kept in registers."""
        size = bytes_of(buffer, UNKNOWN)
        room = int(STACK_REGISTERS * self._machine.registers) * self._machine.vector_bytes
        return "register" if buffer.space == "stack" and size <= room else buffer.space

    def _parts(self, s: Stmt) -> Iterator[Stmt]:
        match s:
            case For() if s.var in self._others:
                return
            case Block():
                yield from s.statements
            case If():
                yield from (p for p in (s.then, s.otherwise) if p is not None)
            case For() | Let() | Alloc():
                yield s.body

    def _counts(self, s: Stmt) -> TypeGuard[For]:
        """Whether it is a loop of the nest: those around it are the same for all plans."""
        return isinstance(s, For) and s.var not in self._around

    def _stores(self, s: Stmt, path: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], Store]]:
        """The stores that are new, each with the loops around it."""
        if isinstance(s, Store):
            yield path, s
        inside = (*path, s) if self._counts(s) else path
        for p in self._parts(s):
            yield from self._stores(p, inside)

    def _entered(self, s: Stmt, times: float) -> float:
        """How often iterations of loops begin that are neither unrolled nor lanes."""
        found = 0.0
        if isinstance(s, For) and self._counts(s):
            times *= _extent(s)
            found = times if s.kind not in ("unroll", *AT_ONCE) else 0.0
        return found + sum(self._entered(p, times) for p in self._parts(s))

    def _forks(self, s: Stmt, times: float) -> Iterator[float]:
        """How often threads begin together, but for once each."""
        if isinstance(s, For) and self._counts(s):
            if s.kind == "parallel":
                yield times - 1
                return
            times *= _extent(s)
        for p in self._parts(s):
            yield from self._forks(p, times)


def _extent(s: For) -> int:
    return constant_extent(s) or UNKNOWN


@dataclass(frozen=True)
class _Body:
    """A store, with all loops around it, outermost first."""

    path: tuple[For, ...]
    store: Store
    shapes: Shapes
    spaces: Mapping[str, Space]

    @property
    def lanes(self) -> int:
        """How many elements take the time of one operation: a matrix unit takes one for each row of a tile."""
        tile = [_extent(s) for s in self.path if s.kind == "tile"]
        return prod(_extent(s) for s in self.path if s.kind in AT_ONCE) // max(tile, default=1)

    @property
    def touched(self) -> list[Load | Store]:
        """What is read and written in memory: not what stays in registers, once each."""
        found: list[Load | Store] = [e for e in walk_expr(self.store.value) if isinstance(e, Load)]
        return [e for e in dict.fromkeys([*found, self.store]) if self.spaces[e.buffer] not in ("register", "tile")]

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes of each buffer, as far as they are known."""
        return {e.buffer: elements_of(self.shapes[e.buffer], 1) * element_of(e) for e in self.touched}

    def vectors(self, e: Load | Store) -> float:
        """How many vectors, or single elements, an access moves in all: unrolled loops that it does not follow share
        it, and lanes that lie apart take one each.
        """
        count = 1.0
        for s in self.path:
            followed = any(s.var in free_vars(i) for i in e.indices)
            if s.kind in AT_ONCE:
                count *= 1 if not followed or is_contiguous(e, s.var, self.shapes) else _extent(s)
            elif followed or s.kind != "unroll":
                count *= _extent(s)
        return count

    @property
    def operations(self) -> float:
        """Vector operations in all; of a chain that an operation's latency holds up, as many as would fit meanwhile."""
        return prod(_extent(s) for s in self.path) / self.lanes * max(1, len([*float_operations(self.store.value)]))

    @property
    def chains(self) -> int | None:
        """How many sums of vectors are under way at once; None if an iteration does not wait for the one before."""
        summed = any(isinstance(e, Load) and e.buffer == self.store.buffer for e in walk_expr(self.store.value))
        loop = next((s for s in reversed(self.path) if s.kind not in ("unroll", *AT_ONCE)), None)
        if not summed or loop is None or self._stored(loop.var):
            return None
        return prod(_extent(s) for s in self.path if s.kind == "unroll" and self._stored(s.var))

    def _stored(self, var: str) -> bool:
        return any(var in free_vars(i) for i in self.store.indices)


def _first_lane(e: Load | Store) -> Load | Store:
    """An access of vectors as that of their first elements."""
    return replace(e, indices=tuple(_scalar(i) for i in e.indices))


def _scalar(e: Expr) -> Expr:
    match e:
        case Ramp():
            return e.base
        case Broadcast():
            return e.operand
        case _:
            return e if e.type.lanes == 1 else Const(0)


def _priced(body: _Body, warm: bool, m: Machine) -> Price:
    """What one store, with all that it reads, costs in all iterations."""
    chains = body.chains
    waiting = 1.0 if chains is None else max(1.0, m.latency / chains)
    moved = sum(body.vectors(e) for e in body.touched) / Execution(m).loads
    compute = max(body.operations * waiting / m.fma_per_second, moved)
    first, second, third = _fetched(body, m)
    memory = 0.0 if warm else third / m.memory_bytes_per_second
    return Price(compute, 0, first / m.l2.bytes_per_second, second / m.l3.bytes_per_second, memory)


def _fetched(body: _Body, m: Machine) -> Sequence[float]:
    """Bytes that are fetched into each cache."""
    loops = [Loop(s.var, _extent(s)) for s in body.path]
    names = [s.var for s in body.path]
    found: list[Access] = []
    back: list[int] = []
    for e in body.touched:
        lanes = max((i.type.lanes for i in e.indices), default=1)
        strides = strides_of(_first_lane(e), names, body.shapes)
        found.append(Access(e.buffer, lanes * element_of(e), strides or {}))
        back.append(BACK if isinstance(e, Store) and body.spaces[e.buffer] != "streamed" else 1)
    each = Traffic(tuple(found)).each_into((m.l1, m.l2, m.l3), loops)
    return [sum(n * times for n, times in zip(of, back, strict=True)) for of in each]
