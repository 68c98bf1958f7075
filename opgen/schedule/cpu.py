"""The default schedule of one nest for a CPU with vector registers."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.loop.walk import free_vars
from opgen.passes.unroll import constant_extent
from opgen.schedule.nests import Nest, contiguous_loop, depends, reused_across, width_in_bytes, worth_lanes
from opgen.schedule.split import Tail
from opgen.schedule.steps import Parallel, Partition, Reorder, Split, Step, Unroll, Vectorize
from opgen.schedule.trial import Trial

TILE = 7
"""Positions a register tile has along the reused loop: with two vectors each, 14 accumulators hide the latency of the
arithmetic and leave registers for operands; small enough for the set-associativity of the first cache."""
PARALLEL = 2
"""Most loops that are fused into the parallel one."""
UNROLLED = 64
"""Most accumulations that unrolling a tap loop may put in one body."""


@dataclass(frozen=True)
class CpuNest:
    nest: Nest
    trial: Trial
    vector_bytes: int

    def run(self) -> None:
        vector = contiguous_loop(self.nest)
        usable = vector is not None and worth_lanes(self.nest, vector)
        if vector is not None and usable and (self._tiled(vector) or self._vectorized(vector)):
            return
        self.trial.fused_prefix(self.nest.names[:PARALLEL], Parallel)

    # Lanes ------------------------------------------------------------------------------------------

    def _lanes(self, extent: int | None) -> int:
        """As many as a register holds; for a shorter loop the greatest power of two that fits."""
        lanes = max(1, self.vector_bytes // width_in_bytes(self.nest))
        while extent is not None and lanes > max(1, extent):
            lanes //= 2
        return lanes

    def _vectorized(self, vector: str) -> bool:
        """Lanes along one loop, everything else as it was."""
        extent = self.nest.extent(vector)
        lanes = self._lanes(extent)
        if lanes < 2:
            return False
        outer, inner = self.trial.fresh(f"{vector}_o"), self.trial.fresh(f"{vector}_l")
        last = self.nest.names[-1]
        order = () if vector == last else (Reorder((*(n for n in self.nest.names if n != vector), outer, inner)),)
        overlap = extent is not None and extent % lanes != 0
        tails: tuple[Tail, ...] = ("overlap", "guard") if overlap else ("exact",) if extent is not None else ("guard",)
        for tail in tails:
            if self.trial.take(Split(vector, lanes, tail, outer, inner), *order, Vectorize(inner)):
                others = [n for n in self.nest.names if n != vector]
                self.trial.fused_prefix((others if tail == "overlap" else [*others, outer])[:PARALLEL], Parallel)
                return True
        return False

    # Register tiles ---------------------------------------------------------------------------------

    def _tiled(self, vector: str) -> bool:
        """A tile of accumulators: positions along a loop that reuses what the lanes read, times vectors."""
        tile = reused_across(self.nest, vector)
        width = self.nest.extent(vector)
        length = None if tile is None else self.nest.extent(tile)
        if tile is None or width is None or length is None or len(self.nest.allocations) != 1:
            return False
        lanes = self._lanes(width)
        if lanes < 2:
            return False
        return _Tile(self.nest, self.trial, vector, tile, lanes, width, length).run()


@dataclass(frozen=True)
class _Tile:
    nest: Nest
    trial: Trial
    vector: str
    tile: str
    lanes: int
    width: int
    length: int

    @property
    def vectors(self) -> int:
        """Two vectors where each scalar that is read serves them both."""
        shared = any(not depends(e.indices, self.vector) for e in self.nest.outside_loads)
        return 2 if shared and self.width % (2 * self.lanes) == 0 else 1

    @property
    def positions(self) -> int:
        """Tile length: the whole loop if it is short, else a divisor near `TILE`, else `TILE`, tiles overlapping."""
        if self.length <= TILE + 1:
            return self.length
        return next((t for t in (TILE, TILE + 1, TILE - 1, TILE - 2, TILE - 3) if self.length % t == 0), TILE)

    def run(self) -> bool:
        fresh = self.trial.fresh
        v_o, v_v, v_l = (fresh(f"{self.vector}_{part}") for part in "ovl")
        t_o, t_i = fresh(f"{self.tile}_o"), fresh(f"{self.tile}_i")
        step = self.vectors * self.lanes
        wide: Tail = "exact" if self.width % step == 0 else "overlap"
        long: Tail = "exact" if self.length % self.positions == 0 else "overlap"
        order = self._outer_order(wide)
        steps: list[Step] = [] if tuple(order) == self.nest.names else [Reorder(tuple(order))]
        steps.append(Split(self.tile, self.positions, long, t_o, t_i))
        across = [v_v] if self.vectors > 1 else []
        if across:
            v_i = fresh(f"{self.vector}_i")
            steps += [Split(self.vector, step, wide, v_o, v_i), Split(v_i, self.lanes, "exact", v_v, v_l)]
        else:
            steps.append(Split(self.vector, step, wide, v_o, v_l))
        tiles = [{self.vector: v_o, self.tile: t_o}.get(n, n) for n in order]
        inner = [s.var for s in self.nest.inner_loops]
        steps.append(Reorder((*tiles, *inner, t_i, *across, v_l)))
        steps += [*(Unroll(n) for n in (t_i, *across)), Vectorize(v_l)]
        if not self.trial.take(*steps):
            return False
        self.trial.fused_prefix(tiles[: tiles.index(t_o if wide == "exact" else v_o)][:PARALLEL], Parallel)
        self.trial.take(*self._edges(t_o))
        return True

    def _outer_order(self, wide: Tail) -> list[str]:
        """Outermost loop, those that change what the lanes read, the vectors, the rest, the tiles: what is reused stays
        near.  Overlapping vectors are not independent, so they stand within everything that is.
        """
        others = [n for n in self.nest.names if n not in (self.vector, self.tile)]
        rows = [e for e in self.nest.outside_loads if depends(e.indices, self.vector)]
        first = others[:1] if len(others) > 1 else []
        changing = [n for n in others if n not in first and all(depends(e.indices, n) for e in rows)]
        rest = [n for n in others if n not in first and n not in changing]
        if wide == "overlap":
            return [*first, *changing, *rest, self.vector, self.tile]
        return [*first, *changing, self.vector, *rest, self.tile]

    def _edges(self, t_o: str) -> list[Step]:
        """Conditions on the position: tap loops unrolled, and the first and last tiles made loops of their own."""
        conditions = [c for c in self.nest.conditions if depends(c, self.tile)]
        if not conditions:
            return []
        names = {n for c in conditions for n in free_vars(c)}
        steps: list[Step] = []
        for s in self.nest.inner_loops:
            taps = constant_extent(s)
            if s.var in names and taps is not None and taps * self.positions * self.vectors <= UNROLLED:
                steps.append(Unroll(s.var))
        tiles = -(-self.length // self.positions)
        if tiles > 1:
            steps.append(Partition(t_o, (1, -1) if tiles > 2 else (1,)))
        return steps
