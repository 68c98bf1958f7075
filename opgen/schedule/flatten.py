"""flatten: two loops, and in what they walk through two dimensions, into one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from opgen.loop import build as b
from opgen.loop.nodes import Buffer, Const, Expr, For, Kernel, Load, Stmt, Store
from opgen.loop.walk import expressions, free_vars, loads, map_stmt, stores, walk
from opgen.passes.fold import fold_all
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import extent, require_fresh, require_loops, rewrite_loops


def flatten(kernel: Kernel, outer: str, inner: str, name: str | None = None) -> Kernel:
    """Make one loop of two that walk together through neighbouring dimensions of arguments, rows of which they take
    whole, and one dimension of these.

        (x: float32[4, 5, 7]) ->                    (x: float32[4, 1, 35] as [4, 5, 7]) ->
        for i in 0..5:                              for i_j in 0..35:
          for j in 0..7: s(x[c, i, j])      ->        s(x[c, 0, i_j])

    The elements of an argument lie as they did.  Dimensions of one element may stand between the two, as an earlier
    `flatten` leaves them.  Refused if anything else depends on either loop.
    """
    require_loops(kernel, "flatten", [outer, inner])
    flat = name or f"{outer}_{inner}"
    require_fresh(kernel, "flatten", [flat])
    places = _places(kernel, outer, inner)
    old = {a.name: a for a in kernel.buffers}
    new = {buffer: _flat(old[buffer], *at) for buffer, at in places.items()}
    body = rewrite_loops(kernel, outer, lambda s, _: _fused(s, inner, flat, places, old)).body
    if {outer, inner} & {n for s in walk(body) for e in expressions(s) for n in free_vars(e)}:
        raise ScheduleError(f"flatten {outer}: something depends on '{outer}' or '{inner}' alone")
    return dataclasses.replace(
        kernel,
        inputs=tuple(new.get(a.name, a) for a in kernel.inputs),
        outputs=tuple(new.get(a.name, a) for a in kernel.outputs),
        body=body,
    )


def _places(kernel: Kernel, outer: str, inner: str) -> dict[str, tuple[int, int]]:
    """The dimensions of each argument that the outer loop and the inner one walk along."""
    arguments = {a.name: a for a in kernel.buffers}
    found: dict[str, tuple[int, int]] = {}
    every: dict[str, int] = {}
    for buffer, indices in _accesses(kernel):
        every[buffer] = every.get(buffer, 0) + 1
        if buffer not in arguments or b.var(inner) not in indices:
            continue
        at = indices.index(b.var(inner))
        before = next((d for d in reversed(range(at)) if arguments[buffer].shape[d] != Const(1)), None)
        if before is None or indices[before] != b.var(outer):
            continue
        if found.setdefault(buffer, (before, at)) == (before, at):
            every[buffer] -= 1
    other = next((n for n in found if every[n]), None)
    if not found or other is not None:
        what = f"'{other}' is used in another way, too" if found else "no argument is read or written along both"
        raise ScheduleError(f"flatten {outer}: {what}")
    return found


def _accesses(kernel: Kernel) -> list[tuple[str, tuple[Expr, ...]]]:
    stored = [(s.buffer, s.indices) for s in stores(kernel.body)]
    read = loads(kernel.body)
    return [*stored, *((e.buffer, e.indices) for e in read)]


def _flat(buffer: Buffer, before: int, at: int) -> Buffer:
    sizes = list(buffer.shape)
    sizes[at] = fold_all(b.mul(sizes[before], sizes[at]))
    sizes[before] = Const(1)
    return dataclasses.replace(buffer, shape=tuple(sizes), given=buffer.outside)


def _fused(s: For, inner: str, name: str, places: Mapping[str, tuple[int, int]], old: Mapping[str, Buffer]) -> Stmt:
    i = s.body
    if not isinstance(i, For) or i.var != inner:
        raise ScheduleError(f"flatten {s.var}: '{inner}' is not the only thing inside it", "reorder the loops first")
    if s.kind != "serial" or i.kind != "serial":
        raise ScheduleError(f"flatten {s.var}: a loop is already {s.kind if s.kind != 'serial' else i.kind}")
    if (s.start, i.start) != (Const(0), Const(0)) or any(
        old[n].shape[at] != extent(i) for n, (_, at) in places.items()
    ):
        raise ScheduleError(f"flatten {s.var}: '{inner}' is not a whole row of what it walks along")

    def flat(buffer: str, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        before, at = places[buffer]
        return (*indices[:before], Const(0), *indices[before + 1 : at], b.var(name), *indices[at + 1 :])

    def expr(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer in places:
            return Load(e.buffer, flat(e.buffer, e.indices), e.dtype, e.mask)
        return e

    def stmt(p: Stmt) -> Stmt:
        if isinstance(p, Store) and p.buffer in places:
            return Store(p.buffer, flat(p.buffer, p.indices), p.value, p.mask)
        return p

    return For(name, Const(0), fold_all(b.mul(extent(s), extent(i))), map_stmt(i.body, expr=expr, stmt=stmt))
