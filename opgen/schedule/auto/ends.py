"""The ends of a loop at which conditions can fail: only there do tiles need bodies of their own."""

from __future__ import annotations

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Compare, Expr
from opgen.loop.walk import free_vars
from opgen.passes.decide import EFFORT
from opgen.passes.tighten import conjuncts
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.cuts import Cut
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.trial import Trial
from opgen.schedule.auto.walks import Walk
from opgen.schedule.steps import Partition


def set_apart(trial: Trial, nest: Nest, column: Walk, tiles: str, cut: Cut) -> bool:
    """Bodies of their own for the tiles of terms at the ends of a row, where conditions can fail or a tile is not full;
    rows stay branches.  Whether that was legal.
    """
    if cut.tail == "exact" and column.term not in nest.borders:
        return True
    at = ends_of(nest, column.term, cut, column.reach_of_terms(nest.extent(column.result) or 1))
    return not at or trial.take(Partition(tiles, at))


def ends_of(nest: Nest, loop: str, cut: Cut, reach: int, phases: int = 1) -> tuple[int, ...]:
    """Cuts that set apart the tiles from which `reach` further iterations lead out of a loop: of whole tiles those at
    which conditions can fail.  A loop in `phases` is cut in tiles of each.
    """
    at = cut.border(reach)
    return needed(nest, loop, at, cut.size * phases) if cut.tail == "exact" else at


def needed(nest: Nest, loop: str, cuts: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Of two cuts of a loop in whole tiles those that set a condition's end apart.

    A cut goes if each condition that the two decide between them holds beyond it, too.
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
    """Whether a condition holds from some iteration of a loop on, or up to one."""
    return loop in free_vars(e) and not (isinstance(e, Compare) and e.op in ("eq", "ne"))


def _within(nest: Nest, loop: str, start: int, stop: int) -> Context:
    """What is known in the core of a nest while a loop is between two iterations."""
    context = Context()
    for s in (*nest.loops, *nest.inner_loops):
        bounds = (b.index(start), b.index(stop)) if s.var == loop else (s.start, s.stop)
        context = context.with_loop(s.var, *bounds)
    return context
