"""The loop nest that writes an intermediate, element by element."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Const, Expr, For, If, Stmt, Store, Var
from opgen.loop.walk import buffers_in, free_vars, loads, skeleton, stores
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify_expr
from opgen.passes.unroll import expand
from opgen.schedule.box import Box, redirected


@dataclass(frozen=True)
class Producer:
    """Perfectly nested loops whose core stores to one buffer only.

    `dimension` maps each loop to the buffer's dimension that it runs along, in every store.  In the other dimensions,
    the stores write the same elements in each iteration.
    """

    buffer: str
    loops: tuple[For, ...]
    core: Stmt
    dimension: dict[str, int]

    @staticmethod
    def of(s: Stmt, buffer: str) -> Producer | str:
        """Return the loop nest of a statement, or the reason why it does not qualify."""
        loops: list[For] = []
        while isinstance(s, For):
            loops.append(s)
            s = s.body
        own = {o.name for o in buffers_in(s)}
        written = [p for p in stores(s) if p.buffer not in own]
        others = sorted({p.buffer for p in written} - {buffer})
        if others:
            return f"the nest that writes it also writes '{others[0]}'"
        if any(isinstance(p, If) and any(w.buffer == buffer for w in stores(p)) for p in skeleton(s)):
            return "it is written under conditions"
        if any(e.buffer == buffer for e in loads(s)):
            return "the nest that writes it also reads it"
        if any(loop.kind != "serial" for loop in loops):
            return f"the loop '{next(loop.var for loop in loops if loop.kind != 'serial')}' is not serial any more"
        found = [_dimensions(p, [loop.var for loop in loops]) for p in written]
        dimension = found[0] if found else None
        if dimension is None or any(other != dimension for other in found):
            return "the loops that write it do not each run along one of its dimensions"
        return Producer(buffer, tuple(loops), s, dimension)

    def covering(self, region: Box, shape: tuple[Expr, ...]) -> Box:
        """Return the region, extended to whole dimensions where no loop runs along them."""
        looped = set(self.dimension.values())
        low = tuple(x if d in looped else Const(0) for d, x in enumerate(region.low))
        return Box(low, tuple(x if d in looped else shape[d] for d, x in enumerate(region.extents)))

    def restricted(self, region: Box, context: Context) -> Stmt:
        """Return the loop nest over a region only, writing to a buffer of that size.

        `context` holds at its new place.
        """
        values: dict[str, Expr] = {}
        kept: list[tuple[For, Expr | None]] = []
        for loop in self.loops:
            low, extent = (ends[self.dimension[loop.var]] for ends in (region.low, region.extents))
            if extent == Const(1):
                values[loop.var] = low
                inside = context
            else:
                values[loop.var] = fold_all(b.add(low, b.var(loop.var)))
                inside = context.with_loop(loop.var, Const(0), extent)
            guard = _missing(values[loop.var], loop, inside)
            kept.append((For(loop.var, Const(0), extent, b.EMPTY, loop.kind), guard))
        # The buffer's own name with other indices: the old places less the region's first.
        body = redirected(expand(self.core, values), self.buffer, self.buffer, region.low, context)
        for loop, guard in reversed(kept):
            body = body if guard is None else If(guard, body)
            body = body if loop.stop == Const(1) else For(loop.var, loop.start, loop.stop, body, loop.kind)
        return body


def _dimensions(store: Store, loops: list[str]) -> dict[str, int] | None:
    """Return the dimension that each loop alone runs along, one step an iteration; None if a loop has none."""
    found: dict[str, int] = {}
    for d, index in enumerate(store.indices):
        if isinstance(index, Var) and index.name in loops and index.name not in found:
            found[index.name] = d
        elif free_vars(index) & set(loops):
            return None
    return found if len(found) == len(loops) else None


def _missing(place: Expr, loop: For, context: Context) -> Expr | None:
    """Return the part of the condition "the place is in the loop's range" that is not known to hold."""
    result: Expr | None = None
    for condition in (b.compare("ge", place, loop.start), b.compare("lt", place, loop.stop)):
        if not context.proves(condition):
            condition = simplify_expr(condition, context)
            result = condition if result is None else b.both(result, condition)
    return result
