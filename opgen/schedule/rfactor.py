"""rfactor: a reduction in several adjacent partial results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from opgen.loop import build as b
from opgen.loop.nodes import (
    Alloc,
    Binary,
    BinaryOp,
    Block,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Stmt,
    Store,
)
from opgen.loop.walk import free_vars, holds_loop, loads, loops_in, map_stmt, stores, substitute
from opgen.passes.fold import fold_all
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import extent, require_fresh, require_loops, with_body
from opgen.schedule.reduction import identity, operation
from opgen.schedule.values import LoopName, Made

MOST = 4096
"""Largest number of partial results, which are on the stack."""


@primitive("sums", "rfactor j 64 -> acc_partial", reorders_sums=True)
class Rfactor(Step):
    """Makes 64 partial results side by side, and a tree of them."""

    loop: LoopName
    factor: int
    partial: Annotated[str, Made("{loop}_partial")]

    def run(self, kernel: Kernel) -> Kernel:
        return rfactor(kernel, self.loop, self.factor, self.partial)


def rfactor(kernel: Kernel, loop: str, factor: int, partial: str) -> Kernel:
    """Reduce into `factor` partial results, every factor-th step into the same one, and these by a tree at the end.

                                      alloc partial[4]
                                      for partial_i in 0..4: partial[partial_i] = 0
        acc = 0                       for j_o in 0..ceildiv(n, 4):
        for j in 0..n:         ->       for j_l in 0..4:
          acc = acc + x[j]                if j_o*4 + j_l < n: partial[j_l] = partial[j_l] + x[j_o*4 + j_l]
                                      for partial_2 in 0..2:
                                        partial[partial_2] = partial[partial_2] + partial[partial_2 + 2]
                                      for partial_1 in 0..1:
                                        partial[partial_1] = partial[partial_1] + partial[partial_1 + 1]
                                      acc = acc + partial[0]

    The iterations of `j_l` are independent, so they can become lanes.  `factor` is a power of two.  The order of the
    reduction changes, always in the same way: the result depends neither on lanes nor on threads.
    """
    require_loops(kernel, "rfactor", [loop])
    if factor < 2 or factor & (factor - 1):
        raise ScheduleError(f"rfactor {loop}: {factor} is not a power of two above 1")
    if factor > MOST:
        raise ScheduleError(f"rfactor {loop}: {factor} partial results are too many", f"take up to {MOST}")
    found = [s for s in loops_in(kernel.body) if s.var == loop]
    if len(found) != 1:
        raise ScheduleError(f"rfactor {loop}: there are {len(found)} loops of that name")
    plan = _Plan.of(found[0], factor, partial)
    require_fresh(kernel, "rfactor", plan.names, replaced=[loop])
    return with_body(kernel, plan.run(kernel.body))


@dataclass(frozen=True)
class _Plan:
    loop: For
    store: Store
    op: BinaryOp
    factor: int
    partial: str

    @staticmethod
    def of(loop: For, factor: int, partial: str) -> _Plan:
        body = loop.body
        while isinstance(body, For) or (isinstance(body, If) and body.otherwise is None):
            body = body.body if isinstance(body, For) else body.then
        op = operation(body) if isinstance(body, Store) else None
        if loop.kind != "serial" or not isinstance(body, Store) or op is None:
            raise ScheduleError(f"rfactor {loop.var}: its body is not one step of a sum, product, minimum or maximum")
        return _Plan(loop, body, op, factor, partial)

    @property
    def names(self) -> list[str]:
        widths = [f"{self.partial}_{h}" for h in self._halves]
        return [self.partial, f"{self.partial}_i", *widths, f"{self.loop.var}_o", f"{self.loop.var}_l"]

    @property
    def _halves(self) -> list[int]:
        return [1 << k for k in reversed(range(self.factor.bit_length() - 1))]

    def run(self, body: Stmt) -> Stmt:
        """Return the program with the reduction rewritten where its accumulator is allocated."""
        acc, done = self.store.buffer, []

        def visit(s: Stmt) -> Stmt:
            if isinstance(s, Alloc) and any(o.name == acc for o in s.buffers):
                done.append(s)
                return b.alloc(s.buffers, self._within(s.body))
            return s

        after = map_stmt(body, stmt=visit)
        if not done:
            raise ScheduleError(f"rfactor {self.loop.var}: '{acc}' is not local to a nest")
        return after

    def _within(self, s: Stmt) -> Stmt:
        statements = s.statements if isinstance(s, Block) else (s,)
        return b.block(self._wrapped(p) if holds_loop(p, self.loop.var) else p for p in statements)

    def _wrapped(self, s: Stmt) -> Stmt:
        """Return the reduction's outermost loop, with the code before and after it."""
        acc, at = self.store.buffer, self.store.indices
        if any(free_vars(i) & {p.var for p in loops_in(s)} for i in at):
            raise ScheduleError(f"rfactor {self.loop.var}: its steps do not all go to the same element")
        touched = sum(p.buffer == acc for p in stores(s)) + sum(e.buffer == acc for e in loads(s))
        if touched != 2:
            raise ScheduleError(f"rfactor {self.loop.var}: '{acc}' is used elsewhere in the reduction")
        dtype = self.store.value.type.dtype
        whole = Buffer(self.partial, dtype, (Const(self.factor),), "stack")
        fill = self._over("i", self.factor, lambda i: Store(self.partial, (i,), identity(self.op, self.store.value)))
        tree = [self._over(str(h), h, self._merging(h)) for h in self._halves]
        total = Binary(self.op, Load(acc, at, dtype), Load(self.partial, (Const(0),), dtype))
        steps = map_stmt(s, stmt=lambda p: self._steps(p) if isinstance(p, For) and p.var == self.loop.var else p)
        return b.alloc(whole, b.block((fill, steps, *tree, Store(acc, at, total))))

    def _over(self, suffix: str, count: int, make: Callable[[Expr], Stmt]) -> Stmt:
        name = f"{self.partial}_{suffix}"
        return For(name, Const(0), Const(count), make(b.var(name)))

    def _merging(self, half: int) -> Callable[[Expr], Stmt]:
        return lambda i: self._merge(i, b.add(i, half))

    def _merge(self, to: Expr, other: Expr) -> Stmt:
        left, right = (Load(self.partial, (i,), self.store.value.type.dtype) for i in (to, other))
        return Store(self.partial, (to,), Binary(self.op, left, right))

    def _steps(self, s: For) -> Stmt:
        """Return the loop split in two; the inner one runs along the partial results."""
        outer, inner = b.var(f"{s.var}_o"), b.var(f"{s.var}_l")
        n = extent(s)
        begin = b.add(b.mul(outer, self.factor), inner)
        here = (inner,)
        old = Load(self.store.buffer, self.store.indices, self.store.value.type.dtype)
        new = Load(self.partial, here, old.dtype)

        def moved(p: Stmt) -> Stmt:
            return Store(self.partial, here, p.value, p.mask) if isinstance(p, Store) else p

        body = map_stmt(s.body, expr=lambda e: new if e == old else e, stmt=moved)
        body = substitute(body, {s.var: fold_all(b.add(s.start, begin))})
        if not (isinstance(n, Const) and int(n.value) % self.factor == 0):
            body = b.when(b.compare("lt", begin, n), body)
        count = fold_all(b.ceildiv(n, self.factor))
        return For(outer.name, Const(0), count, For(inner.name, Const(0), Const(self.factor), body))
