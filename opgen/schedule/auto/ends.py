"""Loop peeling for conditions: only the ends of a loop, where conditions can fail, need bodies of their own."""

from __future__ import annotations

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Compare, Expr
from opgen.loop.walk import free_vars
from opgen.passes.decide import EFFORT
from opgen.passes.tighten import conjuncts
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.cuts import Tiles
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.plan import Ends


def ends_of(nest: Nest, loop: str, tiles: Tiles, reach: int, phases: int = 1) -> tuple[Ends, ...]:
    """Return the tiles of a loop that are peeled: those within `reach` of its borders, and a partial one.

    If all tiles are full, only those are peeled at which conditions can fail.  A loop in `phases` has tiles of each
    phase.
    """
    exact = tiles.tail == "exact"
    if exact and loop not in nest.borders:
        return ()
    at = tiles.border(reach)
    at = needed(nest, loop, at, tiles.size * phases) if exact else at
    return (Ends(f"{loop}.o", at),) if at else ()


def needed(nest: Nest, loop: str, cuts: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return those of two cuts, in whole tiles, that a condition needs.

    A cut is dropped if each condition that both cuts decide between them also holds beyond it.
    """
    found = {(s.start, constant_extent(s)) for s in (*nest.loops, *nest.inner_loops) if s.var == loop}
    start, extent = found.pop()
    if len(cuts) != 2 or found or start != b.index(0) or extent is None:
        return cuts
    first, last = cuts[0] * size, extent + cuts[1] * size
    parts = [p for c in nest.conditions for p in conjuncts(c) if _bounds(p, loop)]

    def hold(start: int, stop: int) -> bool:
        context = _within(nest, loop, start, stop)
        return all(context.proves(p, EFFORT) for p in parts)

    if not hold(first, last):
        return cuts
    return (() if hold(0, last) else cuts[:1]) + (() if hold(first, extent) else cuts[1:])


def _bounds(e: Expr, loop: str) -> bool:
    """Return True if a condition holds from some iteration of a loop on, or up to one."""
    return loop in free_vars(e) and not (isinstance(e, Compare) and e.op in ("eq", "ne"))


def _within(nest: Nest, loop: str, start: int, stop: int) -> Context:
    """Return the facts known in the core of a loop nest while a loop runs from `start` to `stop`."""
    context = Context()
    for s in (*nest.loops, *nest.inner_loops):
        bounds = (b.index(start), b.index(stop)) if s.var == loop else (s.start, s.stop)
        context = context.with_loop(s.var, *bounds)
    return context
