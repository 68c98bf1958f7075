"""flatten: two loops, and the two dimensions that they run along, into one."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Annotated, TypeAlias

from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Buffer, Const, Expr, For, Kernel, Load, Stmt, Store
from opgen.loop.walk import buffers_in, expressions, free_vars, loads, map_expr, map_stmt, stores, walk
from opgen.passes.fold import fold_all
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import extent, require_fresh, require_loops, rewrite_loops, with_body
from opgen.schedule.values import LoopName, Made

Place: TypeAlias = tuple[int, int]
"""Two neighbouring dimensions of a buffer."""


@primitive("loops", "flatten y, x -> y_x")
class Flatten(Step):
    """Fuses two loops, and the two dimensions that they go through row after row."""

    outer: LoopName
    inner: LoopName
    name: Annotated[str, Made("{outer}_{inner}")]

    def run(self, kernel: Kernel) -> Kernel:
        return flatten(kernel, self.outer, self.inner, self.name)


def flatten(kernel: Kernel, outer: str, inner: str, name: str) -> Kernel:
    """Merge two loops that run along whole rows of neighbouring dimensions of buffers, and these dimensions, into one.

        (x: float32[4, 5, 7]) ->                    (x: float32[4, 1, 35] as [4, 5, 7]) ->
        for i in 0..5:                              for i_j in 0..35:
          for j in 0..7: s(x[c, i, j])      ->        s(x[c, 0, i_j])

    The elements of a buffer keep their places in memory.  Dimensions of one element may be between the two, as an
    earlier `flatten` leaves them; `i*7 + j` in a subscript becomes `i_j`.  Refused if anything else depends on either
    loop, or a buffer is also accessed in another way.  Constant subscripts in rows of the kernel's own buffers are
    allowed.
    """
    require_loops(kernel, "flatten", [outer, inner])
    require_fresh(kernel, "flatten", [name])
    known = {a.name: a for a in (*kernel.buffers, *buffers_in(kernel.body))}
    places = _places(kernel, outer, inner, known)
    rows = {known[n].shape[at] for n, (_, at) in places.items()}
    reshaped = with_body(kernel, _reshaped(kernel.body, places, known))
    body = rewrite_loops(reshaped, outer, lambda s, _: _joined(s, inner, name, rows)).body
    if {outer, inner} & {n for s in walk(body) for e in expressions(s) for n in free_vars(e)}:
        raise ScheduleError(f"flatten {outer}: something depends on '{outer}' or '{inner}' alone")
    new = {n: replace(_flat(known[n], *at), given=known[n].outside) for n, at in places.items()}
    return replace(
        kernel,
        inputs=tuple(new.get(a.name, a) for a in kernel.inputs),
        outputs=tuple(new.get(a.name, a) for a in kernel.outputs),
        body=body,
    )


def _places(kernel: Kernel, outer: str, inner: str, known: Mapping[str, Buffer]) -> dict[str, Place]:
    """Return the dimensions of each buffer that the outer and the inner loop run along."""
    accesses = [(known[name], indices) for name, indices in _accesses(kernel)]
    found: dict[str, Place] = {}
    for buffer, indices in accesses:
        place = _place(buffer, indices, outer, inner)
        if place is not None:
            found.setdefault(buffer.name, place)
    arguments = {a.name for a in kernel.buffers}
    for buffer, indices in accesses:
        if buffer.name not in found or _place(buffer, indices, outer, inner) == found[buffer.name]:
            continue
        if buffer.name in arguments or not isinstance(indices[found[buffer.name][1]], Const):
            raise ScheduleError(f"flatten {outer}: '{buffer.name}' is used in another way, too")
    if not found:
        raise ScheduleError(f"flatten {outer}: nothing is read or written along both")
    return found


def _place(buffer: Buffer, indices: tuple[Expr, ...], outer: str, inner: str) -> Place | None:
    if b.var(inner) not in indices:
        return None
    at = indices.index(b.var(inner))
    before = next((d for d in reversed(range(at)) if buffer.shape[d] != Const(1)), None)
    return None if before is None or indices[before] != b.var(outer) else (before, at)


def _accesses(kernel: Kernel) -> list[tuple[str, tuple[Expr, ...]]]:
    stored = [(s.buffer, s.indices) for s in stores(kernel.body)]
    read = loads(kernel.body)
    return [*stored, *((e.buffer, e.indices) for e in read)]


def _flat(buffer: Buffer, before: int, at: int) -> Buffer:
    sizes = list(buffer.shape)
    sizes[at] = fold_all(b.mul(sizes[before], sizes[at]))
    sizes[before] = Const(1)
    return replace(buffer, shape=tuple(sizes))


def _reshaped(body: Stmt, places: Mapping[str, Place], known: Mapping[str, Buffer]) -> Stmt:
    """Rewrite every access to use one subscript for two."""

    def flat(buffer: str, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        before, at = places[buffer]
        both = fold_all(b.add(b.mul(indices[before], known[buffer].shape[at]), indices[at]))
        return (*indices[:before], Const(0), *indices[before + 1 : at], both, *indices[at + 1 :])

    def expr(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer in places:
            return replace(e, indices=flat(e.buffer, e.indices))
        return e

    def stmt(s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.buffer in places:
            return replace(s, indices=flat(s.buffer, s.indices))
        if isinstance(s, Alloc) and any(o.name in places for o in s.buffers):
            return Alloc(tuple(_flat(o, *places[o.name]) if o.name in places else o for o in s.buffers), s.body)
        return s

    return map_stmt(body, expr=expr, stmt=stmt)


def _joined(s: For, inner: str, name: str, rows: Set[Expr]) -> Stmt:
    """Return one loop for two, with its variable in subscripts."""
    i = s.body
    if not isinstance(i, For) or i.var != inner:
        raise ScheduleError(f"flatten {s.var}: '{inner}' is not the only thing inside it", "reorder the loops first")
    if s.kind != "serial" or i.kind != "serial":
        raise ScheduleError(f"flatten {s.var}: a loop is already {s.kind if s.kind != 'serial' else i.kind}")
    row = extent(i)
    if (s.start, i.start) != (Const(0), Const(0)) or rows != {row}:
        raise ScheduleError(f"flatten {s.var}: '{inner}' is not a whole row of what it walks along")
    both = fold_all(b.add(b.mul(b.var(s.var), row), b.var(inner)))

    def joined(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(map_expr(lambda part: b.var(name) if part == both else part, e) for e in indices)

    def expr(e: Expr) -> Expr:
        return replace(e, indices=joined(e.indices)) if isinstance(e, Load) else e

    def stmt(p: Stmt) -> Stmt:
        return replace(p, indices=joined(p.indices)) if isinstance(p, Store) else p

    return For(name, Const(0), fold_all(b.mul(extent(s), row)), map_stmt(i.body, expr=expr, stmt=stmt))
