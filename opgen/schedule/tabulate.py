"""tabulate: a part of an expression that few loops determine, computed before a loop nest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Annotated

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Binary, Buffer, Const, Expr, For, If, Kernel, Load, Stmt, Store
from opgen.loop.print import print_expr
from opgen.loop.walk import (
    expressions,
    free_vars,
    loads,
    loops_in,
    map_stmt,
    operands,
    parts,
    stores,
    substitute_expr,
    walk_expr,
)
from opgen.passes.fold import fold_all
from opgen.passes.unroll import constant_extent
from opgen.schedule.declaration import Option, Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import before_nest, buffer_at, nest_to_precede, require_fresh, require_loops, with_body
from opgen.schedule.values import BufferName, LoopName, Made


@primitive("memory", "tabulate v n, c -> table")
class Tabulate(Step):
    """Computes what is made of elements of `v`, and depends on `n` and `c` alone, before the nest."""

    buffer: BufferName
    loops: tuple[LoopName, ...]
    name: Annotated[str, Made("{buffer}_table")]
    join: Annotated[bool, Option("false", quiet=True)] = False

    def run(self, kernel: Kernel) -> Kernel:
        return tabulate(kernel, self.buffer, self.loops, self.name, self.join)


def tabulate(kernel: Kernel, buffer: str, loops: Sequence[str], name: str, join: bool) -> Kernel:
    """Compute expressions of a buffer that depend on some loops alone before the loop nest, for all their iterations.

    The loop nest reads the table.

                                                    alloc v_table[c]
                                                    for v_table_k in 0..c:
        for i in 0..n: for k in 0..c:                 v_table[v_table_k] = sqrt(v[k // 4])
          y[i, k] = x[i, k] / sqrt(v[k // 4])  ->   for i in 0..n: for k in 0..c:
                                                      y[i, k] = x[i, k] / v_table[k]

    Each such expression has a table of its own (`v_table_1`, ...).  With `join` the last two loops share one dimension
    of the table, so that they can be flattened.

    Refused if the loop nest writes the buffer, if the loops are not known to run from 0 to constants, or if a condition
    is around.  Refused also if no such expression exists, or if the table may read out of bounds or divide by 0 where
    other loops have no iterations.
    """
    require_loops(kernel, "tabulate", loops)
    nest = nest_to_precede(kernel.body, loops[0])
    extents = [_extent(nest, buffer, n) for n in loops]
    wholes = parts_of(nest, buffer, frozenset(loops), frozenset(p.name for p in kernel.parameters))
    _require_inside(kernel, buffer, wholes, dict(zip(loops, extents, strict=True)))
    tables = [_Table(f"{name}_{n}" if n else name, whole) for n, whole in enumerate(wholes)]
    taken = [n for t in tables for n in (t.name, *t.counters(loops))]
    require_fresh(kernel, "tabulate", taken)
    row = extents[-1] if join and len(loops) > 1 else None
    shape = extents if row is None else [*extents[:-2], extents[-2] * row]
    made = [Buffer(t.name, t.whole.type.dtype, tuple(map(b.index, shape)), "heap") for t in tables]
    filled = [t.filled(loops, extents, row) for t in tables]
    reads: dict[Expr, Expr] = {t.whole: t.read(loops, row) for t in tables}
    new = map_stmt(nest, expr=lambda e: reads.get(e, e))
    body = before_nest(kernel.body, loops[0], made, filled)
    return with_body(kernel, map_stmt(body, stmt=lambda s: new if s is nest else s))


@dataclass(frozen=True)
class _Table:
    name: str
    whole: Expr
    """The expression in the table."""

    def counters(self, loops: Sequence[str]) -> list[str]:
        return [f"{self.name}_{n}" for n in loops]

    def read(self, loops: Sequence[str], row: int | None) -> Load:
        return Load(self.name, _place(loops, row), self.whole.type.dtype)

    def filled(self, loops: Sequence[str], extents: Sequence[int], row: int | None) -> Stmt:
        counters = self.counters(loops)
        here = dict(zip(loops, map(b.var, counters), strict=True))
        filled: Stmt = Store(self.name, _place(counters, row), substitute_expr(self.whole, here))
        for counter, extent in zip(reversed(counters), reversed(extents), strict=True):
            filled = For(counter, b.index(0), b.index(extent), filled)
        return filled


def _place(names: Sequence[str], row: int | None) -> tuple[Expr, ...]:
    """Return an element of a table; with a `row`, the last two loops share one dimension."""
    places: list[Expr] = [b.var(n) for n in names]
    if row is not None:
        places[-2:] = [fold_all(b.add(b.mul(places[-2], row), places[-1]))]
    return tuple(places)


def parts_of(nest: Stmt, buffer: str, loops: Set[str], known: Set[str] = frozenset()) -> tuple[Expr, ...]:
    """Return the largest expressions of a loop nest that read a buffer and depend on some loops alone."""
    written = {s.buffer for s in stores(nest)}
    if buffer in written:
        raise ScheduleError(f"tabulate {buffer}: the nest writes it")
    found = dict.fromkeys(_parts(nest, buffer, loops | known, written))
    if not found:
        named = sorted({e.buffer for e in loads(nest)})
        hint = did_you_mean(buffer, named) if buffer not in named else None
        raise ScheduleError(f"tabulate {buffer}: nothing is made of it by these loops alone", hint)
    return tuple(found)


def _parts(s: Stmt, buffer: str, loops: Set[str], written: Set[str]) -> Iterator[Expr]:
    """Yield these expressions; refuses those under a condition."""

    def visit(e: Expr) -> Iterator[Expr]:
        read = {n.buffer for n in walk_expr(e) if isinstance(n, Load)}
        if buffer not in read:
            return
        if free_vars(e) <= loops and not read & written and not any(_is_masked(n) for n in walk_expr(e)):
            yield e
            return
        for o in operands(e):
            yield from visit(o)

    for e in expressions(s):
        yield from visit(e)
    for p in parts(s):
        found = list(_parts(p, buffer, loops, written))
        if found and isinstance(s, If):
            raise ScheduleError(f"tabulate {buffer}: a condition is around what is made of it")
        yield from found


def _require_inside(kernel: Kernel, buffer: str, wholes: Sequence[Expr], extents: Mapping[str, int]) -> None:
    """Refuse expressions that may read out of bounds, or divide by 0, in iterations that the nest may not have."""
    context = Context.of(kernel)
    for name, extent in extents.items():
        context = context.with_loop(name, b.index(0), b.index(extent))
    within = next(s for s in loops_in(kernel.body) if s.var in extents)
    for e in (n for whole in wholes for n in walk_expr(whole)):
        conditions: list[Expr] = []
        if isinstance(e, Load):
            for i, size in zip(e.indices, buffer_at(kernel, e.buffer, within).shape, strict=True):
                conditions += [b.compare("le", 0, i), b.compare("lt", i, size)]
        elif isinstance(e, Binary) and e.op in ("floordiv", "mod"):
            conditions.append(b.compare("ne", e.right, Const(0, e.right.type)))
        if not all(map(context.proves, conditions)):
            raise ScheduleError(f"tabulate {buffer}: '{print_expr(e)}' may fail where the nest does not run")


def _is_masked(e: Expr) -> bool:
    return e.type.lanes != 1 or (isinstance(e, Load) and e.mask is not None)


def _extent(nest: Stmt, buffer: str, loop: str) -> int:
    found = [s for s in loops_in(nest) if s.var == loop]
    extents = [constant_extent(s) for s in found if s.start == Const(0) and s.kind == "serial"]
    if len(found) != 1 or len(extents) != 1 or extents[0] is None:
        raise ScheduleError(f"tabulate {buffer}: '{loop}' is not known to run from 0 to a constant")
    return extents[0]
