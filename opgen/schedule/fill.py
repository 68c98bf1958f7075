"""fill: a copy made row by row, by the first loop that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Block, Const, Expr, For, Kernel, Let, Stmt, Var
from opgen.loop.walk import allocs_in, holds_loop, loads, parts, stores, substitute, walk, with_parts
from opgen.passes.unroll import constant_extent
from opgen.schedule.declaration import Option, Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_loops, with_body
from opgen.schedule.values import BufferName, LoopName


@primitive("memory", "fill panel in=x")
class Fill(Step):
    """Makes the rows of a copy one by one in a loop of the first nest that reads it."""

    buffer: BufferName
    loop: Annotated[LoopName, Option(lacks="a loop", name="in")]

    def run(self, kernel: Kernel) -> Kernel:
        return fill(kernel, self.buffer, self.loop)


def fill(kernel: Kernel, buffer: str, loop: str) -> Kernel:
    """Copy each row where a loop first reads it, rather than all rows before.

        alloc panel[9, 4]                          alloc panel[9, 4]
        for p in 0..9: for j in 0..4:              for c in 0..1: for x in 0..9:
          panel[p, j] = g[p, 8 + j]         ->       for j in 0..4: panel[x, j] = g[x, 8 + j]
        for c in 0..1: for x in 0..9:                use(panel[x, 0..4], c)
          use(panel[x, 0..4], c)                   for c in 1..6: for x in 0..9:
        for c in 1..6: for x in 0..9:                use(panel[x, 0..4], c)
          use(panel[x, 0..4], c)

    The copy must be of inputs.  The loop nest after it must read it in that loop only, each row in one iteration;
    `partition` can peel the first iteration of a loop around.
    """
    require_loops(kernel, "fill", [loop])
    local = list(allocs_in(kernel.body))
    found = [s for s in local for o in s.buffers if o.name == buffer]
    if len(found) != 1:
        hint = did_you_mean(buffer, [o.name for s in local for o in s.buffers])
        raise ScheduleError(f"fill {buffer}: there are {len(found)} local buffers of that name", hint)
    (whole,) = found
    filled = _Fill(buffer, loop, frozenset(i.name for i in kernel.inputs)).run(whole.body)

    def replaced(s: Stmt) -> Stmt:
        return with_parts(s, (filled,) if s is whole else tuple(replaced(p) for p in parts(s)))

    return with_body(kernel, replaced(kernel.body))


@dataclass(frozen=True)
class _Fill:
    buffer: str
    loop: str
    inputs: frozenset[str]

    def _refuse(self, reason: str, help: str | None = None) -> ScheduleError:
        return ScheduleError(f"fill {self.buffer}: {reason}", help)

    def run(self, body: Stmt) -> Stmt:
        body = b.block((body,))
        statements = body.statements if isinstance(body, Block) else ()
        if len(statements) < 2:
            raise self._refuse("nothing reads it after the copy")
        copy, first, *rest = statements
        rows, move = self._rows(copy)
        path = self._path(first)
        inner = path[-1]
        inside, everywhere = (sum(e.buffer == self.buffer for e in loads(s)) for s in (inner.body, first))
        if inside == 0 or everywhere > inside:
            raise self._refuse(f"the nest after the copy does not read it in '{self.loop}', and nowhere else")
        if any(s.buffer == self.buffer for s in stores(first)):
            raise self._refuse("the nest after the copy writes it, too")
        values, depth = self._followed(rows, path)
        self._require_other_names((*rows[depth:], move), first)
        for s in reversed(rows[depth:]):
            move = For(s.var, s.start, s.stop, move, s.kind)
        body_with = b.block((substitute(move, values), inner.body))

        def within(s: Stmt) -> Stmt:
            if s is inner:
                return For(inner.var, inner.start, inner.stop, body_with, inner.kind)
            return with_parts(s, tuple(within(p) for p in parts(s)))

        return b.block((within(first), *rest))

    def _rows(self, copy: Stmt) -> tuple[list[For], Stmt]:
        """Return the loops of the copy along the first dimensions, and the body of the last one."""
        written = list(stores(copy))
        read = list(loads(copy))
        if [s.buffer for s in written] != [self.buffer] or any(e.buffer not in self.inputs for e in read):
            raise self._refuse("the first statement does not copy inputs to it, and nothing else")
        rows: list[For] = []
        while isinstance(copy, For) and len(rows) < len(written[0].indices):
            if copy.kind != "serial" or written[0].indices[len(rows)] != Var(copy.var):
                break
            rows.append(copy)
            copy = copy.body
        return rows, copy

    def _path(self, s: Stmt) -> list[For]:
        """Return the loops down to the one that is to fill the copy.  Nothing there may depend on a condition."""
        found: list[For] = []
        while True:
            if isinstance(s, For):
                found.append(s)
                if s.kind != "serial":
                    raise self._refuse(f"the loop '{s.var}' is not serial any more", "fill before")
                if s.var == self.loop:
                    return found
            within = [p for p in parts(s) if holds_loop(p, self.loop)]
            if len(within) != 1 or not isinstance(s, For | Block | Alloc | Let):
                raise self._refuse(f"the nest after the copy does not hold one loop '{self.loop}' that always runs")
            (s,) = within

    def _require_other_names(self, moved: Iterable[Stmt], first: Stmt) -> None:
        """Refuse if a name that the copy of a row declares means something else where it goes."""
        taken = sorted(_names(p for s in moved for p in walk(s)) & _names(_around(first, self.loop)))
        if taken:
            raise self._refuse(
                f"the name '{taken[0]}' means another loop or value around '{self.loop}'", "rename it: split it by 1"
            )

    def _followed(self, rows: Sequence[For], path: Sequence[For]) -> tuple[Mapping[str, Expr], int]:
        """Return the values of the copy's loops at the read of a row, and the number of dimensions that select the
        row.
        """
        around = {s.var: s for s in path}
        prefixes = {e.indices for e in loads(path[-1].body) if e.buffer == self.buffer}
        first = next(iter(prefixes))
        values: dict[str, Expr] = {}
        for d, s in enumerate(rows):
            index = first[d]
            if any(p[d] != index for p in prefixes) or not _runs_along(index, s, around):
                break
            values[s.var] = index
        used = [v.name for v in values.values() if isinstance(v, Var)]
        more = [s.var for s in path if s.var not in used and constant_extent(s) != 1]
        if len(set(used)) < len(used) or self.loop not in used or more:
            raise self._refuse(
                "the nest after the copy does not read each row once, in one iteration",
                "set the first iteration of a loop around apart",
            )
        return values, len(values)


def _names(statements: Iterable[Stmt]) -> set[str]:
    """Return the names that statements themselves declare."""
    found: set[str] = set()
    for s in statements:
        match s:
            case For():
                found.add(s.var)
            case Let():
                found.add(s.var.name)
            case Alloc():
                found.update(o.name for o in s.buffers)
    return found


def _around(s: Stmt, loop: str) -> list[Stmt]:
    """Return a loop and the statements around it, outermost first."""
    if isinstance(s, For) and s.var == loop:
        return [s]
    within = next((p for p in parts(s) if holds_loop(p, loop)), None)
    return [s] if within is None else [s, *_around(within, loop)]


def _runs_along(index: Expr, row: For, around: Mapping[str, For]) -> bool:
    """Return True if an index takes every value of a loop of the copy."""
    if isinstance(index, Const):
        return row.start == index and constant_extent(row) == 1
    if not isinstance(index, Var) or index.name not in around:
        return False
    s = around[index.name]
    begins = isinstance(s.start, Const) and s.start == row.start  # a name might mean another loop there
    return begins and constant_extent(s) is not None and constant_extent(s) == constant_extent(row)
