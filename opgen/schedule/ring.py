"""ring: reuse of a buffer's rows that later steps of a recurrence do not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Alloc, Buffer, Const, Expr, For, Kernel, Load, Prefetch, Stmt, Store
from opgen.loop.walk import buffers_in, expressions, map_stmt, parts, touched, walk_expr
from opgen.passes.fold import fold
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import with_body, with_buffer
from opgen.schedule.values import BufferName, Dimension


@primitive("memory", "ring states 0 2")
class Ring(Step):
    """Keeps the last two rows of what the steps of a recurrence make, in place of all."""

    buffer: BufferName
    dimension: Dimension
    rows: int

    def run(self, kernel: Kernel) -> Kernel:
        return ring(kernel, self.buffer, self.dimension, self.rows)


def ring(kernel: Kernel, buffer: str, dimension: int, rows: int) -> Kernel:
    """Keep the last `rows` rows that the steps of a recurrence compute, rather than all.

        alloc u[21, 64]                            alloc u[2, 64]
        for j: u[0, j] = x[j]                      for j: u[0, j] = x[j]
        ordered for t in 0..20:              ->    ordered for t in 0..20:
          for j: u[t + 1, j] = f(u[t, j])            for j: u[(t + 1) % 2, j] = f(u[t % 2, j])
        for j: y[j] = u[20, j]                     for j: y[j] = u[0, j]

    Refused unless one loop over steps, with constant bounds, stores one row in each step, and no overwritten row is
    read.  Outside that loop, only constant rows may be read or stored.  Each loop around the steps must have a
    dimension of the buffer of its own.
    """
    found = [o for o in buffers_in(kernel.body) if o.name == buffer]
    if len(found) != 1:
        names = dict.fromkeys(o.name for o in buffers_in(kernel.body))
        raise ScheduleError(
            f"ring {buffer}: the kernel allocates no such buffer, or several", did_you_mean(buffer, names)
        )
    _Ring(found[0], dimension, rows).check(kernel)
    count = b.index(rows)

    def expr(e: Expr) -> Expr:
        return replace(e, indices=_at(e.indices, dimension, count)) if isinstance(e, Load) and e.buffer == buffer else e

    def stmt(s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.buffer == buffer:
            return replace(s, indices=_at(s.indices, dimension, count))
        return with_buffer(s, buffer, shorter) if isinstance(s, Alloc) else s

    def shorter(whole: Buffer) -> Buffer:
        return replace(whole, shape=(*whole.shape[:dimension], count, *whole.shape[dimension + 1 :]))

    return with_body(kernel, map_stmt(kernel.body, expr=expr, stmt=stmt))


def rows_needed(kernel: Kernel, buffer: Buffer) -> tuple[int, int] | None:
    """Return the dimension of a buffer along which steps go, and the number of rows that they need.

    None if no dimension qualifies.
    """
    for dimension in range(len(buffer.shape)):
        accesses = [a for a in _accesses(kernel.body, buffer.name, ()) if a.steps is not None]
        offsets = [_offset(a.indices[dimension], a.steps.var) for a in accesses if a.steps is not None]
        known = [n for n in offsets if n is not None]
        if known and len(known) == len(offsets):
            rows = max(known) - min(known) + 1
            try:
                _Ring(buffer, dimension, rows).check(kernel)
            except ScheduleError:
                continue
            return dimension, rows
    return None


@dataclass(frozen=True)
class _Access:
    """A load or store, and the loops around it within the buffer's allocation, outermost first."""

    indices: tuple[Expr, ...]
    is_store: bool
    around: tuple[For, ...]

    @property
    def steps(self) -> For | None:
        return next((s for s in self.around if s.kind == "ordered"), None)

    @property
    def outside(self) -> tuple[For, ...]:
        """The loops around the loop over steps."""
        return self.around[: next(n for n, s in enumerate(self.around) if s.kind == "ordered")]


@dataclass(frozen=True)
class _Ring:
    buffer: Buffer
    dimension: int
    rows: int

    def check(self, kernel: Kernel) -> None:
        """Refuse a ring in which an access would find another row."""
        size = self.buffer.shape[self.dimension] if 0 <= self.dimension < len(self.buffer.shape) else None
        if not isinstance(size, Const) or not 0 < self.rows < int(size.value):
            raise self._refuse(f"dimension {self.dimension} has not more than {self.rows} rows")
        if any(isinstance(s, Prefetch) and s.buffer == self.buffer.name for s in _all(kernel.body)):
            raise self._refuse("it is prefetched")
        accesses = list(_accesses(kernel.body, self.buffer.name, ()))
        loops = {id(a.steps): a.steps for a in accesses if a.steps is not None}
        if len(loops) != 1:
            raise self._refuse("it is not made by one loop over steps")
        (steps,) = loops.values()
        within = [a for a in accesses if a.steps is not None]
        stored = self._require_steps(within, steps)
        self._require_own(within[0].outside, accesses)
        self._require_outside(accesses, steps, stored)

    def _require_steps(self, within: Sequence[_Access], steps: For) -> int:
        """Return the offset at which each step stores; refuse reads of rows that are overwritten by then."""
        offsets = [(_offset(a.indices[self.dimension], steps.var), a.is_store) for a in within]
        stored = {n for n, is_store in offsets if is_store}
        if None in {n for n, _ in offsets} or len(stored) != 1:
            raise self._refuse("a step stores several rows, or reads one that its number does not determine")
        (at,) = (n for n in stored if n is not None)
        if any(n is not None and not at - self.rows < n <= at for n, _ in offsets):
            raise self._refuse(f"a step reads a row that is not among the last {self.rows}")
        return at

    def _require_own(self, loops: Sequence[For], accesses: Sequence[_Access]) -> None:
        """Check that each loop around the steps alone indexes one dimension, the same for all accesses in it."""
        for s in loops:
            inside = [a for a in accesses if any(p is s for p in a.around)]
            if not any(all(a.indices[n] == b.var(s.var) for a in inside) for n in range(len(self.buffer.shape))):
                raise self._refuse(f"'{s.var}' has no dimension of its own")

    def _require_outside(self, accesses: Sequence[_Access], steps: For, stored: int) -> None:
        """Check that stores before the steps are within them, and that rows read after them are still there."""
        if not isinstance(steps.start, Const) or not isinstance(steps.stop, Const):
            raise self._refuse(f"the bounds of '{steps.var}' are not constant")
        first, last = int(steps.start.value) + stored, int(steps.stop.value) - 1 + stored
        begun = False
        for a in accesses:
            row = a.indices[self.dimension]
            if a.steps is not None:
                begun = True
            elif not isinstance(row, Const):
                raise self._refuse("a row that is not constant is used outside of the steps")
            elif begun:
                if a.is_store or not last - self.rows < int(row.value) <= last:
                    raise self._refuse("a row is used after the steps that is overwritten by then")
            elif not first - self.rows <= int(row.value) < first:
                raise self._refuse("a row is used before the steps that a step stores, or has no room")

    def _refuse(self, reason: str) -> ScheduleError:
        return ScheduleError(f"ring {self.buffer.name}: {reason}")


def _at(indices: tuple[Expr, ...], dimension: int, count: Expr) -> tuple[Expr, ...]:
    row = b.index(0) if count == Const(1) else fold(b.mod(indices[dimension], count))
    return (*indices[:dimension], row, *indices[dimension + 1 :])


def _offset(e: Expr, loop: str) -> int | None:
    """Return the constant c of an index that is the loop's variable plus c."""
    form = linear(e, loop) if e.type.lanes == 1 else None
    if form is None or form[0] != Const(1) or not isinstance(form[1], Const):
        return None
    return int(form[1].value)


def _accesses(s: Stmt, buffer: str, around: tuple[For, ...]) -> Iterator[_Access]:
    """Yield all accesses, in program order, the loads of a statement before its store."""
    if buffer not in touched(s):
        return
    for e in (n for whole in expressions(s) for n in walk_expr(whole)):
        if isinstance(e, Load) and e.buffer == buffer:
            yield _Access(e.indices, False, around)
    if isinstance(s, Store) and s.buffer == buffer:
        yield _Access(s.indices, True, around)
    declared = isinstance(s, Alloc) and any(o.name == buffer for o in s.buffers)
    inner = () if declared else (*around, s) if isinstance(s, For) else around
    for p in parts(s):
        yield from _accesses(p, buffer, inner)


def _all(s: Stmt) -> Iterator[Stmt]:
    yield s
    for p in parts(s):
        yield from _all(p)
