"""compute_with: copies made in the loop that first reads them, iteration by iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Block, Expr, For, Kernel, Let, Load, Stmt, Var
from opgen.loop.walk import loads, map_stmt, parts, stores, substitute, walk, with_parts
from opgen.passes.fold import fold
from opgen.passes.unroll import constant_extent
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_loops, with_body


def compute_with(kernel: Kernel, loop: str, into: str) -> Kernel:
    """Run each iteration of a loop in the same iteration of another that follows and reads what it writes.

        for i in 0..n: p[i] = w[i]
        for t in 0..1:                              for t in 0..1:
          for c in 0..n: use(p[c])          ->        for c in 0..n:
        for t in 1..m:                                  p[c] = w[c]
          for c in 0..n: use(p[c])                      use(p[c])
                                                    for t in 1..m:
                                                      for c in 0..n: use(p[c])

    Loops around either must have one iteration (`partition` sets one apart), and both as many as each other; what is
    written at an iteration must be what the other reads at the same one.
    """
    require_loops(kernel, "compute_with", [loop, into])
    found = False

    def visit(s: Stmt) -> Stmt:
        nonlocal found
        if isinstance(s, Block):
            for at, p in enumerate(s.statements[:-1]):
                copy = _alone(p, loop)
                if copy is not None:
                    found = True
                    merged = _With(copy, into).run(s.statements[at + 1])
                    return b.block((*s.statements[:at], merged, *s.statements[at + 2 :]))
        return with_parts(s, tuple(map(visit, parts(s))))

    body = visit(kernel.body)
    if not found:
        raise ScheduleError(f"compute_with {loop}: it does not stand by itself before '{into}'")
    return with_body(kernel, body)


def _alone(s: Stmt, loop: str) -> For | None:
    """The loop of that name, if a statement is nothing but it and loops of one iteration around it."""
    values: dict[str, Expr] = {}
    while isinstance(s, For) and s.kind == "serial":
        if s.var == loop:
            body = map_stmt(substitute(s.body, values), expr=fold)
            return For(s.var, s.start, s.stop, body, s.kind)
        if constant_extent(s) != 1:
            return None
        values[s.var] = s.start
        s = s.body
    return None


@dataclass(frozen=True)
class _With:
    copy: For
    into: str

    def refuse(self, reason: str, help: str | None = None) -> ScheduleError:
        return ScheduleError(f"compute_with {self.copy.var}: {reason}", help)

    def run(self, s: Stmt) -> Stmt:
        written, read = {w.buffer for w in stores(self.copy)}, {e.buffer for e in loads(self.copy)}
        changed = {w.buffer for w in stores(s)} | {p.buffer.name for p in walk(s) if isinstance(p, Alloc)}
        if written & read or changed & (written | read):
            raise self.refuse(f"what follows writes what '{self.copy.var}' reads or writes")
        return self._within(s)

    def _within(self, s: Stmt) -> Stmt:
        """A statement with the iterations in its loop."""
        if isinstance(s, For) and s.var == self.into:
            return self._together(s)
        if isinstance(s, For) and (constant_extent(s) != 1 or s.kind != "serial"):
            raise self.refuse(f"the loop '{s.var}' around '{self.into}' has other iterations", "partition it before")
        if not isinstance(s, For | Let | Alloc | Block):
            raise self.refuse(f"'{self.into}' does not follow, or under a condition")
        inside = parts(s)
        at = next((n for n, p in enumerate(inside) if self._holds(p)), None)
        if at is None:
            raise self.refuse(f"'{self.into}' does not follow")
        self._require_unread(inside[:at])
        return with_parts(s, (*inside[:at], self._within(inside[at]), *inside[at + 1 :]))

    def _holds(self, s: Stmt) -> bool:
        return any(isinstance(p, For) and p.var == self.into for p in walk(s))

    def _require_unread(self, before: Sequence[Stmt]) -> None:
        written = {w.buffer for w in stores(self.copy)}
        if any(e.buffer in written for s in before for e in loads(s)):
            raise self.refuse(f"what it writes is read before '{self.into}'")

    def _together(self, s: For) -> Stmt:
        copy = self.copy
        extent = constant_extent(copy)
        if s.kind != "serial" or extent is None or (extent, copy.start) != (constant_extent(s), s.start):
            raise self.refuse(f"'{s.var}' is not a serial loop of the same iterations")
        for e in loads(s.body):
            if not self._just_written(e, s.var):
                raise self.refuse(f"'{s.var}' reads of '{e.buffer}' what other iterations write")
        return For(s.var, s.start, s.stop, b.block((substitute(copy.body, {copy.var: b.var(s.var)}), s.body)), s.kind)

    def _just_written(self, e: Load, var: str) -> bool:
        """Whether what is read, if it is written at all, is written in that iteration and in no other."""
        own = [w for w in stores(self.copy) if w.buffer == e.buffer]
        return not own or any(
            _is(index, var) and all(_is(w.indices[d], self.copy.var) for w in own) for d, index in enumerate(e.indices)
        )


def _is(e: Expr, name: str) -> bool:
    return isinstance(e, Var) and e.name == name
