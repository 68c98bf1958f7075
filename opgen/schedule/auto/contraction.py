"""Contractions: a register tile of positions by vectors, the reduction inside.

Each scalar that is read serves all vectors of the tile, each vector all positions: with 14 accumulators the arithmetic
units are busy and the loads are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.loop.walk import free_vars
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, depends, loops_of_reuse
from opgen.schedule.auto.prepare import Phases
from opgen.schedule.auto.trial import Trial
from opgen.schedule.split import Tail
from opgen.schedule.steps import Parallel, Partition, Reorder, Split, Step, Unroll, Vectorize

TILE = 7
"""Positions of a tile: with two vectors each, 14 accumulators hide the latency of the arithmetic and leave registers
for operands; few enough for the associativity of the first cache."""
UNROLLED = 96
"""Most accumulations that unrolling tap loops may put in one body, and for each phase of a stride."""
MOST = 256
"""Most accumulations of all phases together: what is gained beyond is lost in building."""


@dataclass(frozen=True)
class Contraction:
    nest: Nest
    trial: Trial
    vector: str
    lanes: int
    phases: Phases

    @property
    def tile(self) -> str | None:
        """The loop of positions: the innermost on which what the lanes read does not depend."""
        found = [n for n in loops_of_reuse(self.nest, self.vector) if n not in self.phases.remainders]
        return found[0] if found else None

    def run(self) -> bool:
        tile = self.tile
        if tile is None:
            return False
        width, length = self._extent(self.vector), self._extent(tile)
        vectors = 2 if width % (2 * self.lanes) == 0 else 1
        positions = _positions(length)
        step = vectors * self.lanes
        wide: Tail = "exact" if width % step == 0 else "overlap"
        long: Tail = "exact" if length % positions == 0 else "overlap"
        fresh = self.trial.fresh
        v_o, v_v, v_l = (fresh(f"{self.vector}_{part}") for part in "ovl")
        t_o, t_i = fresh(f"{tile}_o"), fresh(f"{tile}_i")
        order = self._outer_order(tile, wide)
        steps: list[Step] = [] if tuple(order) == self.nest.names else [Reorder(tuple(order))]
        steps.append(Split(tile, positions, long, t_o, t_i))
        if vectors > 1:
            v_i = fresh(f"{self.vector}_i")
            steps += [Split(self.vector, step, wide, v_o, v_i), Split(v_i, self.lanes, "exact", v_v, v_l)]
        else:
            steps.append(Split(self.vector, step, wide, v_o, v_l))
        across = [v_v] if vectors > 1 else []
        tiles = [{self.vector: v_o, tile: t_o}.get(n, n) for n in order]
        inner = [s.var for s in self.nest.inner_loops]
        steps.append(Reorder((*tiles, *inner, t_i, *across, v_l)))
        steps += [*(Unroll(n) for n in (*self.phases.remainders, t_i, *across)), Vectorize(v_l)]
        if not self.trial.take(*steps):
            return False
        ahead = tiles[: tiles.index(t_o if wide == "exact" else v_o)]
        self.trial.fused_prefix([n for n in ahead if n not in self.phases.remainders][:2], Parallel)
        self.trial.take(*self._edges(tile, t_o, positions * vectors, -(-length // positions)))
        return True

    def _extent(self, loop: str) -> int:
        extent = self.nest.extent(loop)
        assert extent is not None
        return extent

    def _outer_order(self, tile: str, wide: Tail) -> list[str]:
        """Outermost loop, those that change what the lanes read, the vectors, phases, the rest, the tiles: what is
        reused stays near.  Overlapping vectors are not independent, so they stand within everything that is.
        """
        moving = [n for n in self.nest.names if n not in (self.vector, tile, *self.phases.remainders)]
        rows = [e for e in self.nest.outside_loads if depends(e.indices, self.vector)]
        first = moving[:1] if len(moving) > 1 and not self.phases.remainders else []
        changing = [n for n in moving if n not in first and all(depends(e.indices, n) for e in rows)]
        rest = [n for n in moving if n not in first and n not in changing]
        if wide == "overlap":
            return [*first, *changing, *self.phases.remainders, *rest, self.vector, tile]
        return [*first, *changing, self.vector, *self.phases.remainders, *rest, tile]

    def _edges(self, tile: str, t_o: str, accumulators: int, tiles: int) -> list[Step]:
        """Conditions on positions and phases: tap loops unrolled, first and last tiles made loops of their own."""
        speaking = [tile, t_o, *self.phases.quotients, *self.phases.remainders]
        conditions = [c for c in self.nest.conditions if any(depends(c, n) for n in speaking)]
        if not conditions:
            return []
        names = {n for c in conditions for n in free_vars(c)}
        taps = [(s.var, constant_extent(s)) for s in self.nest.inner_loops if s.var in names]
        known = [(n, e) for n, e in taps if e is not None]
        share = 2 ** len(self.phases.remainders)
        steps: list[Step] = []
        if prod(e for _, e in known) * accumulators <= min(UNROLLED * share, MOST):
            steps += [Unroll(n) for n, _ in known]
        if tiles > 1:
            steps.append(Partition(t_o, (1, -1) if tiles > 2 else (1,)))
        return steps


def _positions(length: int) -> int:
    """The whole loop if it is short, else a divisor near `TILE`, else `TILE` with overlapping tiles."""
    if length <= TILE + 1:
        return length
    return next((t for t in (TILE, TILE + 1, TILE - 1, TILE - 2, TILE - 3) if length % t == 0), TILE)
