"""Reductions whose outermost loop is to move outside loops over results, with reasons to refuse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Binary, BinaryOp, Block, Call, Expr, For, If, Kernel, Load, Stmt, Store
from opgen.loop.walk import expressions, free_vars, loads, loops_in, stores, walk_expr
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import is_independent


class Reduction(NamedTuple):
    """Parts of a reduction inside loops over results.

    `around` are the loops over results, outermost first.  `acc` is the accumulator in the last one, and `start` its
    initialisation.  `conditions` are around `loop`, the loop of the reduction.  `end` is the epilogue, and `result` one
    of its stores, all of them to the same place.  `kept` is the accumulator's value.
    """

    around: list[For]
    acc: Alloc
    start: Stmt
    conditions: list[Expr]
    loop: For
    end: Stmt
    result: Store
    kept: Load

    def inside(self, start: Stmt, end: Stmt) -> Stmt:
        """Return the loops over results around one step of the reduction's loop, with another start and end."""
        body = self.loop.body
        for condition in reversed(self.conditions):
            body = If(condition, body)
        body = b.alloc(self.acc.buffer, b.block((start, body, end)))
        for result in reversed(self.around):
            body = For(result.var, result.start, result.stop, body, result.kind)
        return body


@dataclass(frozen=True)
class Search:
    """Search for the reduction that `primitive` moves `loop` out of.

    `narrow` allows results of another type than the accumulator, for steps that do not keep partial sums in them.
    """

    kernel: Kernel
    primitive: str
    loop: str
    narrow: bool = False

    def refuse(self, reason: str, help: str | None = None) -> ScheduleError:
        return ScheduleError(f"{self.primitive} {self.loop}: {reason}", help)

    def run(self, s: For, context: Context) -> Reduction:
        """Return the reduction inside loops over results; `s` is the outermost of them."""
        around, core = self._results(s, context)
        found = self._core(around, core)
        if any(o.name == found.result.buffer and o.space == "streamed" for o in self.kernel.outputs):
            raise self.refuse(f"'{found.result.buffer}' goes past the caches", f"{self.primitive} before")
        self._require_free(found, context)
        return found

    def _results(self, s: For, context: Context) -> tuple[list[For], Alloc]:
        """Return the loops over results, outermost first, and the body of the last one."""
        around: list[For] = []
        body: Stmt = s
        while isinstance(body, For):
            if body.kind not in ("serial", "parallel"):
                before = f"{self.primitive} before"
                raise self.refuse(f"the loop '{body.var}' over results is already {body.kind}", before)
            if not is_independent(body, context):
                raise self.refuse(f"the iterations of '{body.var}' are not known to be independent")
            context = context.with_loop(body.var, body.start, body.stop)
            around.append(body)
            body = body.body
        if not isinstance(body, Alloc):
            raise self.refuse(f"'{around[-1].var}' holds something else than one reduction", "reorder the loops first")
        return around, body

    def _core(self, around: list[For], core: Alloc) -> Reduction:
        shape = self.refuse("it is not the outermost loop of a reduction whose accumulator can wait in a result")
        if not isinstance(core.body, Block) or len(core.body.statements) != 3:
            raise shape
        start, middle, end = core.body.statements
        wrapped: list[Expr] = []
        while isinstance(middle, If) and middle.otherwise is None:
            wrapped.append(middle.condition)
            middle = middle.then
        scalar = len(core.buffers) == 1 and not core.buffer.shape
        if not scalar or not isinstance(middle, For) or middle.var != self.loop or middle.kind != "serial":
            raise shape
        acc = core.buffer.name
        begun = {p.buffer for p in stores(start)} == {acc} and not any(loops_in(start))
        result = next(iter(stores(end)), None)
        used = {e.buffer for s in (middle, end) for e in loads(s)} | {p.buffer for p in stores(middle)}
        if not begun or result is None or not _stores_once(end) or result.buffer in used:
            raise shape
        own = self.narrow or result.value.type.dtype == core.buffer.dtype
        if not own or result.mask is not None:
            raise shape
        return Reduction(around, core, start, wrapped, middle, end, result, Load(acc, (), core.buffer.dtype))

    def _require_free(self, found: Reduction, context: Context) -> None:
        for name in sorted({s.var for s in found.around}):
            if any(name in free_vars(e) for e in expressions(found.loop)):
                raise self.refuse(f"its bounds depend on '{name}'")
        deciding = (*found.conditions, *expressions(found.loop))
        if any(isinstance(n, Load) for e in deciding for n in walk_expr(e)):
            raise self.refuse("whether it runs depends on what is in memory")
        if not context.proves(b.compare("lt", found.loop.start, found.loop.stop)):
            raise self.refuse("it is not known to run at all, and nothing would be stored")


def _stores_once(end: Stmt) -> bool:
    """Return True if the epilogue stores in any case, and to one place."""
    if isinstance(end, If):
        places = {(s.buffer, s.indices, s.mask) for s in stores(end)}
        return end.otherwise is not None and len(places) == 1 and all(map(_stores_once, (end.then, end.otherwise)))
    return isinstance(end, Store)


def operation(s: Store) -> BinaryOp | None:
    """Return the operation by which a store accumulates one step; None if it does not."""
    target = Load(s.buffer, s.indices, s.value.type.dtype)
    match s.value:
        case Binary(op="add" | "mul" | "min" | "max" as op, left=left) if left == target:
            return op
        case Call("fma", (_, _, last)) if last == target:
            return "add"
    return None


def identity(op: BinaryOp, like: Expr) -> Expr:
    """Return the identity of an operation: 0, 1, or the greatest or least value of the type."""
    dtype = like.type.dtype
    if op in ("add", "mul"):
        return b.const(0 if op == "add" else 1, dtype)
    if dtype.is_float:
        return b.const(math.inf if op == "min" else -math.inf, dtype)
    return b.const(dtype.greatest if op == "min" else dtype.least, dtype)
