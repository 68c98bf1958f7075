"""relay: a blocked scan: a running sum whose blocks each begin with the sum of all blocks before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Buffer, Const, Expr, For, Kernel, Load, Stmt, Store
from opgen.loop.walk import substitute, substitute_expr
from opgen.passes.fold import fold_all
from opgen.passes.unroll import constant_extent
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_loops, rewrite_loops
from opgen.schedule.prefix import Running
from opgen.schedule.reduction import identity
from opgen.schedule.values import LoopName, Made

MOST = 1 << 16
"""Largest number of blocks."""


@primitive("sums", "relay t 4096 -> t_o, before", reorders_sums=True)
class Relay(Step):
    """Makes a running sum in blocks of 4096 steps: the sum of each, all that is before each, then each by itself."""

    loop: LoopName
    size: int
    outer: Annotated[str, Made("{loop}_o")]
    sums: Annotated[str, Made("{loop}_sums")]

    def run(self, kernel: Kernel) -> Kernel:
        return relay(kernel, self.loop, self.size, self.outer, self.sums)


def relay(kernel: Kernel, loop: str, size: int, outer: str, name: str) -> Kernel:
    """Make a running sum in blocks of `size` steps: their sums, the sums of these, then each block by itself.

                                         alloc p[n // 8]
                                         p[0] = y[0]
                                         for p_sum in 0..n // 8 - 1:
                                           alloc p_acc
                                           p_acc = 0
        ordered t in 0..n:                 for p_term in 0..8: p_acc = p_acc + x[p_sum*8 + p_term]
          y[t + 1] = x[t] + y[t]   ->      p[p_sum + 1] = p_acc
                                         ordered p_step in 0..n // 8 - 1: p[p_step + 1] = p[p_step + 1] + p[p_step]
                                         for t_o in 0..n // 8:
                                           y[t_o*8 + 1] = x[t_o*8] + p[t_o]
                                           ordered t in 1..8: y[t_o*8 + t + 1] = x[t_o*8 + t] + y[t_o*8 + t]
                                         ordered p_rest in n // 8 * 8..n: as before

    The iterations of `p_sum` are independent, and so are those of `t_o`.  The terms are read twice.  The order in which
    terms are added changes, always in the same way.
    """
    require_loops(kernel, "relay", [loop])
    names = [name, *(f"{name}_{end}" for end in ("sum", "term", "acc", "step", "rest")), outer]
    require_fresh(kernel, "relay", names)

    def rewrite(s: For, context: Context) -> Stmt:
        running = Running.of(s, context, "relay")
        count = constant_extent(s)
        if size < 2 or count is None or not 2 <= count // size <= MOST:
            raise ScheduleError(f"relay {loop}: it is not known to have 2 to {MOST} blocks of 2 steps or more")
        return _Blocks(running, count, size, outer, name).code()

    return rewrite_loops(kernel, loop, rewrite)


@dataclass(frozen=True)
class _Blocks:
    running: Running
    count: int
    size: int
    outer: str
    name: str

    def code(self) -> Stmt:
        s, blocks = self.running.loop, self.count // self.size
        begin = Store(self.name, (Const(0),), substitute_expr(self.running.before, {s.var: s.start}))
        done = fold_all(b.add(s.start, blocks * self.size))
        rest = b.var(f"{self.name}_rest")
        others = [For(rest.name, done, s.stop, substitute(s.body, {s.var: rest}), "ordered")]
        made = (begin, self._sums(blocks - 1), self._offsets(blocks - 1), self._each(blocks))
        buffer = Buffer(self.name, self.running.value.type.dtype, (Const(blocks),), "heap")
        return b.alloc(buffer, b.block((*made, *(others if self.count % self.size else ()))))

    def _at(self, block: Expr, step: Expr | int) -> Expr:
        """Return the place of a step of a block."""
        return fold_all(b.add(self.running.loop.start, b.add(b.mul(block, self.size), step)))

    def _load(self, buffer: str, *indices: Expr) -> Load:
        return Load(buffer, indices, self.running.value.type.dtype)

    def _sums(self, blocks: int) -> Stmt:
        """Return the code for the sum of each block but the last."""
        block, term = b.var(f"{self.name}_sum"), b.var(f"{self.name}_term")
        acc = Buffer(f"{self.name}_acc", self.running.value.type.dtype, (), "register")
        so_far = self._load(acc.name)
        added = b.binary(self.running.value.op, so_far, self._term(self._at(block, term)))
        body = (
            Store(acc.name, (), identity(self.running.value.op, so_far)),
            For(term.name, Const(0), Const(self.size), Store(acc.name, (), added)),
            Store(self.name, (b.add(block, 1),), so_far),
        )
        return For(block.name, Const(0), Const(blocks), b.alloc(acc, b.block(body)))

    def _offsets(self, blocks: int) -> Stmt:
        """Return the code for the sum of everything before each block."""
        step = b.var(f"{self.name}_step")
        value = self.running.joined(self._load(self.name, step), self._load(self.name, b.add(step, 1)))
        return For(step.name, Const(0), Const(blocks), Store(self.name, (b.add(step, 1),), value), "ordered")

    def _each(self, blocks: int) -> Stmt:
        """Return the code for each block: its first step from the sum before it, then the others."""
        s, block = self.running.loop, b.var(self.outer)
        first = self._at(block, 0)
        value = self.running.joined(self._load(self.name, block), self._term(first))
        indices = tuple(substitute_expr(i, {s.var: first}) for i in self.running.step.indices)
        steps = For(
            s.var, Const(1), Const(self.size), substitute(s.body, {s.var: self._at(block, b.var(s.var))}), "ordered"
        )
        return For(
            block.name, Const(0), Const(blocks), b.block((Store(self.running.step.buffer, indices, value), steps))
        )

    def _term(self, place: Expr) -> Expr:
        return substitute_expr(self.running.term, {self.running.loop.var: place})
