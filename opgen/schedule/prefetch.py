"""prefetch: early requests for data that the next iteration of a loop will read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Annotated, NamedTuple

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop import nodes
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Binary, Buffer, Const, Expr, For, Kernel, Let, Load, Stmt
from opgen.loop.walk import free_vars, holds_loop, parts, skeleton, substitute_expr, walk_expr, with_parts
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify_expr
from opgen.passes.unroll import constant_extent
from opgen.schedule.box import accesses, at_most, bounding_box, covering_box
from opgen.schedule.declaration import Option, Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import buffer_at, require_loops, rewrite_loops
from opgen.schedule.values import BufferName, LoopName

LINE = 64
"""Bytes of a cache line."""


_LOOPS = "an outer and an inner loop"


@primitive("memory", "prefetch input at=y_o in=x")
class Prefetch(Step):
    """Lets each iteration of an inner loop prefetch a line of what the next iteration of an outer loop reads."""

    buffer: BufferName
    at: Annotated[LoopName, Option(lacks=_LOOPS)]
    loop: Annotated[LoopName, Option(lacks=_LOOPS, name="in")]

    def run(self, kernel: Kernel) -> Kernel:
        return prefetch(kernel, self.buffer, self.at, self.loop)


def prefetch(kernel: Kernel, buffer: str, at: str, loop: str) -> Kernel:
    """Prefetch, in each iteration of an inner loop, one line of a buffer that the next outer iteration will read.

    Lines are requested in the order of memory.

        for y in 0..56:                    for y in 0..56:
          for k in 0..2:                     for k in 0..2:
            alloc acc                          alloc acc
            for c in 0..256:          ->       for c in 0..256:
              acc += x[y, c] * f[c, k]           prefetch x[min(y + 1, 55), min(k * 256, 0) * 16 + c * 16]
                                                 acc += x[y, c] * f[c, k]

    The data read must be a known number of elements, contiguous or in rows at equal distances.  If the inner loops have
    more iterations than there are lines, the last tiles prefetch the last lines again.
    """
    require_loops(kernel, "prefetch", [at, loop])
    known = [x.name for x in kernel.inputs]
    if buffer not in known:
        raise ScheduleError(f"prefetch {buffer}: there is no such input", did_you_mean(buffer, known))
    return rewrite_loops(kernel, at, lambda s, context: _Prefetch(buffer, s, loop).apply(context, kernel))


class _Step(NamedTuple):
    """A loop on the way to the inner one, or all parts of its range together."""

    loop: str
    start: Expr
    extent: int


@dataclass(frozen=True)
class _Region:
    """Region that one iteration reads: `rows` along a dimension, each of `lines` cache lines."""

    first: tuple[Expr, ...]
    dimension: int
    rows: int
    lines: int
    width: int
    """Elements of a line."""
    every: bool
    """True if all parts of a loop's range prefetch, because the first has fewer iterations than there are lines."""

    def line(self, tiles: Sequence[_Step], steps: Sequence[_Step]) -> tuple[Expr, ...]:
        """Return the indices of the line that an iteration prefetches, inside loops over tiles and loops within one."""
        tile, step, each = _number(tiles), _number(steps), prod(s.extent for s in steps)
        if self.rows == 1:
            row, line = b.index(0), b.add(_up_to(b.mul(tile, each), self.lines - each), step)
        elif each % self.lines == 0:
            count = each // self.lines
            row = b.add(_up_to(b.mul(tile, count), self.rows - count), b.floordiv(step, self.lines))
            line = b.mod(step, self.lines)
        else:
            number = b.add(_up_to(b.mul(tile, each), self.rows * self.lines - each), step)
            row, line = b.floordiv(number, self.lines), b.mod(number, self.lines)
        place = list(self.first)
        place[self.dimension] = fold_all(b.add(place[self.dimension], row))
        place[-1] = fold_all(b.add(place[-1], b.mul(line, self.width)))
        return tuple(place)


@dataclass(frozen=True)
class _Prefetch:
    buffer: str
    outer: For
    loop: str

    def _refuse(self, reason: str, help: str | None = None) -> ScheduleError:
        return ScheduleError(f"prefetch {self.buffer}: {reason}", help)

    def apply(self, context: Context, kernel: Kernel) -> Stmt:
        s = self.outer
        region = self._region(buffer_at(kernel, self.buffer, s), context)
        return For(s.var, s.start, s.stop, self._inside(s.body, region, (), ()), s.kind)

    def _region(self, whole: Buffer, context: Context) -> _Region:
        """Return the region that the next iteration reads (for the last iteration, its own again)."""
        s = self.outer
        inside = context.with_loop(s.var, s.start, s.stop)
        found = accesses(s.body, self.buffer)
        if not found or bounding_box(found, inside) is None:
            raise self._refuse(f"it is not known what '{s.var}' reads of it")
        box = covering_box(found, whole.shape, inside)
        sizes = [_constant(e) for e in whole.shape]
        most = [at_most(e, inside) for e in box.most]
        extents = [e for e in map(_constant, most) if e is not None]
        together = len(extents) - 1
        while together > 0 and len(extents) == len(sizes) and extents[together] == sizes[together]:
            together -= 1
        rows = [d for d, e in enumerate(extents[:together]) if e != 1] or [0]
        if len(extents) < len(sizes) or any(extents[d] != sizes[d] for d in range(rows[0] + 1, rows[-1] + 1)):
            raise self._refuse(
                f"what '{s.var}' reads of it does not lie together, nor in rows at equal distances",
                "name an outer loop",
            )
        following = fold_all(b.minimum(b.add(b.var(s.var), 1), b.sub(s.stop, 1)))
        low = (b.minimum(e, b.sub(size, n)) for e, size, n in zip(box.low, whole.shape, most, strict=True))
        first = tuple(simplify_expr(substitute_expr(e, {s.var: following}), inside) for e in low)
        if not first or not prod(extents):
            raise self._refuse(f"'{s.var}' reads no row of it")
        named = {p.var.name for p in skeleton(s.body) if isinstance(p, Let)}
        if any(named & free_vars(e) or not _runs_anywhere(e) for e in first):
            raise self._refuse(f"what '{s.var}' reads of it is not known before anything else in it runs")
        size = whole.dtype.bytes
        lines = -(-prod(extents[together:]) * size // LINE)
        count = prod(extents[:together])
        return _Region(first, rows[-1], count, lines, max(1, LINE // size), self._iterations(s.body) < count * lines)

    def _inside(self, s: Stmt, region: _Region, tiles: Sequence[_Step], steps: Sequence[_Step]) -> Stmt:
        """Return a statement that prefetches in the first part with the inner loop, and in others over the same range.

        `tiles` are the loops outside the innermost allocation so far, `steps` the loops inside it.
        """
        if isinstance(s, For):
            return self._asking(s, _Step(s.var, s.start, self._extent(s)), region, tiles, steps)
        if isinstance(s, Alloc):
            tiles, steps = (*tiles, *steps), ()
        first, *others = self._holding(s)
        if not isinstance(first, For):
            asking = {id(first): self._inside(first, region, tiles, steps)}
        else:
            range_ = [first, *(p for p in others if region.every and isinstance(p, For) and p.var == first.var)]
            whole = _Step(first.var, first.start, sum(map(self._extent, range_)))
            asking = {id(p): self._asking(p, whole, region, tiles, steps) for p in range_}
        return with_parts(s, tuple(asking.get(id(p), p) for p in parts(s)))

    def _holding(self, s: Stmt) -> list[Stmt]:
        """Return the parts of a statement that hold the inner loop."""
        found = [p for p in parts(s) if holds_loop(p, self.loop)]
        if not found:
            raise self._refuse(f"'{self.outer.var}' does not hold the loop '{self.loop}'", "name an inner loop")
        return found

    def _iterations(self, s: Stmt) -> int:
        """Return the number of iterations of the inner loop in first parts alone."""
        own = self._extent(s) if isinstance(s, For) else 1
        if isinstance(s, For) and s.var == self.loop:
            return own
        return own * self._iterations(self._holding(s)[0])

    def _asking(self, s: For, step: _Step, region: _Region, tiles: Sequence[_Step], steps: Sequence[_Step]) -> Stmt:
        if s.kind != "serial":
            raise self._refuse("a loop on the way there is already bound to something", "prefetch before")
        if s.var != self.loop:
            return For(s.var, s.start, s.stop, self._inside(s.body, region, tiles, (*steps, step)), s.kind)
        hint = nodes.Prefetch(self.buffer, region.line(tiles, (*steps, step)))
        return For(s.var, s.start, s.stop, b.block((hint, s.body)), s.kind)

    def _extent(self, s: For) -> int:
        extent = constant_extent(s)
        if extent is None:
            raise self._refuse(f"it is not known how many iterations '{s.var}' has")
        return extent


def _number(loops: Sequence[_Step]) -> Expr:
    """Return the number of iterations of nested loops before the current one."""
    number: Expr = Const(0)
    for s in loops:
        number = b.add(b.mul(number, s.extent), b.sub(b.var(s.loop), s.start))
    return fold_all(number)


def _runs_anywhere(e: Expr) -> bool:
    """Return True if an index is safe to compute under any condition: it loads nothing and never divides by zero."""
    nodes = list(walk_expr(e))
    divisors = [n.right for n in nodes if isinstance(n, Binary) and n.op in ("floordiv", "mod")]
    return all(map(_constant, divisors)) and not any(isinstance(n, Load) for n in nodes)


def _up_to(number: Expr, most: int) -> Expr:
    return b.minimum(number, max(0, most))


def _constant(e: Expr) -> int | None:
    return int(e.value) if isinstance(e, Const) else None
