"""prefix: a running sum, product, minimum or maximum by an in-register scan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Binary, Broadcast, Buffer, Const, Expr, For, Kernel, Load, Ramp, Shuffle, Stmt, Store
from opgen.loop.walk import substitute, substitute_expr, walk_exprs
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify_expr
from opgen.passes.unroll import constant_extent
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_loops, rewrite_loops
from opgen.schedule.reduction import identity
from opgen.schedule.values import LoopName, Made

MOST = 64
"""Largest number of lanes."""
OPERATIONS = ("add", "mul", "min", "max")


@primitive("sums", "prefix t 16 -> running", target="cpu", reorders_sums=True)
class Prefix(Step):
    """Takes 16 steps of a running sum, product, minimum or maximum at once: in 4 rounds each lane gets the sum of those
    before it.
    """

    loop: LoopName
    lanes: int
    name: Annotated[str, Made("{loop}_prefix")]

    def run(self, kernel: Kernel) -> Kernel:
        return prefix(kernel, self.loop, self.lanes, self.name)


def prefix(kernel: Kernel, loop: str, lanes: int, name: str) -> Kernel:
    """Take `lanes` steps of a running sum at once: in log2(lanes) rounds each lane gets the sum of those before it.

                                         p_all[ramp(0, 0, 4)] = y[0]
        ordered t in 0..n:               ordered p_step in 0..n // 4:
          y[t + 1] = x[t] + y[t]   ->      p[0, ...] = x[p_step*4 + ...]
                                           p[1, ...] = p[0, ...] + shuffle(p[0, ...], -0.0, 4, 0, 1, 2)
                                           p[2, ...] = p[1, ...] + shuffle(p[1, ...], -0.0, 4, 5, 0, 1)
                                           y[p_step*4 + ... + 1] = p[2, ...] + p_all[...]
                                           p_all[...] = shuffle(p[2, ...], p[2, ...], 3, 3, 3, 3) + p_all[...]
                                         ordered t in n // 4 * 4..n: as before

    `lanes` is a power of two.  The order in which terms are added changes, always in the same way.
    """
    require_loops(kernel, "prefix", [loop])
    if lanes < 2 or lanes & (lanes - 1) or lanes > MOST:
        raise ScheduleError(f"prefix {loop}: {lanes} lanes are not a power of two from 2 to {MOST}")
    require_fresh(kernel, "prefix", [name, f"{name}_all", f"{name}_in", f"{name}_out", f"{name}_step"])

    def rewrite(s: For, context: Context) -> Stmt:
        running = Running.of(s, context, "prefix")
        count = constant_extent(s)
        if count is None or count < lanes:
            raise ScheduleError(f"prefix {loop}: it is not known to have {lanes} steps")
        return _Vectors(running, count, lanes, name).code()

    return rewrite_loops(kernel, loop, rewrite)


@dataclass(frozen=True)
class Running:
    """A loop whose steps each combine the element before with a `term`."""

    loop: For
    step: Store
    value: Binary
    """Operation on the term and the element before; its order does not matter, except for rounding."""

    @staticmethod
    def of(s: For, context: Context, primitive: str) -> Running:
        """Return the running sum of a loop; raises ScheduleError if it has none."""
        step = s.body
        value = step.value if isinstance(step, Store) else None
        if s.kind != "ordered" or not isinstance(step, Store) or step.mask is not None or not isinstance(value, Binary):
            raise ScheduleError(f"{primitive} {s.var}: its body is not one step of a running sum")
        inside = context.with_loop(s.var, s.start, s.stop)
        before = {s.var: b.sub(b.var(s.var), 1)}
        wanted = tuple(simplify_expr(substitute_expr(i, before), inside) for i in step.indices)
        found = [e for e in (value.left, value.right) if isinstance(e, Load) and e.buffer == step.buffer]
        once = sum(e.buffer == step.buffer for e in walk_exprs(step) if isinstance(e, Load)) == 1
        moved = [f for i in step.indices if (f := linear(i, s.var)) is None or f[0] != Const(0)]
        apart = len(moved) == 1 and moved[0] is not None and isinstance(moved[0][0], Const)
        here = tuple(simplify_expr(i, inside) for i in found[0].indices) if len(found) == 1 and once else ()
        if not apart or here != wanted or value.op not in OPERATIONS:
            raise ScheduleError(
                f"{primitive} {s.var}: '{step.buffer}' is not a running sum, product, minimum or maximum",
                "each step takes one term and the element of the step before",
            )
        return Running(s, step, value)

    @property
    def before(self) -> Load:
        """The element of the step before."""
        left = self.value.left
        is_left = isinstance(left, Load) and left.buffer == self.step.buffer
        found = left if is_left else self.value.right
        assert isinstance(found, Load)
        return found

    @property
    def term(self) -> Expr:
        return self.value.right if self.before is self.value.left else self.value.left

    def joined(self, before: Expr, after: Expr) -> Expr:
        """Return the result so far combined with a later one, in the order of the operation."""
        left, right = (before, after) if self.before is self.value.left else (after, before)
        return Binary(self.value.op, left, right)


@dataclass(frozen=True)
class _Vectors:
    running: Running
    count: int
    lanes: int
    name: str

    def code(self) -> Stmt:
        run, s = self.running, self.running.loop
        dtype, rounds = run.value.type.dtype, self.lanes.bit_length() - 1
        lines = Buffer(self.name, dtype, (Const(rounds + 1), Const(self.lanes)), "register")
        every = Buffer(f"{self.name}_all", dtype, (Const(self.lanes),), "register")
        start = substitute_expr(run.before, {s.var: s.start})
        last = Shuffle(self._line(rounds), self._line(rounds), (self.lanes - 1,) * self.lanes)
        steps: tuple[Stmt, ...] = (
            self._over("in", lambda lane: Store(self.name, (Const(0), lane), self._at(run.term, lane))),
            *(Store(self.name, self._lane(r + 1), self._round(r)) for r in range(rounds)),
            self._over("out", self._stored),
            Store(every.name, self._lane(), run.joined(self._all(self._lane()), last)),
        )
        outer = For(f"{self.name}_step", Const(0), Const(self.count // self.lanes), b.block(steps), "ordered")
        begin = Store(every.name, self._lane(), Broadcast(start, self.lanes))
        done = fold_all(b.add(s.start, self.count // self.lanes * self.lanes))
        rest = [For(s.var, done, s.stop, s.body, "ordered")] if self.count % self.lanes else []
        return b.block((b.alloc((lines, every), b.block((begin, outer))), *rest))

    def _lane(self, *line: int) -> tuple[Expr, ...]:
        """Return the indices of all lanes of a buffer's line."""
        return (*map(Const, line), Ramp(Const(0), Const(1), self.lanes))

    def _line(self, number: int) -> Load:
        return Load(self.name, self._lane(number), self.running.value.type.dtype)

    def _all(self, at: tuple[Expr, ...]) -> Load:
        """Return the result before these steps, in every lane."""
        return Load(f"{self.name}_all", at, self.running.value.type.dtype)

    def _round(self, number: int) -> Expr:
        """Return each lane combined with the lane `2**number` places before it."""
        apart, line = 1 << number, self._line(number)
        op, dtype = self.running.value.op, line.dtype
        least = b.const(-0.0, dtype) if op == "add" and dtype.is_float else identity(op, line)  # -0.0 + 0.0 is 0.0
        nothing = Broadcast(least, self.lanes)
        order = tuple(k - apart if k >= apart else self.lanes + k for k in range(self.lanes))
        return self.running.joined(Shuffle(line, nothing, order), line)

    def _over(self, suffix: str, make: Callable[[Expr], Stmt]) -> For:
        """Return a vector loop that runs a statement in each lane."""
        name = f"{self.name}_{suffix}"
        return For(name, Const(0), Const(self.lanes), make(b.var(name)), "vector")

    def _at(self, e: Expr, lane: Expr) -> Expr:
        return substitute_expr(e, {self.running.loop.var: self._place(lane)})

    def _stored(self, lane: Expr) -> Stmt:
        last = Load(self.name, (Const(self.lanes.bit_length() - 1), lane), self.running.value.type.dtype)
        step = Store(self.running.step.buffer, self.running.step.indices, self.running.joined(self._all((lane,)), last))
        return substitute(step, {self.running.loop.var: self._place(lane)})

    def _place(self, lane: Expr) -> Expr:
        s = self.running.loop
        return fold_all(b.add(s.start, b.add(b.mul(b.var(f"{self.name}_step"), self.lanes), lane)))
