"""share: a reduction divided into parts, each with a result of its own in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from opgen.loop import build as b
from opgen.loop.nodes import (
    Alloc,
    Barrier,
    Binary,
    BinaryOp,
    Block,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Space,
    Stmt,
    Store,
)
from opgen.loop.walk import (
    buffers_in,
    declared_in,
    free_vars,
    holds_loop,
    loads,
    loops_in,
    map_stmt,
    parts,
    reads_memory,
    stores,
    substitute,
    with_parts,
)
from opgen.passes.fold import fold_all
from opgen.schedule.declaration import Option, Step, Target, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import extent, require_fresh, require_loops, with_body
from opgen.schedule.reduction import identity, operation
from opgen.schedule.renaming import renamed
from opgen.schedule.values import LoopName, Made, OneOf

MOST = 1 << 16
"""Largest number of parts of a reduction: each has an element of memory for every result."""


@primitive("sums", "share j 32 at=i space=heap -> part", reorders_sums=True)
class Share(Step):
    """Lets 32 take every 32nd step each, for every result of the loops from `i` inwards (without `at`: for the only
    one), into memory of their own, reduced at the end: for GPUs' threads. `space=shared`: for those of a block, which
    wait for each other.
    """

    loop: LoopName
    count: int
    part: Annotated[str, Made("{loop}_part")]
    at: Annotated[LoopName | None, Option()] = None
    space: Annotated[Space, OneOf(("heap", "shared")), Option("heap")] = "heap"

    @property
    def target(self) -> Target | None:
        return "cuda" if self.space == "shared" else None

    def run(self, kernel: Kernel) -> Kernel:
        return share(kernel, self.loop, self.count, self.part, self.at, self.space)


def share(kernel: Kernel, loop: str, count: int, name: str, at: str | None = None, space: Space = "heap") -> Kernel:
    """Reduce in `count` parts, each over every count-th step, into results of their own in memory; then reduce these.

                                      alloc part[4] heap
        alloc acc                     for part_i in 0..4:
        acc = 0                         alloc part_acc
        for j in 0..n:         ->       part_acc = 0
          acc = acc + x[j]              for j_o in 0..ceildiv(n, 4):
        y = acc                           if j_o*4 + part_i < n: part_acc = part_acc + x[j_o*4 + part_i]
                                        part[part_i] = part_acc
                                      alloc acc
                                      acc = 0
                                      for part_j in 0..4: acc = acc + part[part_j]
                                      y = acc

    The iterations of `part_i` are independent, for GPUs' threads; the last loop is a reduction as before.  `at` names a
    loop over results that holds only further such loops and the reduction.  Each result then has `count` parts of its
    own: `part[n, 4]`, made in loops with the suffix `part` before all results.  In space `shared` the parts belong to
    the threads of a GPU block, which wait for each other before the parts are reduced.  The order of the reduction
    changes, always in the same way: the result does not depend on threads.
    """
    require_loops(kernel, "share", [loop] if at is None else [loop, at])
    if not 2 <= count <= MOST:
        raise ScheduleError(f"share {loop}: {count} are not from 2 to {MOST}")
    found = [s for s in loops_in(kernel.body) if s.var == loop]
    if len(found) != 1:
        raise ScheduleError(f"share {loop}: there are {len(found)} loops of that name")
    if space == "shared":
        _require_block(kernel, loop, at)
    step = _Share.of(found[0], count, name, space)
    before = with_body(kernel, step.run(kernel.body, at))
    new = declared_in(before.body) - declared_in(kernel.body)
    require_fresh(kernel, "share", sorted({*step.names, *new}))
    return before


def _require_block(kernel: Kernel, loop: str, at: str | None) -> None:
    """Refuse shared memory unless a block makes one result: threads of a next one might overwrite its parts."""
    if at is not None:
        raise ScheduleError(f"share {loop}: a block's threads share a result at a time", "leave out the loop")
    around = [s for s in loops_in(kernel.body) if s.var != loop and holds_loop(s.body, loop)]
    other = next((s for s in around if not s.kind.startswith("block")), None)
    if other is not None or not around:
        what = "no loop" if other is None else f"the loop '{other.var}', which is {other.kind},"
        raise ScheduleError(f"share {loop}: {what} is around it", "bind what is around it to blocks before")


@dataclass(frozen=True)
class _Share:
    loop: For
    store: Store
    op: BinaryOp
    count: int
    name: str
    space: Space

    @staticmethod
    def of(loop: For, count: int, name: str, space: Space) -> _Share:
        body: Stmt = loop
        while isinstance(body, For | Let) or (isinstance(body, If) and body.otherwise is None):
            if isinstance(body, For) and body.kind != "serial":
                raise ScheduleError(f"share {loop.var}: the loop '{body.var}' is already {body.kind}")
            (body,) = parts(body)
        op = operation(body) if isinstance(body, Store) else None
        if not isinstance(body, Store) or op is None or body.mask is not None or body.indices:
            raise ScheduleError(f"share {loop.var}: its body is not one step of a sum, product, minimum or maximum")
        return _Share(loop, body, op, count, name, space)

    @property
    def names(self) -> list[str]:
        return [self.name, f"{self.name}_i", f"{self.name}_j", f"{self.name}_acc", f"{self.loop.var}_o"]

    def run(self, body: Stmt, at: str | None) -> Stmt:
        done: list[Stmt] = []

        def visit(s: Stmt) -> Stmt:
            first = s.var == at if isinstance(s, For) else at is None and self._holds_acc(s)
            if first and holds_loop(s, self.loop.var):
                done.append(s)
                return self._shared(s)
            return with_parts(s, tuple(visit(p) for p in parts(s)))

        after = visit(body)
        if not done:
            outside = f"'{self.store.buffer}' is not local to a nest" if at is None else f"it is not inside '{at}'"
            raise ScheduleError(f"share {self.loop.var}: {outside}")
        return after

    def _holds_acc(self, s: Stmt) -> bool:
        return isinstance(s, Alloc) and any(o.name == self.store.buffer for o in s.buffers)

    def _shared(self, s: Stmt) -> Stmt:
        """Return a loop nest after the one that makes the parts."""
        around: list[For] = []
        inner = s
        while isinstance(inner, For) and not self._holds_acc(inner):
            if inner.kind != "serial":
                raise ScheduleError(f"share {self.loop.var}: the loop '{inner.var}' is already {inner.kind}")
            around.append(inner)
            inner = inner.body
        if not isinstance(inner, Alloc) or not self._holds_acc(inner):
            raise ScheduleError(f"share {self.loop.var}: '{around[-1].var}' holds something else than one reduction")
        if any(free_vars(e) & {p.var for p in around} for p in around for e in (p.start, p.stop)):
            raise ScheduleError(f"share {self.loop.var}: the bounds of '{around[-1].var}' depend on other loops")
        if any(reads_memory(e) for p in around for e in (p.start, p.stop)):
            raise ScheduleError(f"share {self.loop.var}: how many results there are depends on what is in memory")
        places = [fold_all(b.sub(b.var(p.var), p.start)) for p in around]
        sizes = [fold_all(b.maximum(extent(p), 0)) for p in around]
        dtype = self.store.value.type.dtype
        whole = Buffer(self.name, dtype, (*sizes, Const(self.count)), self.space)
        before, steps, after = self._reduction(inner)
        first: Stmt = self._parts(steps, places)
        for p in reversed(around):
            first = For(p.var, p.start, p.stop, first)
        first = renamed(first, {p.var: f"{p.var}_{self.name}" for p in around}, {}) if around else first
        last: Stmt = b.alloc(inner.buffers, b.block((*before, self._whole(places), *after)))
        for p in reversed(around):
            last = For(p.var, p.start, p.stop, last)
        waits = (Barrier(),) if self.space == "shared" else ()
        return b.alloc(whole, b.block((first, *waits, last)))

    def _reduction(self, s: Alloc) -> tuple[tuple[Stmt, ...], Stmt, tuple[Stmt, ...]]:
        """Return the statements before the reduction in its accumulator's scope, the reduction, and those after it."""
        statements = s.body.statements if isinstance(s.body, Block) else (s.body,)
        at = next(k for k, p in enumerate(statements) if holds_loop(p, self.loop.var))
        before, steps, after = statements[:at], statements[at], statements[at + 1 :]
        acc, own = self.store.buffer, {o.name for o in s.buffers}
        touched = sum(p.buffer == acc for p in stores(steps)) + sum(e.buffer == acc for e in loads(steps))
        if touched != 2 or len(stores(steps)) != 1 or any(buffers_in(steps)):
            raise ScheduleError(f"share {self.loop.var}: '{acc}' is used elsewhere in the reduction")
        if own - {acc} & {e.buffer for e in loads(steps)} or any(p.buffer != acc for q in before for p in stores(q)):
            raise ScheduleError(f"share {self.loop.var}: something else is made before the reduction")
        return before, steps, after

    def _parts(self, steps: Stmt, places: list[Expr]) -> Stmt:
        """Return the code for all parts of one result."""
        acc, counter, like = f"{self.name}_acc", f"{self.name}_i", self.store.value
        own = Load(acc, (), like.type.dtype)
        body = b.alloc(
            Buffer(acc, like.type.dtype, (), "register"),
            b.block(
                (
                    Store(acc, (), identity(self.op, like)),
                    map_stmt(steps, stmt=lambda p: self._every(p, own) if p == self.loop else p),
                    Store(self.name, (*places, b.var(counter)), own),
                )
            ),
        )
        return For(counter, Const(0), Const(self.count), body)

    def _every(self, s: Stmt, own: Load) -> Stmt:
        """Return every count-th step of the loop, into the accumulator of a part."""
        outer, n = b.var(f"{self.loop.var}_o"), extent(self.loop)
        at = b.add(b.mul(outer, self.count), b.var(f"{self.name}_i"))
        old = Load(self.store.buffer, self.store.indices, own.dtype)
        body = map_stmt(
            self.loop.body,
            expr=lambda e: own if e == old else e,
            stmt=lambda p: Store(own.buffer, (), p.value) if isinstance(p, Store) else p,
        )
        body = substitute(body, {self.loop.var: fold_all(b.add(self.loop.start, at))})
        if not (isinstance(n, Const) and int(n.value) % self.count == 0):
            body = b.when(b.compare("lt", at, n), body)
        return For(outer.name, Const(0), fold_all(b.ceildiv(n, self.count)), body)

    def _whole(self, places: list[Expr]) -> Stmt:
        """Return the code that reduces the parts of a result."""
        counter, dtype = b.var(f"{self.name}_j"), self.store.value.type.dtype
        part, old = Load(self.name, (*places, counter), dtype), Load(self.store.buffer, (), dtype)
        step = Store(self.store.buffer, (), Binary(self.op, old, part))
        return For(counter.name, Const(0), Const(self.count), step)
