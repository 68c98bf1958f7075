"""prefetch: ask early for what the next iteration of a loop will read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Buffer, Const, Expr, For, Kernel, Prefetch, Stmt
from opgen.loop.walk import parts, substitute_expr, walk, with_parts
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify_expr
from opgen.passes.unroll import constant_extent
from opgen.schedule.box import accesses, bounding_box
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import buffer_at, require_loops, rewrite_loops

LINE = 64
"""Bytes that memory is fetched in."""


def prefetch(kernel: Kernel, buffer: str, at: str, loop: str) -> Kernel:
    """In each iteration of an inner loop ask for a line of what the next iteration of an outer loop will read of a
    buffer, line by line in the order of memory.

        for y in 0..56:                    for y in 0..56:
          for k in 0..2:                     for k in 0..2:
            alloc acc                          alloc acc
            for c in 0..256:          ->       for c in 0..256:
              acc += x[y, c] * f[c, k]           prefetch x[min(y + 1, 55), min(k * 256, 0) * 16 + c * 16]
                                                 acc += x[y, c] * f[c, k]

    What is read must be a number of elements known, one after the other.  Where the loops inside have more iterations
    than that has lines, the last tiles ask for the last lines again.
    """
    require_loops(kernel, "prefetch", [at, loop])
    known = [x.name for x in kernel.inputs]
    if buffer not in known:
        raise ScheduleError(f"prefetch {buffer}: there is no such input", did_you_mean(buffer, known))
    return rewrite_loops(kernel, at, lambda s, context: _Prefetch(buffer, s, loop).apply(context, kernel))


@dataclass(frozen=True)
class _Prefetch:
    buffer: str
    outer: For
    loop: str

    def _refuse(self, reason: str, help: str | None = None) -> ScheduleError:
        return ScheduleError(f"prefetch {self.buffer}: {reason}", help)

    def apply(self, context: Context, kernel: Kernel) -> Stmt:
        s = self.outer
        first, lines, width = self._region(buffer_at(kernel, self.buffer, s), context)
        tiles, steps = self._path(s.body)
        per_tile = prod(self._extent(p) for p in steps)
        tile = b.minimum(b.mul(self._number(tiles), per_tile), max(0, lines - per_tile))
        number = b.add(tile, self._number(steps))
        hint = Prefetch(self.buffer, (*first[:-1], fold_all(b.add(first[-1], b.mul(number, width)))))

        def within(p: Stmt) -> Stmt:
            if isinstance(p, For) and p.var == self.loop:
                return For(p.var, p.start, p.stop, b.block((hint, p.body)), p.kind)
            chosen = self._chosen(p)
            return with_parts(p, tuple(within(q) if q is chosen else q for q in parts(p)))

        return For(s.var, s.start, s.stop, within(s.body), s.kind)

    def _region(self, whole: Buffer, context: Context) -> tuple[tuple[Expr, ...], int, int]:
        """The first element that the next iteration reads (the last iteration's own where there is none), how many
        lines that and what follows it are, and how many elements a line has.
        """
        s = self.outer
        inside = context.with_loop(s.var, s.start, s.stop)
        found = accesses(s.body, self.buffer)
        box = bounding_box(found, inside) if found else None
        if box is None:
            raise self._refuse(f"it is not known what '{s.var}' reads of it")
        sizes = [_constant(e) for e in whole.shape]
        extents = [_constant(e) for e in box.extents]
        rows = next((d for d, e in enumerate(extents) if e != 1), len(extents))
        if None in extents or extents[rows + 1 :] != sizes[rows + 1 :]:
            raise self._refuse(f"what '{s.var}' reads of it does not lie together", "name an outer loop")
        following = fold_all(b.minimum(b.add(b.var(s.var), 1), b.sub(s.stop, 1)))
        first = tuple(simplify_expr(substitute_expr(e, {s.var: following}), inside) for e in box.low)
        size = whole.dtype.bytes
        return first, -(-prod(e or 1 for e in extents) * size // LINE), max(1, LINE // size)

    def _path(self, s: Stmt) -> tuple[list[For], list[For]]:
        """The loops down to the inner one: those over tiles, and those within an accumulator, or else that one."""
        tiles: list[For] = []
        steps: list[For] = []
        while not (isinstance(s, For) and s.var == self.loop):
            if isinstance(s, For):
                steps.append(s)
            elif isinstance(s, Alloc):
                tiles, steps = [*tiles, *steps], []
            s = self._chosen(s)
        steps.append(s)
        if any(p.kind != "serial" for p in (*tiles, *steps)):
            raise self._refuse("a loop on the way there is already bound to something", "prefetch before")
        return tiles, steps

    def _chosen(self, s: Stmt) -> Stmt:
        """The part of a statement that holds the inner loop: the first, where a range is in parts."""
        found = next((p for p in parts(s) if any(isinstance(q, For) and q.var == self.loop for q in walk(p))), None)
        if found is None:
            raise self._refuse(f"'{self.outer.var}' does not hold the loop '{self.loop}'", "name an inner loop")
        return found

    def _number(self, loops: Sequence[For]) -> Expr:
        """How many iterations of loops in each other went before the one that runs."""
        number: Expr = Const(0)
        for s in loops:
            number = b.add(b.mul(number, self._extent(s)), b.sub(b.var(s.var), s.start))
        return fold_all(number)

    def _extent(self, s: For) -> int:
        extent = constant_extent(s)
        if extent is None:
            raise self._refuse(f"it is not known how many iterations '{s.var}' has")
        return extent


def _constant(e: Expr) -> int | None:
    return int(e.value) if isinstance(e, Const) else None
