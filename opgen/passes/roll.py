"""Buffers of recurrences, rolled: rows that only this step and the next read share the memory of two rows.

    alloc h[n + 1, m] heap: h[0, j] = h0[j]; for t in 0..n: for j: h[t + 1, j] = f(h[t, j])
        ->
    alloc h[2, m] heap: h[0, j] = h0[j]; for t in 0..n: for j: h[(t + 1) % 2, j] = f(h[t % 2, j])

All reads are in one loop that runs in order, at `t + c` or `t + c + 1` (or `c - t`, `c - t + 1`).  So are all writes
except those of the first step's rows, before the loop.  Two consecutive steps then use a row, and only after these is
the next but one row used.  If all reads and writes are at one row, one is enough.

Each iteration of a loop around that one has elements of its own (a parallel loop, or one whose variable is a subscript
everywhere), or reads only values that its own steps have written, never those of an earlier iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from opgen.loop import build as b
from opgen.loop.analysis.polynomial import linear, polynomial
from opgen.loop.nodes import INDEX, Alloc, Barrier, Buffer, Const, Expr, For, If, Kernel, Load, Prefetch, Stmt, Store
from opgen.loop.walk import expressions, free_vars, map_stmt, parts, substitute_expr, touched, walk, walk_expr

_IN_ORDER = ("serial", "ordered")


def roll(kernel: Kernel) -> Kernel:
    """Roll every allocation of a kernel that allows it."""
    if not any(isinstance(s, Alloc) for s in walk(kernel.body)):
        return kernel
    body = map_stmt(kernel.body, stmt=_rolled)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _rolled(s: Stmt) -> Stmt:
    if not isinstance(s, Alloc):
        return s
    for place, buffer in enumerate(s.buffers):
        while buffer.space == "heap" and (found := _axis(buffer, s.body)) is not None:
            axis, rows = found
            shape = tuple(b.index(rows) if a == axis else size for a, size in enumerate(buffer.shape))
            buffer = replace(buffer, shape=shape)
            buffers = tuple(buffer if p == place else o for p, o in enumerate(s.buffers))
            s = replace(s, buffers=buffers, body=_at_rows(s.body, buffer.name, axis, rows))
    return s


_Place: TypeAlias = "tuple[Load | Store, tuple[For, ...], tuple[Stmt, ...]]"


@dataclass(frozen=True)
class _Access:
    """An access, the loops and branches around it in the allocation, and its number in the order of the program."""

    at: Load | Store
    loops: tuple[For, ...]
    branches: tuple[Stmt, ...]
    number: int

    @property
    def indices(self) -> tuple[Expr, ...]:
        """The subscripts."""
        return self.at.indices

    @property
    def is_load(self) -> bool:
        """True for a read."""
        return isinstance(self.at, Load)


def _accesses(s: Stmt, buffer: str, loops: tuple[For, ...] = (), branches: tuple[Stmt, ...] = ()) -> Iterator[_Place]:
    """Yield each access, and the loops and the branches around it."""
    if buffer not in touched(s):
        return
    for e in expressions(s):
        for n in walk_expr(e):
            if isinstance(n, Load) and n.buffer == buffer:
                yield n, loops, branches
    if isinstance(s, Store) and s.buffer == buffer:
        yield s, loops, branches
    for part in parts(s):
        inner = (*loops, s) if isinstance(s, For) else loops
        yield from _accesses(part, buffer, inner, (*branches, part) if isinstance(s, If) else branches)


def _axis(buffer: Buffer, body: Stmt) -> tuple[int, int] | None:
    """Return the dimension of a buffer that can be rolled, and the number of rows that it then has."""
    found = [_Access(*a, number) for number, a in enumerate(_accesses(body, buffer.name))]
    reads = [a for a in found if a.is_load]
    if not reads or any(isinstance(s, Prefetch) and s.buffer == buffer.name for s in walk(body)):
        return None
    for loop in (o for o in reads[0].loops if all(o in a.loops for a in reads)):
        if loop.kind not in _IN_ORDER or any(isinstance(s, Barrier) for s in walk(loop)):
            continue
        for axis, size in enumerate(buffer.shape):
            rows = None if isinstance(size, Const) and int(size.value) <= 2 else _rows(found, loop, axis)
            if rows is not None:
                return axis, rows
    return None


def _rows(found: Sequence[_Access], loop: For, axis: int) -> int | None:
    """Return the number of rows along an axis that the steps of a loop need at once, 1 or 2; None if unknown."""
    inside = [a for a in found if loop in a.loops]
    if any(a.indices[axis].type != INDEX for a in found):
        return None
    forms = [f for f in (linear(a.indices[axis], loop.var) for a in inside) if f is not None]
    if len(forms) < len(inside) or len({factor for factor, _ in forms}) > 1:
        return None
    factor, rest = forms[0]
    if factor not in (b.index(1), b.index(-1)):
        return None
    offsets = [_distance(r, rest) for _, r in forms]
    known = [o for o in offsets if o is not None]
    if len(known) < len(offsets) or max(known) - min(known) > 1:
        return None
    rows = max(known) - min(known) + 1
    first = b.add(b.mul(factor, loop.start), b.add(rest, b.index(min(known))))
    outer = inside[0].loops[: inside[0].loops.index(loop)]
    apart = all(o.kind == "parallel" or _is_subscript(o.var, inside, axis) for o in outer)
    if not apart and (rows == 2 or not all(_is_written(a, inside, loop) for a in inside if a.is_load)):
        return None
    before = [a for a in found if loop not in a.loops]
    return rows if all(_is_first(a, inside, axis, first, rows) for a in before) else None


def _is_written(read: _Access, inside: Sequence[_Access], loop: For) -> bool:
    """Return True if a step writes everything that it reads there before it reads it."""
    stores = (a for a in inside if not a.is_load and a.number < read.number)
    sure = (a for a in stores if all(any(o is p for o in read.branches) for p in a.branches))
    return any(_places(a, loop, a.at.mask) == _places(read, loop, a.at.mask and read.at.mask) for a in sure)


def _places(a: _Access, loop: For, mask: Expr | None) -> tuple[Expr | None, ...]:
    """Return the subscripts, a mask and the bounds of an access in a step, by the same names for the loops within."""
    within = a.loops[a.loops.index(loop) + 1 :]
    named = {o.var: b.var(f"loop {depth}") for depth, o in enumerate(within)}
    bounds = (bound for o in within for bound in (o.start, o.stop))
    return tuple(e and substitute_expr(e, named) for e in (*a.indices, mask, *bounds))


def _is_first(a: _Access, inside: Sequence[_Access], axis: int, first: Expr, rows: int) -> bool:
    """Return True for a write, before all steps, of a row that the first step reads."""
    own = {o.var for o in a.loops if not any(o is p for p in inside[0].loops)}
    if a.is_load or a.number > inside[0].number or own & free_vars(a.indices[axis]):
        return False
    return rows == 2 and _distance(a.indices[axis], first) in (0, 1)


def _is_subscript(var: str, accesses: Sequence[_Access], axis: int) -> bool:
    """Return True if a variable is the subscript of all accesses along some other axis."""
    subscripts = ({a.indices[other] for a in accesses} for other in range(len(accesses[0].indices)) if other != axis)
    return any(found == {b.var(var)} for found in subscripts)


def _distance(one: Expr, other: Expr) -> int | None:
    """Return the difference of two integers, if it is a number."""
    terms = (polynomial(one) - polynomial(other)).terms
    return int(terms.get((), 0)) if set(terms) <= {()} else None


def _at_rows(body: Stmt, buffer: str, axis: int, rows: int) -> Stmt:
    def row(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(b.mod(i, rows) if a == axis else i for a, i in enumerate(indices))

    def expr(e: Expr) -> Expr:
        return replace(e, indices=row(e.indices)) if isinstance(e, Load) and e.buffer == buffer else e

    def stmt(s: Stmt) -> Stmt:
        return replace(s, indices=row(s.indices)) if isinstance(s, Store) and s.buffer == buffer else s

    return map_stmt(body, expr=expr, stmt=stmt)
