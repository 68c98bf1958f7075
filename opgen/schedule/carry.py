"""carry: a loop of a reduction outside the loops over results."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Block, Expr, For, If, Kernel, Load, Stmt, Store
from opgen.loop.walk import expressions, free_vars, loads, stores, walk, walk_expr
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import is_independent, require_loops, rewrite_loops


def carry(kernel: Kernel, loop: str, at: str) -> Kernel:
    """Move the outermost loop of a reduction outside the loops over its results, from `at` inwards; what is summed so
    far waits in the results themselves.

        for k in 0..m:                          for r in 0..n:
          alloc acc                               for k in 0..m:
          acc = 0                                   alloc acc
          for r in 0..n:                    ->      if r == 0: acc = 0
            acc = f(acc, k, r)                      else: acc = y[k]
          y[k] = acc                                acc = f(acc, k, r)
                                                    y[k] = acc

    What is made of a sum before it is stored, `y[k] = g(acc)`, is made of the last one: `if r == n - 1: y[k] = g(acc)`,
    `else: y[k] = acc`.  The order of each sum stays as it is.  The results must have the accumulator's type, nothing
    may stand between the loops, and conditions around the reduction move into it.
    """
    require_loops(kernel, "carry", [loop, at])
    if loop == at:
        raise ScheduleError(f"carry {loop}: it cannot be carried out of itself", "name a loop over results")
    return rewrite_loops(kernel, at, lambda s, context: _Carry(loop, at).rewrite(s, context))


@dataclass(frozen=True)
class _Carry:
    loop: str
    at: str

    def _refuse(self, reason: str, help: str | None = None) -> ScheduleError:
        return ScheduleError(f"carry {self.loop}: {reason}", help)

    def rewrite(self, s: For, context: Context) -> Stmt:
        around, core = self._results(s, context)
        start, wrapped, reduction, end = self._core(core)
        result = next(stores(end))
        self._require_free(reduction, around, wrapped, context)
        acc = core.buffer
        kept = Load(acc.name, (), acc.dtype)
        first = b.compare("eq", b.var(self.loop), reduction.start)
        resumed = If(first, start, Store(acc.name, (), Load(result.buffer, result.indices, acc.dtype)))
        if end != (waits := Store(result.buffer, result.indices, kept)):
            last = b.compare("eq", b.var(self.loop), b.sub(reduction.stop, b.index(1)))
            end = If(last, end, waits)
        body = reduction.body
        for condition in reversed(wrapped):
            body = If(condition, body)
        body = Alloc(acc, b.block((resumed, body, end)))
        for loop in reversed(around):
            body = For(loop.var, loop.start, loop.stop, body, loop.kind)
        return For(self.loop, reduction.start, reduction.stop, body, reduction.kind)

    def _results(self, s: For, context: Context) -> tuple[list[For], Alloc]:
        """The loops over results, outermost first, and what the last one holds."""
        around: list[For] = []
        body: Stmt = s
        while isinstance(body, For):
            if body.kind not in ("serial", "parallel"):
                raise self._refuse(f"the loop '{body.var}' over results is already {body.kind}", "carry before")
            if not is_independent(body, context):
                raise self._refuse(f"the iterations of '{body.var}' are not known to be independent")
            context = context.with_loop(body.var, body.start, body.stop)
            around.append(body)
            body = body.body
        if not isinstance(body, Alloc):
            raise self._refuse(f"'{around[-1].var}' holds something else than one reduction", "reorder the loops first")
        return around, body

    def _core(self, core: Alloc) -> tuple[Stmt, list[Expr], For, Stmt]:
        """How a reduction starts, the conditions around its loop, its loop, and what is made of its result."""
        shape = self._refuse("it is not the outermost loop of a reduction whose accumulator can wait in a result")
        if not isinstance(core.body, Block) or len(core.body.statements) != 3:
            raise shape
        start, middle, end = core.body.statements
        wrapped: list[Expr] = []
        while isinstance(middle, If) and middle.otherwise is None:
            wrapped.append(middle.condition)
            middle = middle.then
        if core.buffer.shape or not isinstance(middle, For) or middle.var != self.loop or middle.kind != "serial":
            raise shape
        acc = core.buffer.name
        begun = {p.buffer for p in stores(start)} == {acc} and not any(isinstance(p, For) for p in walk(start))
        results = {(p.buffer, p.indices, p.value.type.dtype, p.mask) for p in stores(end)}
        once = all(isinstance(p, (Store, If)) and (isinstance(p, Store) or p.otherwise is not None) for p in walk(end))
        if not begun or not once or len(results) != 1:
            raise shape
        ((result, _, dtype, mask),) = results
        used = {e.buffer for s in (middle, end) for e in loads(s)} | {p.buffer for p in stores(middle)}
        if result in used or dtype != core.buffer.dtype or mask is not None:
            raise shape
        return start, wrapped, middle, end

    def _require_free(self, reduction: For, around: list[For], wrapped: list[Expr], context: Context) -> None:
        names = {s.var for s in around}
        for name in sorted(names):
            if any(name in free_vars(e) for e in expressions(reduction)):
                raise self._refuse(f"its bounds depend on '{name}'")
        conditions = [n for e in wrapped for n in walk_expr(e)]
        if any(isinstance(n, Load) for n in (*conditions, *(n for e in expressions(reduction) for n in walk_expr(e)))):
            raise self._refuse("whether it runs depends on what is in memory")
        if not context.proves(b.compare("lt", reduction.start, reduction.stop)):
            raise self._refuse("it is not known to run at all, and nothing would be stored")
