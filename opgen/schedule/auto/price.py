"""What a schedule of a nest costs, told from its loops: the one measure by which plans of all kinds are compared.

It looks at loop IR after the steps, and so prices whatever made them: a plan of any kind, a search, or a person.  What
the steps left as it was costs the same in all plans and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import prod
from typing import NamedTuple, TypeGuard

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
    LoopKind,
    Ramp,
    Space,
    Stmt,
    Store,
    Word,
)
from opgen.loop.walk import buffers_in, free_vars, holds_loop, loops_in, walk_expr
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.accesses import strides_of
from opgen.schedule.auto.nests import Nest, Shapes, is_contiguous
from opgen.schedule.cost.calibration import BACK, ENTERED, EXPOSED, LOADED, NEST, STACK_REGISTERS, UNKNOWN
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
        every = {e.buffer: element_of(e) for body in bodies for e in body.touched}
        sizes = {name: elements_of(shapes[name], 1) * size for name, size in every.items()}
        warm = not Memory(self._machine).is_far(sum(sizes.values()))
        entered = ENTERED * self._entered(after.body, 1) / self._machine.fma_per_second
        forks = sum(self._forks(after.body, 1))
        together: dict[tuple[int, ...], list[_Body]] = {}
        for body in bodies:
            together.setdefault(body.iteration, []).append(body)
        priced = (_priced(group, warm, self._machine) for group in together.values())
        return sum(priced, Price(entered=entered + NEST * forks))

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

    def _stores(self, s: Stmt, path: tuple[_Around, ...]) -> Iterator[tuple[tuple[_Around, ...], Store]]:
        """The stores that are new, each with the loops around it."""
        if isinstance(s, Store):
            yield path, s
            return
        inside = (*path, _Around(s.var, _extent(s), s.kind, id(s))) if self._counts(s) else path
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


class _Around(NamedTuple):
    """A loop around a store, and which one of those of its name."""

    var: str
    extent: int
    kind: LoopKind
    number: int


@dataclass(frozen=True)
class _Body:
    """A store, with all loops around it, outermost first."""

    path: tuple[_Around, ...]
    store: Store
    shapes: Shapes
    spaces: Mapping[str, Space]

    @property
    def iteration(self) -> tuple[int, ...]:
        """The loops in one iteration of which it is done, side by side with others of the same."""
        return tuple(s.number for s in self.path if s.kind not in ("unroll", *AT_ONCE))

    @property
    def lanes(self) -> int:
        """How many elements take the time of one operation: a matrix unit takes one for each row of a tile."""
        tile = [s.extent for s in self.path if s.kind == "tile"]
        return prod(s.extent for s in self.path if s.kind in AT_ONCE) // max(tile, default=1)

    @cached_property
    def _read(self) -> tuple[Load, ...]:
        every = [*walk_expr(self.store.value)]
        beside = {p for e in every if isinstance(e, Word) for p in e.parts[1:]}  # a word is one load
        return tuple(e for e in every if isinstance(e, Load) and e not in beside)

    @cached_property
    def touched(self) -> list[Load | Store]:
        """What is read and written in memory: not what stays in registers, once each."""
        found: list[Load | Store] = [*self._read, self.store]
        return [e for e in dict.fromkeys(found) if self.spaces[e.buffer] not in ("register", "tile")]

    def vectors(self, e: Load | Store) -> float:
        """How many vectors, or single elements, an access moves in all: unrolled loops that it does not follow share
        it, and lanes that lie apart take one each.
        """
        count, own = 1.0, frozenset[str]().union(*map(free_vars, e.indices))
        for s in self.path:
            followed = s.var in own
            if s.kind in AT_ONCE:
                count *= 1 if not followed or is_contiguous(e, s.var, self.shapes) else s.extent
            elif followed or s.kind != "unroll":
                count *= s.extent
        return count

    @property
    def operations(self) -> float:
        """Vector operations in all."""
        return prod(s.extent for s in self.path) / self.lanes * max(1, len([*float_operations(self.store.value)]))

    @cached_property
    def chains(self) -> int | None:
        """How many sums of vectors are under way at once; None if an iteration does not wait for the one before."""
        summed = any(e.buffer == self.store.buffer for e in self._read)
        loop = next((s for s in reversed(self.path) if s.kind not in ("unroll", *AT_ONCE)), None)
        if not summed or loop is None or self._stored(loop.var):
            return None
        return prod(s.extent for s in self.path if s.kind == "unroll" and self._stored(s.var))

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


def _priced(bodies: Sequence[_Body], warm: bool, m: Machine) -> Price:
    """What stores that are done side by side cost in all iterations, with all that they read: each access once, and
    sums of different places at once.
    """
    chains = {b.store.indices: b.chains for b in bodies}
    waiting = max(1.0, m.latency / max(1, sum(n or 0 for n in chains.values())))
    operations = sum(b.operations * (1 if b.chains is None else waiting) for b in bodies)
    moved = {e: b.vectors(e) for e, b in {e: b for b in bodies for e in b.touched}.items()}
    arithmetic, loaded = operations / m.fma_per_second, sum(moved.values()) / Execution(m).loads
    compute = max(arithmetic, loaded) + LOADED * min(arithmetic, loaded)
    alike: dict[tuple[tuple[str, int], ...], list[_Body]] = {}
    for b in bodies:
        alike.setdefault(tuple((s.var, s.extent) for s in b.path), []).append(b)
    first, second, third = (sum(n) for n in zip(*(_fetched(of, m) for of in alike.values()), strict=True))
    memory = 0.0 if warm else third / m.memory_bytes_per_second
    return Price(compute, 0, first / m.l2.bytes_per_second, second / m.l3.bytes_per_second, memory)


def _fetched(bodies: Sequence[_Body], m: Machine) -> Sequence[float]:
    """Bytes that stores in the same loops fetch into each cache; what they access at places side by side is one
    access of all of these.
    """
    body = bodies[0]
    loops = [Loop(s.var, s.extent) for s in body.path]
    names = [s.var for s in body.path]
    found: dict[tuple[str, int, tuple[tuple[str, int], ...], int], int] = {}
    for e in {e: None for b in bodies for e in b.touched}:
        lanes = max((i.type.lanes for i in e.indices), default=1)
        strides = tuple((strides_of(_first_lane(e), names, body.shapes) or {}).items())
        back = BACK if isinstance(e, Store) and body.spaces[e.buffer] != "streamed" else 1
        key = (e.buffer, lanes * element_of(e), strides, back)
        found[key] = found.get(key, 0) + 1
    accesses = tuple(Access(name, count * size, dict(strides)) for (name, size, strides, _), count in found.items())
    each = Traffic(accesses).each_into((m.l1, m.l2, m.l3), loops)
    return [sum(n * back for n, (*_, back) in zip(of, found, strict=True)) for of in each]
