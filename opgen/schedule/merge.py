"""merge: two loops, one after the other, into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opgen.dtypes import FLOAT32
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Barrier, Block, Buffer, Check, Expr, For, Kernel, Load, Stmt, Store
from opgen.loop.walk import (
    buffers_in,
    declares,
    expressions,
    holds_loop,
    loops_in,
    parts,
    skeleton,
    stores,
    substitute,
    touched,
    walk,
    walk_expr,
    with_parts,
)
from opgen.passes.fold import fold_all
from opgen.passes.scope import entered
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import extent, is_independent, require_loops, with_body
from opgen.schedule.values import LoopName


@primitive("loops", "merge i, j", moves_past=True)
class Merge(Step):
    """Makes one loop of two with as many iterations. What stands between them goes before or after it."""

    first: LoopName
    second: LoopName

    def run(self, kernel: Kernel) -> Kernel:
        return merge(kernel, self.first, self.second)


def merge(kernel: Kernel, first: str, second: str) -> Kernel:
    """Make one loop of two with equal iteration counts, the first one before the second.

        for i in 0..n:
          p[i] = f(x[i])              s[] = 0
        s[] = 0                 ->    for i in 0..n:
        for j in 0..n:                  p[i] = f(x[i])
          s[] = s[] + g(x[j])           s[] = s[] + g(x[i])

    Data that both loops read is read once, while it is in cache.  Buffers allocated between the loops are allocated
    before both.  A statement between them runs before both, or after both if it needs results of the first loop.
    Refused if that is not possible, or if an iteration of one loop may conflict with another iteration of the other.
    """
    require_loops(kernel, "merge", [first, second])
    if first == second:
        raise ScheduleError(f"merge {first}: the two loops are one", "name two loops that stand one after the other")
    for name in (first, second):
        if sum(s.var == name for s in loops_in(kernel.body)) > 1:
            hint = "give the parts of a loop names of their own: partition LOOP CUT -> SUFFIX"
            raise ScheduleError(f"merge {first}: there are several loops '{name}'", hint)
    step = _Merge(first, second)
    return with_body(kernel, step.visit(kernel.body, Context.of(kernel)))


@dataclass(frozen=True)
class _Merge:
    first: str
    second: str

    def refuse(self, why: str, hint: str | None = None) -> ScheduleError:
        return ScheduleError(f"merge {self.first}: {why}", hint)

    def visit(self, s: Stmt, context: Context) -> Stmt:
        """Return the statement with both loops merged, in the innermost block that holds both."""
        if any(self._holds_both(p) for p in parts(s)):
            return with_parts(s, tuple(self.visit(p, c) if self._holds_both(p) else p for p, c in entered(s, context)))
        if not isinstance(s, Block):
            raise self.refuse(f"'{self.second}' does not stand beside it", "reorder the loops first")
        at, to = (next(k for k, p in enumerate(s.statements) if holds_loop(p, n)) for n in (self.first, self.second))
        if at > to:
            raise self.refuse(f"'{self.second}' stands before it", f"write merge {self.second}, {self.first}")
        made = self._in_one_place(s.statements[at : to + 1], context)
        return b.block((*s.statements[:at], made, *s.statements[to + 1 :]))

    def _holds_both(self, s: Stmt) -> bool:
        return holds_loop(s, self.first) and holds_loop(s, self.second)

    def _in_one_place(self, run: Sequence[Stmt], context: Context) -> Stmt:
        """Return the statements from the first loop's to the second loop's, with one loop."""
        (buffers, one), (others, other) = self._opened(run[0], self.first), self._opened(run[-1], self.second)
        names = [o.name for o in (*buffers, *others)]
        for k, name in enumerate(names):
            elsewhere = run[1:] if k < len(buffers) else run[:-1]
            if names.count(name) > 1 or any(name in touched(s) or declares(s, name) for s in elsewhere):
                raise self.refuse(f"two buffers have the name '{name}' there")
        statements = [*one, *run[1:-1], *other]
        return b.alloc((*buffers, *others), b.block(self._moved(statements, context)))

    def _opened(self, s: Stmt, name: str) -> tuple[tuple[Buffer, ...], tuple[Stmt, ...]]:
        """Return the buffers allocated around a loop, and the statements beside it."""
        buffers: tuple[Buffer, ...] = ()
        while isinstance(s, Alloc):
            buffers, s = (*buffers, *s.buffers), s.body
        statements = s.statements if isinstance(s, Block) else (s,)
        found = next(p for p in statements if holds_loop(p, name))
        if isinstance(found, Alloc):
            made, inside = self._opened(found, name)
            k = statements.index(found)
            return (*buffers, *made), (*statements[:k], *inside, *statements[k + 1 :])
        if not isinstance(found, For) or found.var != name:
            around = f"the loop over '{found.var}'" if isinstance(found, For) else "a condition or a value"
            raise self.refuse(f"around '{name}' stands {around}", "merge or reorder the loops around it first")
        return buffers, statements

    def _moved(self, statements: Sequence[Stmt], context: Context) -> list[Stmt]:
        """Move the statements between the loops before or after both."""
        (at, first), (to, second) = (_loop(statements, n) for n in (self.first, self.second))
        merged = self._merged(first, second, context)
        early: list[Stmt] = []
        late: list[Stmt] = []
        for s in statements[at + 1 : to]:
            (late if any(_meet(s, p) for p in (first, *late)) else early).append(s)
        if any(_meet(s, second) for s in late):
            raise self.refuse(
                f"what stands between the loops must be done after '{first.var}' and before '{second.var}'"
            )
        return [*statements[:at], *early, merged, *late, *statements[to + 1 :]]

    def _merged(self, first: For, second: For, context: Context) -> For:
        if first.kind != second.kind or first.kind not in ("serial", "parallel"):
            kind = f"{first.kind} and {second.kind}" if first.kind != second.kind else first.kind
            raise self.refuse(f"the loops are {kind}", "merge them before")
        if not context.proves(b.compare("eq", extent(first), extent(second))):
            raise self.refuse(f"'{self.second}' is not known to have as many iterations")
        written = {p.buffer for s in (first, second) for p in stores(s)}
        if any(isinstance(e, Load) and e.buffer in written for s in (first, second) for e in _of_bounds(s)):
            raise self.refuse("the loops store to what their bounds are read from")
        if declares(second.body, first.var):
            raise self.refuse(f"something inside '{self.second}' has the name '{first.var}'")
        place = fold_all(b.add(b.var(first.var), b.sub(second.start, first.start)))
        body = substitute(second.body, {second.var: place})
        whole = For(first.var, first.start, first.stop, b.block((first.body, body)), first.kind)
        shared = _shared(first.body, body)
        if shared and not is_independent(_of_buffers(whole, shared), context):
            raise self.refuse(
                f"an iteration of '{self.second}' is not known to need only what the same one of '{self.first}' does",
                f"both use {', '.join(map(repr, sorted(shared)))}",
            )
        return whole


def _loop(statements: Sequence[Stmt], name: str) -> tuple[int, For]:
    return next((k, s) for k, s in enumerate(statements) if isinstance(s, For) and s.var == name)


def _of_bounds(loop: For) -> Iterator[Expr]:
    yield from (*walk_expr(loop.start), *walk_expr(loop.stop))


def _shared(first: Stmt, second: Stmt) -> frozenset[str]:
    """Return the outer buffers that one of two statements writes and the other uses."""
    uses = [touched(s) - {o.name for o in buffers_in(s)} for s in (first, second)]
    writes = frozenset(p.buffer for s in (first, second) for p in stores(s))
    return uses[0] & uses[1] & writes


def _of_buffers(loop: For, shared: frozenset[str]) -> For:
    """Return a loop in which each iteration has private copies of all buffers that are not shared.

    Buffers that decide where or whether something is accessed stay shared.
    """
    own = sorted(touched(loop) - shared - {e.buffer for e in _telling(loop)})
    body = b.alloc([Buffer(n, FLOAT32, (), "register") for n in own], loop.body)
    return For(loop.var, loop.start, loop.stop, body)


def _telling(loop: For) -> Iterator[Load]:
    """Yield the loads in indices, conditions, bounds and names."""
    for s in walk(loop):
        told = [e for e in (*s.indices, s.mask) if e is not None] if isinstance(s, Store) else expressions(s)
        inside = [i for e in expressions(s) for o in walk_expr(e) if isinstance(o, Load) for i in o.indices]
        yield from (o for e in (*told, *inside) for o in walk_expr(e) if isinstance(o, Load))


def _meet(first: Stmt, second: Stmt) -> bool:
    """Return True if two statements may not change places."""
    ordered = any(isinstance(p, Barrier | Check) for s in (first, second) for p in skeleton(s))
    return ordered or bool(_shared(first, second))
