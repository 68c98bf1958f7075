"""reorder: loops in another order, through imperfect nests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import (
    Alloc,
    Barrier,
    Block,
    Buffer,
    Check,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Prefetch,
    Stmt,
    Store,
)
from opgen.loop.walk import buffers_in, expressions, free_vars, loops_in, map_stmt, reads_memory, stores, walk_expr
from opgen.passes.fold import fold_all
from opgen.passes.tighten import conjuncts
from opgen.passes.unroll import expand
from opgen.schedule.declaration import Step, Varied, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import extent, is_independent, require_independent, require_loops, rewrite_loops
from opgen.schedule.values import LoopName


@primitive("loops", "reorder n, y, x_o, r, s, c, x_i, k_i")
class Reorder(Step):
    """Nests loops in another order. A reduction goes inside loops that are independent around it; its accumulator
    becomes an array.
    """

    loops: Annotated[tuple[LoopName, ...], Varied(_neighbours_exchanged)]

    def run(self, kernel: Kernel) -> Kernel:
        return reorder(kernel, self.loops)


def _neighbours_exchanged(loops: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the loops with two neighbours exchanged."""
    for k in range(len(loops) - 1):
        yield (*loops[:k], loops[k + 1], loops[k], *loops[k + 2 :])


def reorder(kernel: Kernel, loops: Sequence[str]) -> Kernel:
    """Nest loops in the given order, outermost first.

    A loop moves inwards past another, through the statements between them:

        for i:                                  alloc acc[ni]
          alloc acc                      ->     for i: acc[i] = 0
          acc = 0                               for r:
          for r: acc = f(acc, i, r)               for i: acc[i] = f(acc[i], i, r)
          y[i] = acc                            for i: y[i] = acc[i]

    It is distributed over a block's statements, and exchanged with a loop whose bounds do not depend on it.  A buffer
    that it moves past gets one element an iteration.  Conditions that depend on it move along, except the leading terms
    of an `and` that do not.  Loops that are already further in stay there; loops that are not named stay, too.

    A loop that moves must be independent, or pass only loops that are, also with it inside them.  It goes inside
    conditions that are the same for all its iterations.
    """
    require_loops(kernel, "reorder", loops)
    twice = [name for i, name in enumerate(loops) if name in loops[:i]]
    if twice:
        raise ScheduleError(f"reorder: the loop '{twice[0]}' is named twice", "name each loop once")
    for i in range(len(loops) - 1, 0, -1):
        kernel = _sink_below(kernel, loops[i], frozenset(loops[:i]))
    return kernel


def _sink_below(kernel: Kernel, name: str, below: frozenset[str]) -> Kernel:
    def rewrite(s: For, context: Context) -> Stmt:
        if not _contains(s.body, below):
            return s
        if s.kind == "parallel" or "." in s.kind:
            raise ScheduleError(f"reorder {s.var}: the loop is already {s.kind}", "reorder it before")
        exchanged = _exchanged(s, below, context) if _accumulates(s) or s.kind == "ordered" else None
        if exchanged is None and s.kind == "ordered":
            raise ScheduleError(
                f"reorder {s.var}: not all that its steps hold is independent of each other",
                "steps go inside loops whose iterations leave each other's elements alone",
            )
        if exchanged is None:
            require_independent(s, context, "reorder")
        return exchanged or _Sink(s, below).run()

    return rewrite_loops(kernel, name, rewrite)


def sunk(s: For, below: frozenset[str]) -> Stmt:
    """Return the loop moved inside others that it holds, without a check of dependences."""
    return _Sink(s, below).run()


def _accumulates(s: For) -> bool:
    """Return True if several iterations may write some element: such a loop is not independent.

    The element is read and written in each of them, or loaded data decides where it is.
    """
    own = {o.name for o in buffers_in(s)}
    kept = [p for p in stores(s) if p.buffer not in own]
    fixed = [p for p in kept if not any(s.var in free_vars(i) for i in p.indices)]
    return any(_reads(p.value, p) for p in fixed) or any(reads_memory(i) for p in kept for i in p.indices)


def _reads(e: Expr, s: Store) -> bool:
    """Return True if an expression reads the element that a statement stores to."""
    return any(isinstance(n, Load) and (n.buffer, n.indices) == (s.buffer, s.indices) for n in walk_expr(e))


def _exchanged(s: For, below: frozenset[str], context: Context) -> Stmt | None:
    """Return the loop moved inside independent ones, each with its own order of the loop's iterations.

    None if one of them is not independent, or if a condition reads data that iterations write.
    """
    written = {p.buffer for p in stores(s)}
    for p in _above(s, below):
        if not isinstance(p, For | If) or (isinstance(p, If) and p.otherwise is not None):
            return None
        if isinstance(p, If) and written & {e.buffer for e in walk_expr(p.condition) if isinstance(e, Load)}:
            return None
    result = at = _Sink(s, below).run()
    while not (isinstance(at, For) and at.var == s.var):
        if isinstance(at, If):
            context, at = context.with_condition(at.condition), at.then
        elif isinstance(at, For) and is_independent(at, context):
            context, at = context.with_loop(at.var, at.start, at.stop), at.body
        else:
            return None
    return result


def _above(s: Stmt, below: frozenset[str]) -> Iterator[Stmt]:
    """Yield the statements that a loop passes on its way inwards, as far as each holds only the next."""
    while _contains(s, below):
        yield s
        if not isinstance(s, For | If):
            return
        s = s.body if isinstance(s, For) else s.then


def _contains(s: Stmt, names: frozenset[str]) -> bool:
    return any(p.var in names for p in loops_in(s))


@dataclass(frozen=True)
class _Sink:
    """Move of one loop below others."""

    loop: For
    below: frozenset[str]

    def run(self) -> Stmt:
        return self._sink(self.loop.body, ())

    def _refuse(self, reason: str) -> ScheduleError:
        return ScheduleError(f"reorder {self.loop.var}: {reason}", "leave the loop further out")

    def _depends(self, e: Expr) -> bool:
        return self.loop.var in free_vars(e)

    def _sink(self, s: Stmt, guards: tuple[Expr, ...]) -> Stmt:
        """Return the loop over `s` under the guards, moved inwards as far as there are loops to pass."""
        if not _contains(s, self.below):
            return self._leaf(s, guards)
        match s:
            case Block():
                return b.block(self._sink(p, guards) for p in s.statements)
            case For():
                if any(self._depends(e) for e in expressions(s)):
                    raise self._refuse(f"the bounds of '{s.var}' depend on it")
                return For(s.var, s.start, s.stop, self._sink(s.body, guards), s.kind)
            case If():
                return self._branch(s, guards)
            case Let():
                return self._let(s, guards)
            case Alloc():
                return self._alloc(s, guards)
            case Store() | Barrier() | Check() | Prefetch():
                raise AssertionError("a statement without parts contains no loop")

    def _leaf(self, s: Stmt, guards: tuple[Expr, ...]) -> Stmt:
        for guard in reversed(guards):
            s = If(guard, s)
        return self._within(s)

    def _within(self, s: Stmt) -> Stmt:
        """Return the loop over `s`, inside conditions that are the same for all its iterations."""
        same = isinstance(s, If) and s.otherwise is None and not self._depends(s.condition)
        if isinstance(s, If) and same and not reads_memory(s.condition):
            return If(s.condition, self._within(s.then))
        return For(self.loop.var, self.loop.start, self.loop.stop, s, self.loop.kind)

    def _branch(self, s: If, guards: tuple[Expr, ...]) -> Stmt:
        if not self._depends(s.condition):
            otherwise = None if s.otherwise is None else self._sink(s.otherwise, guards)
            return If(s.condition, self._sink(s.then, guards), otherwise)
        first, *others = conjuncts(s.condition)
        if others and s.otherwise is None and not self._depends(first):
            rest = If(reduce(b.both, others), s.then)
            return If(first, self._branch(rest, guards))
        self._require_stable(s.condition, s)
        then = self._sink(s.then, (*guards, s.condition))
        if s.otherwise is None:
            return then
        opposite = fold_all(b.negate(s.condition))
        return b.block((then, self._sink(s.otherwise, (*guards, opposite))))

    def _let(self, s: Let, guards: tuple[Expr, ...]) -> Stmt:
        if not self._depends(s.value):
            return Let(s.var, s.value, self._sink(s.body, guards))
        self._require_stable(s.value, s.body)
        return self._sink(expand(s.body, {s.var.name: s.value}), guards)

    def _require_stable(self, e: Expr, body: Stmt) -> None:
        """Refuse an expression whose value may change before its later evaluations."""
        written = {p.buffer for p in stores(body)}
        changed = sorted({n.buffer for n in walk_expr(e) if isinstance(n, Load)} & written)
        if changed:
            raise self._refuse(f"it would have to take along a value of '{changed[0]}', which is written below")

    def _alloc(self, s: Alloc, guards: tuple[Expr, ...]) -> Stmt:
        """Give each buffer one element an iteration, by a new first dimension."""
        count, body, made = extent(self.loop), s.body, []
        position = fold_all(b.sub(b.var(self.loop.var), self.loop.start))
        for buffer in s.buffers:
            if any(self._depends(e) for e in buffer.shape):
                raise self._refuse(f"the size of '{buffer.name}' depends on it")
            if free_vars(count) and buffer.space in ("register", "stack"):
                raise self._refuse(
                    f"'{buffer.name}' would need one element an iteration, and their number is not constant"
                )
            made.append(Buffer(buffer.name, buffer.dtype, (count, *buffer.shape), buffer.space))
            body = _with_dimension(body, buffer.name, position)
        return b.alloc(made, self._sink(body, guards))


def _with_dimension(s: Stmt, name: str, position: Expr) -> Stmt:
    """Put one more index in front of the accesses of a buffer."""

    def expr(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer == name:
            return Load(name, (position, *e.indices), e.dtype, e.mask)
        return e

    def stmt(p: Stmt) -> Stmt:
        if isinstance(p, Store) and p.buffer == name:
            return Store(name, (position, *p.indices), p.value, p.mask)
        return p

    return map_stmt(s, expr=expr, stmt=stmt)
