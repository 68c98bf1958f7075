"""The shape of a launch: the loops that are blocks and threads, their numbers, and CUDA's rules for them.

A nest is one statement with block or thread loops in it.  It becomes one device function, so that

* every store to memory that blocks share must be inside a loop of each block dimension of the nest;
* nothing may follow a block loop, since blocks never wait for each other: on the way to a block loop there are no
  serial loops and no sequences with two statements that hold block loops;
* a store to memory that threads share, outside the loops of some thread dimension, is done by thread 0 of that
  dimension; statements of different threads are ordered by barriers alone;
* a barrier must be met by all threads of a block or by none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from opgen.codegen.cuda.program import Extents
from opgen.diagnostics import InternalError
from opgen.loop import build as b
from opgen.loop import walk as w
from opgen.loop.nodes import (
    Alloc,
    Barrier,
    Binary,
    Block,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Select,
    Stmt,
    Store,
)

AXES = ("x", "y", "z")
_ONE = Const(1)


def is_bound(s: Stmt) -> bool:
    """Return True if a statement is a block or thread loop."""
    return isinstance(s, For) and s.kind.partition(".")[0] in ("block", "thread")


def holds_bound(s: Stmt, group: str = "") -> bool:
    """Return True if block or thread loops (or only those of a group, "block" or "thread") are in a statement."""
    return any(isinstance(p, For) and is_bound(p) and p.kind.startswith(group) for p in w.walk(s))


def extent(loop: For) -> Expr:
    """Return the number of iterations of a loop (none if this is negative)."""
    return b.sub(loop.stop, loop.start)


@dataclass(frozen=True, slots=True)
class Nest:
    """A statement for one device function, and the extents of its launch by loop kind ("block.x", ...)."""

    body: Stmt
    extents: dict[str, Expr]
    once: frozenset[str]
    """Thread dimensions with stores outside their loops, which thread 0 executes."""

    @property
    def grid(self) -> Extents:
        return self._group("block")

    @property
    def block(self) -> Extents:
        return self._group("thread")

    def _group(self, name: str) -> Extents:
        x, y, z = (self.extents.get(f"{name}.{axis}", _ONE) for axis in AXES)
        return x, y, z

    def needs_guard(self, loop: For) -> bool:
        """Return True if the launch may have more blocks or threads in a dimension than a loop has iterations."""
        return extent(loop) != self.extents[loop.kind]

    @property
    def wide_threads(self) -> tuple[str, ...]:
        """Return the thread dimensions that may have more than one thread, in order."""
        kinds = (f"thread.{axis}" for axis in AXES)
        return tuple(k for k in kinds if k in self.extents and not b.is_const(self.extents[k], 1))


def analyse(body: Stmt, known: frozenset[str], buffers: dict[str, Buffer], inputs: frozenset[str]) -> Nest:
    """Return the launch of a nest; the host knows the values of `known` variables, `inputs` are never written."""
    found: dict[str, list[Expr]] = {}
    _collect(body, known, {}, found)
    once = frozenset(_once(body, frozenset(found), frozenset(), dict(buffers)))
    extents = {kind: _largest(kind, sizes, once) for kind, sizes in found.items()}
    nest = Nest(body, extents, once)
    _check_block_order(body)
    _Uniformity(nest, inputs, dict(buffers)).check(body, _Place())
    return nest


def _collect(s: Stmt, known: frozenset[str], values: dict[str, Expr], found: dict[str, list[Expr]]) -> None:
    """The bounds of the extents of each kind of bound loop, in program order and without repetition."""
    if isinstance(s, Let):
        values = {**values, s.var.name: w.substitute_expr(s.value, values)}
    if isinstance(s, For) and is_bound(s):
        size = _bounded(w.substitute_expr(extent(s), values), known)
        if size is None:
            raise InternalError(f"the extent of {s.kind} loop {s.var} cannot be known before the launch")
        sizes = found.setdefault(s.kind, [])
        if size not in sizes:
            sizes.append(size)
    for p in w.parts(s):
        _collect(p, known, values, found)


def _bounded(e: Expr, known: frozenset[str]) -> Expr | None:
    """Return an upper bound of an expression over known variables, exact where the expression is over them itself."""
    if w.free_vars(e) <= known and not any(isinstance(n, Load) for n in w.walk_expr(e)):
        return e
    if isinstance(e, Binary) and e.op == "min":
        left, right = _bounded(e.left, known), _bounded(e.right, known)
        return left if right is None else right if left is None else b.minimum(left, right)
    if isinstance(e, Binary | Select) and (isinstance(e, Select) or e.op == "max"):
        one, other = w.operands(e)[-2:]
        first, second = _bounded(one, known), _bounded(other, known)
        return None if first is None or second is None else b.maximum(first, second)
    return None


def _largest(kind: str, sizes: list[Expr], once: frozenset[str]) -> Expr:
    size = sizes[0]
    for other in sizes[1:]:
        size = b.maximum(size, other)
    return b.maximum(1, size) if kind in once else size


def _once(s: Stmt, kinds: frozenset[str], inside: frozenset[str], buffers: dict[str, Buffer]) -> set[str]:
    """Return the thread dimensions that some store to shared memory is outside of; a block dimension is an error."""
    if isinstance(s, Alloc):
        buffers = buffers | {o.name: o for o in s.buffers}
    if isinstance(s, For) and is_bound(s):
        if s.kind in inside:
            raise InternalError(f"{s.kind} loop {s.var} is inside another {s.kind} loop")
        inside = inside | {s.kind}
    if isinstance(s, Store) and is_shared(buffers[s.buffer]):
        missing = kinds - inside
        blocks = sorted(k for k in missing if k.startswith("block"))
        if blocks and buffers[s.buffer].space != "shared":
            raise InternalError(f"a store to {s.buffer} is outside the {blocks[0]} loops of its nest")
        return {k for k in missing if k.startswith("thread")}
    found: set[str] = set()
    for p in w.parts(s):
        found |= _once(p, kinds, inside, buffers)
    return found


def is_shared(buffer: Buffer) -> bool:
    """Return True if all threads of a block see the same copy."""
    return buffer.space not in ("register", "stack", "tile")


def _check_block_order(s: Stmt) -> None:
    if not holds_bound(s, "block"):
        return
    if isinstance(s, For) and not is_bound(s):
        raise InternalError(f"serial loop {s.var} is around block loops within one nest")
    if isinstance(s, Block) and sum(holds_bound(p, "block") for p in s.statements) > 1:
        raise InternalError("two statements of a sequence within one nest hold block loops")
    for p in w.parts(s):
        _check_block_order(p)


@dataclass(frozen=True, slots=True)
class _Place:
    """Surroundings of a statement: variables that differ between threads, diverging threads, thread loops around."""

    varying: frozenset[str] = frozenset()
    divergent: bool = False
    threads: frozenset[str] = frozenset()

    def within(self, *, names: frozenset[str] = frozenset(), divergent: bool = False, kind: str = "") -> _Place:
        threads = self.threads | {kind} if kind else self.threads
        return _Place(self.varying | names, self.divergent or divergent, threads)


@dataclass
class _Uniformity:
    """Checks that barriers are met by all threads, and that a thread writes no array of the threads around it."""

    nest: Nest
    inputs: frozenset[str]
    buffers: dict[str, Buffer]
    owners: dict[str, frozenset[str]] = field(default_factory=dict)

    def check(self, s: Stmt, place: _Place) -> None:
        match s:
            case Barrier():
                if place.divergent:
                    raise InternalError("a barrier is where only some threads of a block may come")
            case Store():
                self._check_store(s, place)
            case For():
                self.check(s.body, self._loop(s, place))
            case If():
                inner = place.within(divergent=self._varies(s.condition, place))
                for p in w.parts(s):
                    self.check(p, inner)
            case Let():
                names = frozenset({s.var.name}) if self._varies(s.value, place) else frozenset[str]()
                self.check(s.body, place.within(names=names))
            case Alloc():
                for buffer in s.buffers:
                    self._check_alloc(buffer)
                    self.buffers[buffer.name] = buffer
                    self.owners[buffer.name] = place.threads
                self.check(s.body, place)
            case Block():
                for p in s.statements:
                    self.check(p, place)

    def _loop(self, s: For, place: _Place) -> _Place:
        varies = self._varies(s.start, place) or self._varies(s.stop, place)
        name = frozenset({s.var})
        if not is_bound(s):
            return place.within(names=name if varies else frozenset(), divergent=varies)
        if s.kind.startswith("block"):
            return place.within(divergent=varies)
        return place.within(names=name, divergent=varies or self.nest.needs_guard(s), kind=s.kind)

    def _check_store(self, s: Store, place: _Place) -> None:
        if s.buffer in self.inputs:
            raise InternalError(f"a store to input {s.buffer}")
        buffer = self.buffers[s.buffer]
        if not is_shared(buffer) and self.owners.get(s.buffer, frozenset()) != place.threads:
            raise InternalError(f"a thread loop stores to {s.buffer}, a {buffer.space} array from outside of it")

    @staticmethod
    def _check_alloc(buffer: Buffer) -> None:
        if buffer.space in ("heap", "global"):
            raise InternalError(f"{buffer.space} buffer {buffer.name} is allocated inside a launch")
        if not all(isinstance(size, Const) for size in buffer.shape):
            raise InternalError(f"the size of {buffer.space} buffer {buffer.name} is not constant")

    def _varies(self, e: Expr, place: _Place) -> bool:
        for n in w.walk_expr(e):
            if isinstance(n, Load) and n.buffer not in self.inputs:
                return True
        return not w.free_vars(e).isdisjoint(place.varying)
